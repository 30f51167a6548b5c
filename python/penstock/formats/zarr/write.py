"""Creates Zarr stores, and changes them in place: new arrays, arrays that grow, attributes.

A new store is a folder under a temporary name. In an existing one, new arrays are folders and new chunks files under
temporary names; publish renames them, and then replaces the documents that make them seen. What must stay true:
whenever a writer dies, readers see each array as it was or as it becomes; what was not published has temporary names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any

from penstock._error import Error
from penstock.formats.faults import refused, told, unsupported
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Filter, NewDataset, Places, Shape, Writer
from penstock.formats.new_file import WriterLock, sync_file, sync_folder, sync_tree
from penstock.formats.new_folder import NewFolder
from penstock.formats.zarr import allocate, packed
from penstock.formats.zarr.allocate import Index
from penstock.formats.zarr.array import ArrayMeta, parse_array, storage_of
from penstock.formats.zarr.chunks import together
from penstock.formats.zarr.document import array_document, group_document, plain_attributes, retold
from penstock.formats.zarr.hidden import HiddenNames
from penstock.formats.zarr.nodes import DOCUMENT, MARKS, checked_name, need_distinct, parents, store_of
from penstock.formats.zarr.packed_shards import PackedShards
from penstock.formats.zarr.reader import Zarr
from penstock.formats.zarr.reading import WriterReading
from penstock.formats.zarr.texts import need_plain, write_texts

if TYPE_CHECKING:
    import numpy as np

_ADVICE = "check the folder, its permissions and its space"


class ZarrWriter(Writer):
    """`append`: the store exists and is changed in place; otherwise a new one is made."""

    format = "zarr"

    def __init__(self, name: str | os.PathLike[str], *, append: bool = False) -> None:
        self.name = os.fspath(name)
        self._new: NewFolder | None = None
        self._lost: Error | None = None  # storage failed: what it holds is not known here any more
        self._lock = WriterLock(store_of(self.name)) if append else None
        self._hiding = HiddenNames(self._lock)
        try:
            self._begin(append)
        except BaseException:
            if self._new is not None:
                self._new.abandon()
            self._let_go()
            raise

    def _begin(self, append: bool) -> None:
        if not append:
            self._new = NewFolder(self.name, MARKS)
            self._hiding.write_document(f"{self._new.temporary}/{DOCUMENT}", group_document(), durable=False)
        self.container = Zarr(self._new.temporary if self._new is not None else self.name)
        self._nodes = self.container.nodes
        self.reading = WriterReading(self, lambda: self.container)
        if self._nodes.document("", DOCUMENT) is None:
            raise unsupported(
                self.name, "it is a store of Zarr version 2, which is not written", "copy it to version 3"
            )
        self._forget()

    def _forget(self) -> None:
        """Nothing is waiting to be published."""
        self._changed: dict[str, dict[str, Any]] = {}  # documents of nodes, by name
        self._made: dict[str, str] = {}  # folders of new arrays of an existing store, by name
        self._growing: dict[str, tuple[bool, ...]] = {}
        self._files: set[str] = set()  # chunk files that were made
        self._written: set[str] = set()  # chunk files that were given out to be written
        self._named: set[str] = set()  # folders in which chunks, or folders of theirs, get their names
        self._folders: set[str] = set()  # that were made for chunk files
        self._complete: set[tuple[str, Index]] = set()  # shards that have all their chunks
        self._packed = PackedShards()
        self.container.moved.clear()

    def need_same(self) -> None:
        """Error when another folder has the name now."""
        held = self._new or self._lock
        if held is not None:
            held.need_named()

    def is_own(self, file: str) -> bool:
        """Whether a chunk file lies in the store: it is no link, nor is a folder on the way to it."""
        folder, root = os.path.realpath(os.path.dirname(file)), os.path.realpath(self._nodes.root)
        return not os.path.islink(file) and f"{folder}/".startswith(f"{root}/")  # noqa: PTH114 - thousands a call

    def names(self) -> Sequence[str]:
        new = [name for name, document in self._changed.items() if document["node_type"] == "array"]
        return tuple(sorted({*self.container.names(), *new}))

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        plain = self._nodes.plain(group)
        changed = self._changed.get(plain)
        return changed["attributes"] if changed is not None else self.container.attributes(plain)

    def info(self, name: str) -> DatasetInfo:
        return self.container.info(name)

    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable | None]:
        made = [self._parsed(dataset) for dataset in datasets]
        names = [name for name, _, _ in made]
        need_distinct(self.name, names)
        tables: list[ChunkTable | None] = []
        for (name, document, meta), dataset in zip(made, datasets, strict=True):
            self._nodes.set_array(name, meta)
            self._changed |= {group: group_document() for group in parents(name) if self._kind(group) is None}
            self._changed[name] = document
            self._growing[name] = tuple(most is None for most in dataset.resizable or meta.shape)
            if self._new is None:
                beside = f"{self.name}/{name.rpartition('/')[2]}"
                self._made[name] = self._hiding.name_for(beside, self._made.values())
                self._nodes.elsewhere[name] = self._made[name]
            with told("create the folder of an array in", self.name, _ADVICE):
                os.makedirs(self._nodes.folder(name))
            is_later = dataset.is_written_at_once or storage_of(meta).packed
            tables.append(None if is_later else self.table(name, self._whole(name, (), meta.shape)))
        return tables

    def extend(self, name: str, shape: Shape) -> ChunkTable:
        plain, meta = self._nodes.plain(name), self.container.meta(name)
        old, new = meta.shape, tuple(int(n) for n in (shape[::-1] if storage_of(meta).backwards else shape))
        if len(new) != len(old) or any(after < before for before, after in zip(old, new, strict=True)):
            raise refused(self.name, f"from shape {old} to {new}: arrays only grow here", dataset=name)
        if meta.dtype.host_only:
            need_plain(self.name, plain, meta)
        elif storage_of(meta).packed:
            packed.need_encoder(self.name, plain, meta, packed.encoder_of(meta, self._document(plain)))
        document = self._document(plain)
        document["shape"] = list(new)
        grown = self._checked(plain, document)
        self._growing.setdefault(plain, tuple(a != b for a, b in zip(old, new, strict=True)))
        self._changed[plain] = document
        self._nodes.set_array(plain, grown)
        self._complete = {one for one in self._complete if one[0] != plain}
        rows = [self.table(plain, box) for box in starmap(partial(self._whole, plain), allocate.grown_boxes(old, new))]
        return together(rows) if rows else self.container.table(plain, self._whole(plain, new, new))

    def table(self, name: str, box: Box) -> ChunkTable:
        """Chunks of the box that are not stored get a place here."""
        plain, meta = self._nodes.plain(name), self.container.meta(name)
        if not storage_of(meta).packed:
            backwards = storage_of(meta).backwards
            start, stop = (box.start[::-1], box.stop[::-1]) if backwards else (box.start, box.stop)
            make = self._make_chunks if meta.pipeline.sharding is None else self._make_shards
            with told("create chunk files of", self.name, _ADVICE):
                make(plain, meta, Box(start, stop))
        table = self.container.table(plain, box)
        if not storage_of(meta).packed:
            self._written.update(table.files)
        return table

    def packing(self, name: str, box: Box) -> tuple[Filter, ...]:
        plain, meta = self._nodes.plain(name), self.container.meta(name)
        return packed.encoder_for(self.name, (plain, meta, self._document(plain)), box)

    def packing_unit(self, name: str, box: Box) -> Shape | None:
        return packed.unit_of(self.container.meta(name), self._document(self._nodes.plain(name)))

    def place(self, name: str, origin: np.ndarray, sizes: np.ndarray) -> Places:
        meta = self.container.meta(name)
        give = self._packed.place if storage_of(meta).sharded else packed.place_files
        with told("create chunk files of", self.name, _ADVICE):
            places = give(meta, (origin, sizes), self._paths_of(name, meta))
        self._files.update(places.files)
        return places

    def is_in_files(self, name: str, box: Box) -> bool:
        """Only where the array is hidden as a whole: a chunk that is there already may be a link."""
        plain, storage = self._nodes.plain(name), storage_of(self.container.meta(name))
        is_other = storage.packed or storage.sharded or storage.backwards or storage.turned
        return not is_other and (self._new is not None or plain in self._made)

    def chunk_files(self, name: str, origin: np.ndarray) -> Sequence[str] | None:
        meta = self.container.meta(name)
        if storage_of(meta).sharded:
            return None
        with told("create folders for chunks of", self.name, _ADVICE):
            files = packed.chunk_files(meta, origin, self._paths_of(name, meta), self._folders)
        self._files.update(files)
        return files

    def write_values(self, name: str, box: Box, values: np.ndarray) -> None:
        meta = self.container.meta(name)
        need_plain(self.name, name, meta)
        held = partial(self.container.values, name)
        with told("write chunk files of", self.name, _ADVICE):
            self._files.update(write_texts(meta, (box, values), held, self._paths_of(name, meta)))

    def _paths_of(self, name: str, meta: ArrayMeta) -> packed.PathOf:
        """Where a chunk is to be written anew."""
        plain = self._nodes.plain(name)
        moved = self.container.moved.setdefault(plain, {})

        def path_of(index: Index) -> str:
            final = f"{self._nodes.folder(plain)}/{meta.keys.path(index)}"
            return moved.get(index) or self._hidden(plain, index, final)

        return path_of

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        plain = self._nodes.plain(name)
        document = self._document(plain)
        try:
            document["attributes"] = document.get("attributes", {}) | plain_attributes(attributes)
        except ValueError as error:
            raise refused(self.name, str(error), dataset=plain) from None
        self._changed[plain] = document
        if document["node_type"] == "array":
            self._nodes.set_array(plain, replace(self.container.meta(plain), attributes=document["attributes"]))

    def publish(self, durable: bool) -> None:
        """The store may be changed again afterwards, and published again, unless storage failed in it."""
        if self._lost is not None:
            raise self._lost
        try:
            with told("publish", self.name, _ADVICE):
                self._publish(durable)
        except Error as error:
            if error.system_code:
                self._lost = error
            raise
        self._forget()

    def _publish(self, durable: bool) -> None:
        """Durable, each name comes after what it leads to: chunks, arrays, and then groups that tell of them."""
        if self._new is not None:
            self._publish_nodes(durable=False)
            self.container.close()
            if durable:
                sync_tree(self._new.temporary, top=False)
            self._new.publish(durable)
            self._new = None
            try:
                self.container = Zarr(self.name)
                self._nodes = self.container.nodes
            except Error as error:  # the store is there, whole; only going on with it fails
                self._lost = error
            return
        for path in sorted(self._made_or_written()) if durable else ():
            sync_file(path)
        self._publish_chunks()
        for folder in _leaves_first(self._named) if durable else ():
            sync_folder(folder)
        self._publish_nodes(durable)
        self.container.close()

    def abandon(self) -> None:
        self.container.close()
        if self._new is not None:
            self._new.abandon()
        for folder in self._made.values():
            shutil.rmtree(folder, ignore_errors=True)
        for name, moved in self.container.moved.items():
            for path in moved.values():
                allocate.remove_chunk(path, self._nodes.folder(name))
        self._forget()
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.release()

    # -- new arrays

    def _parsed(self, dataset: NewDataset) -> tuple[str, dict[str, Any], ArrayMeta]:
        name = checked_name(self._nodes, self.name, dataset.name)
        if not self._nodes.is_free(name) or name in self._changed:
            raise refused(self.name, "there is a node or a folder of this name already", dataset=name)
        for group in parents(name):
            if self._kind(group) == "array":
                raise refused(self.name, f"{group!r} is an array, not a group", dataset=name)
        try:
            document = array_document(dataset)
            return name, document, self._checked(name, document)
        except ValueError as error:
            raise refused(self.name, str(error), dataset=name) from None

    def _checked(self, name: str, document: dict[str, Any]) -> ArrayMeta:
        try:
            meta = parse_array(document)
        except ValueError as error:
            raise refused(self.name, str(error), dataset=name) from None
        if meta.refusal:
            raise unsupported(self.name, meta.refusal, dataset=name)
        return meta

    def _kind(self, name: str) -> str | None:
        document = self._changed.get(name)
        return document["node_type"] if document is not None else self._nodes.kind(name)

    def _document(self, name: str) -> dict[str, Any]:
        """A copy of what a node's document says now, with what was changed."""
        known = self._changed.get(name) or self._nodes.document(name, DOCUMENT)
        if known is None:
            raise KeyError(f"{self.name} has no node {name!r} of Zarr version 3")
        return dict(known)

    # -- chunks

    def _make_chunks(self, name: str, meta: ArrayMeta, box: Box) -> None:
        """`box` in the user's order of dimensions, as in all that follows."""
        moved = self.container.moved.setdefault(name, {})
        for index in allocate.file_indices(meta, box.start, box.stop):
            final = f"{self._nodes.folder(name)}/{meta.keys.path(index)}"
            if index not in moved and not os.path.lexists(final):
                path = self._hidden(name, index, final)
                allocate.make_chunk(path, meta, prefill=not allocate.covers(box, index, meta))
                self._files.add(path)
                self._folders.add(os.path.dirname(path))

    def _make_shards(self, name: str, meta: ArrayMeta, box: Box) -> None:
        moved = self.container.moved.setdefault(name, {})
        growing = self._growing.get(name, (False,) * len(meta.shape))
        for index in allocate.file_indices(meta, box.start, box.stop):
            if (name, index) in self._complete:
                continue
            self._complete.add((name, index))
            final = f"{self._nodes.folder(name)}/{meta.keys.path(index)}"
            now = moved.get(index, final)
            used = allocate.used_chunks(meta, index, growing)
            older = allocate.older_shard(now, meta) if os.path.lexists(now) else None
            if older is not None and older.chunks.keys() >= set(used):
                continue
            path = self._hidden(name, index, final)
            allocate.make_shard(path, meta, sorted({*used, *(older.chunks if older is not None else ())}), older)
            self._files.add(path)
            if now != final and older is not None:
                self._files.discard(now)
                self._written.discard(now)
                os.unlink(now)

    def _hidden(self, name: str, index: Index, final: str) -> str:
        """Where a new chunk file is until publish: under its name where its array is hidden as a whole."""
        if self._new is not None or name in self._made:
            return final
        path = self._hiding.name_for(final, self._files)
        parent = os.path.dirname(final)
        while parent not in self._named:
            self._named.add(parent)
            if os.path.exists(parent):
                break
            parent = os.path.dirname(parent)
        self.container.moved.setdefault(name, {})[index] = path
        return path

    def _whole(self, name: str, start: Shape, stop: Shape) -> Box:
        start = start or (0,) * len(stop)
        backwards = storage_of(self.container.meta(name)).backwards
        return Box(tuple(start[::-1]), tuple(stop[::-1])) if backwards else Box(tuple(start), tuple(stop))

    def _publish_chunks(self) -> None:
        for name, moved in self.container.moved.items():
            keys = self.container.meta(name).keys
            for index, path in moved.items():
                os.replace(path, f"{self._nodes.folder(name)}/{keys.path(index)}")
            moved.clear()

    def _publish_nodes(self, durable: bool) -> None:
        """Groups before what is in them; arrays; then groups that were there, whose consolidated metadata tell it."""
        there = {group for group in self._touched() if self._nodes.document(group, DOCUMENT) is not None}
        named: set[str] = set()  # folders in which names are new
        for group in sorted(self._touched() - there):
            folder = self._nodes.folder(group)
            os.makedirs(folder, exist_ok=True)
            self._hiding.write_document(f"{folder}/{DOCUMENT}", self._changed[group], durable)
            named |= {folder, os.path.dirname(folder)}
        for name, document in self._changed.items():
            if document["node_type"] == "array":
                named.add(self._publish_array(name, document, durable))
        for folder in _leaves_first(named) if durable else ():
            sync_folder(folder)
        for group in sorted(there, reverse=True):
            if self._tell(group, durable) and durable:
                sync_folder(self._nodes.folder(group))

    def _publish_array(self, name: str, document: dict[str, Any], durable: bool) -> str:
        """The folder in which a name is new."""
        hidden, folder = self._made.get(name), self._nodes.folder(name)
        self._hiding.write_document(f"{folder}/{DOCUMENT}", document, durable and hidden is None)
        if hidden is None:
            return folder
        if durable:
            sync_tree(hidden)
        self._nodes.elsewhere.pop(name)
        os.rename(hidden, self._nodes.folder(name))
        self._made.pop(name)
        return os.path.dirname(self._nodes.folder(name))

    def _touched(self) -> set[str]:
        """Groups that changed, or in which something did."""
        inside = {parent for name in self._changed for parent in parents(name)}
        return inside | {name for name, document in self._changed.items() if document["node_type"] == "group"}

    def _tell(self, group: str, durable: bool) -> bool:
        """Whether there was something to tell."""
        document = retold(group, self._changed, self._nodes.document(group, DOCUMENT))
        if document is None:
            return False
        self._hiding.write_document(f"{self._nodes.folder(group)}/{DOCUMENT}", document, durable)
        return True

    def _made_or_written(self) -> set[str]:
        """Chunk files to be made durable by themselves: those of new arrays are, with their folders."""
        hidden = tuple(f"{one}/" for one in self._made.values())
        return {one for one in self._files | self._written if not one.startswith(hidden)}


def _leaves_first(folders: Iterable[str]) -> list[str]:
    return sorted(folders, key=lambda folder: (-folder.count("/"), folder))
