"""Writing HDF5: new files, and datasets and steps in existing ones.

HDF5 lays out the metadata above an overlay (session); the mover writes the elements into space that is reserved;
`publish` then lets the metadata follow: a new file is renamed into place, an existing one is changed in the order of
changing/order. What must stay true: an older file, or the old state of an existing one, can be read until the new state
can; new contiguous datasets and chunks of a page or more begin on a page, and nothing else is put behind them in their
last page.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from h5py import h5d, h5f, h5g, h5o, h5p

from penstock._error import Error
from penstock.formats.faults import refused, unsupported
from penstock.formats.hdf5.attributes import write_attribute
from penstock.formats.hdf5.changing.append import InPlace
from penstock.formats.hdf5.changing.packed import PackedChunks
from penstock.formats.hdf5.changing.place import (
    Growth,
    grid_of,
    place_chunks,
    place_missing,
)
from penstock.formats.hdf5.changing.session import NAME, Session, creation_list, group_list, shape_object
from penstock.formats.hdf5.faults import cause_of
from penstock.formats.hdf5.index import no_chunks
from penstock.formats.hdf5.layout import lay_out, need_possible, space_of
from penstock.formats.hdf5.metadata import Metadata, no_rows
from penstock.formats.hdf5.open import name_bytes
from penstock.formats.hdf5.stored import Stored
from penstock.formats.hdf5.types import stored_type
from penstock.formats.hdf5.values import write_values
from penstock.formats.model import Box, ChunkTable, DatasetInfo, NewDataset, Shape, Watch
from penstock.formats.new_file import NewFile, need_named

PAGE_BYTES = 4096


def create(name: str | os.PathLike[str], *, page_bytes: int = PAGE_BYTES, many_members: bool = False) -> Hdf5Writer:
    """A new file. `page_bytes`: extents begin at its multiples; more than 4096 suits striped file systems.
    `many_members`: some groups will have thousands of members; then adding one takes the same time however many there
    are, but to groups of more than eight none can be added in place once the file is closed."""
    return Hdf5Writer(name, page_bytes=page_bytes, many_members=many_members)


def append(name: str | os.PathLike[str]) -> Hdf5Writer:
    """An existing file, to be changed in place."""
    return Hdf5Writer(name, append=True)


class Hdf5Writer(PackedChunks):
    """Writes a file, and answers for its metadata as they will be. `publish` may be followed by more changes, which
    are then made in place, and published again."""

    ordered = False  # groups and objects know in which order their members were made

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        append: bool = False,
        page_bytes: int = PAGE_BYTES,
        many_members: bool = False,
    ) -> None:
        super().__init__(name)
        self._many_members = many_members
        self._in_place = InPlace(self.name, self._moved)
        self._session: Session | None = None
        self._new: NewFile | None = None
        self._lost: Error | None = None  # storage failed at the end: what it holds is not known here any more
        if append:
            self._current()
        else:
            create = creation_list(page_bytes, self.ordered, many_members)
            self._new = NewFile(self.name)
            self._session = Session(self.name, self._new.temporary, self._new, create)

    # -- adding

    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable]:
        self._current()
        for one in datasets:
            self._create(one)
        with self._all_or_nothing():
            self._session.reserve()
        whole = [(one, Box((0,) * len(one.shape), one.shape)) for one in datasets]
        return [no_rows(len(one.shape)) if one.dtype.host_only else self.table(one.name, box) for one, box in whole]

    def extend(self, name: str, shape: Shape) -> ChunkTable:
        stored, shape = self.readable(name), tuple(int(extent) for extent in shape)
        info, name = stored.info, stored.info.name
        self._check_growth(info, stored.home, shape)
        before = info.shape[: stored.rank]
        self._need_unseen(stored)
        index = None if info.dtype.host_only else self._index(stored)
        try:
            stored.dataset.set_extent(shape[: stored.rank])
        except (OSError, RuntimeError, ValueError) as error:
            raise refused(self.name, cause_of(error), dataset=name) from error
        stored = replace(stored, info=replace(info, shape=shape))
        self._stored[name] = stored
        if info.dtype.host_only:  # HDF5 places its chunks itself
            return no_rows(len(shape))
        with self._all_or_nothing():
            if not self._grows_by_packed(stored, before):
                self._keep_index(name, place_chunks(self._session, Growth(stored, before), index))
            self._in_place.note_extension(self._session, stored)
        first = tuple(low if extent > low else 0 for low, extent in zip(info.shape, shape, strict=True))
        grown = sum(extent > low for low, extent in zip(info.shape, shape, strict=True))
        return self.table(name, Box(first if grown == 1 else (0,) * len(shape), shape))

    def make_room(self, name: str, cells: np.ndarray) -> None:
        """As chunks of datasets that grow, they are stored as they are, whatever filters there are."""
        stored = self.readable(name)
        if stored.info.layout != "chunked" or stored.home != self._session.path or stored.info.dtype.host_only:
            return
        index, growth = self._index(stored), Growth(stored, stored.info.shape[: stored.rank])
        with self._all_or_nothing():
            more = place_missing(
                self._session, growth, index, cells[:, : stored.rank] * np.array(growth.chunk, np.int64)
            )
            if more is not index:
                self._keep_index(stored.info.name, more)
                self._note_more_chunks(stored)

    def _note_more_chunks(self, stored: Stored) -> None:
        self._in_place.note_extension(self._session, stored)

    def write_values(self, name: str, box: Box, values: np.ndarray) -> None:
        """HDF5 writes them to the overlay, so they are in memory until the file is published."""
        stored = self.readable(name)
        assert stored.how is not None
        self._need_unseen(stored)
        with self._all_or_nothing():
            write_values(stored.dataset, stored.how, box, values)

    def _need_unseen(self, stored: Stored) -> None:
        """Error of text in a file that has its name: HDF5 would change heaps that readers of it use."""
        if stored.info.dtype.host_only:
            self._need_new(stored.info.name)

    def _need_new(self, name: str) -> None:
        if self._new is None:
            cause = "text of variable length is written to new files only"
            raise unsupported(self.name, cause, "add it with the format's own library, or write a new file", name)

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        target = self._object(name_bytes(name.strip("/")) or b"/")
        for key, value in attributes.items():
            self._write_attribute(target, key, value)
        self._in_place.note_addition(self._session, name.strip("/"))

    def create_group(self, name: str) -> None:
        """A group, with those that it lies in; does nothing where there is one."""
        self._group(f"{name.strip('/')}/-")
        self._in_place.note_addition(self._session, name.strip("/"))

    def watch(self, name: str) -> Watch | None:
        stored = self.readable(name)
        session = self._session
        if session is None or stored.home != session.path or stored.info.layout not in ("contiguous", "chunked"):
            return None
        status = os.fstat(session.descriptor)
        return Watch(session.path, status.st_dev, status.st_ino)

    def link(self, name: str, target: str) -> None:
        """A second name for a dataset or group: a hard link, which costs nothing and is worth as much as the first."""
        name, target = name.strip("/"), target.strip("/")
        self._object(name_bytes(target))  # raises KeyError when there is none
        self._check_name(name)
        parent, leaf = self._group(name)
        try:
            parent.links.create_hard(name_bytes(leaf), h5g.open(self._current(), b"/"), name_bytes(target))
        except (OSError, RuntimeError, ValueError) as error:
            raise refused(self.name, cause_of(error), dataset=name) from error
        self._in_place.note_addition(self._session, name)

    # -- the end

    def publish(self, durable: bool) -> None:
        """Raises Error again once storage has failed in it."""
        if self._lost is not None:
            raise self._lost
        if self._session is None:
            return
        if self._failed is not None:
            error = self._failed
            self.abandon()
            raise error
        self._stored.clear()
        if self._new is None:
            session, self._session = self._session, None
            with self._remembered():
                self._in_place.publish(session, durable)
            return
        try:
            with self._remembered():
                size = self._session.finish()
                self._session.write_all(size)
                self._new.publish(durable)
        except BaseException:
            self.abandon()
            raise
        self._new = self._session = None
        self._in_place.remember()

    def need_same(self) -> None:
        """Error when another file has the name now."""
        if self._session is not None and self._new is None:
            need_named(self._session.descriptor, self.name)

    def abandon(self) -> None:
        session, self._session = self._session, None
        self._stored.clear()
        self._indexes.clear()
        self._late.clear()
        self._failed = None
        if session is None:
            self._in_place.let_go()
            return
        if self._new is not None:
            session.drop()
            self._new.abandon()
            self._new = None
        else:
            self._in_place.abandon(session)

    def close(self) -> None:
        """Lets go of what was not published."""
        self.abandon()

    # -- inside

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except Error as error:
            if error.system_code:
                self._lost = error
            raise

    def _current(self) -> h5f.FileID:
        if self._lost is not None:
            raise self._lost
        if self._session is None:
            self._session, is_known = self._in_place.begin()
            if not is_known:
                self._indexes.clear()
                self._late.clear()
                self._user_blocks.clear()
        return self._session.file

    def _need_own(self, found: h5d.DatasetID | h5g.GroupID, name: str) -> None:
        """HDF5 follows an external link through the overlay of this file, and finds what the link does not mean."""
        if h5f.get_name(found) != NAME.encode():
            cause = "an external link leads to it, which is not followed while a file is open for writing"
            raise unsupported(self.name, cause, "open the other file itself, or this one for reading", name)

    def is_own(self, file: str) -> bool:
        """Whether elements that lie there are of this file: not those of external files and of virtual datasets."""
        return self._session is not None and file == self._session.path

    def _home(self, dataset: h5d.DatasetID) -> str:
        home = super()._home(dataset)
        return self._session.path if home == NAME else home

    def _watched_bytes(self, file: str) -> int:
        return os.stat(file).st_size  # noqa: PTH116

    def _source(self, file: str) -> Metadata:
        from penstock.formats.hdf5.reader import Hdf5

        return Hdf5(file, depth=1)

    def _write_attribute(self, target: h5g.GroupID | h5d.DatasetID, key: str, value: Any) -> None:
        write_attribute(self.name, target, key, value)

    def _check_growth(self, info: DatasetInfo, home: str, shape: Shape) -> None:
        most = info.resizable
        if most is None or len(shape) != info.ndim:
            raise refused(self.name, f"its shape {info.shape} is fixed; {shape} was asked for", "", info.name)
        if home != self._session.path:
            raise refused(self.name, f"it lies in another file, {home}", "open that one", info.name)
        for axis, (extent, old, limit) in enumerate(zip(shape, info.shape, most, strict=True)):
            if extent < old or (limit is not None and extent > limit):
                limits = f"between {old} and {'any number' if limit is None else limit}"
                raise refused(self.name, f"extent {extent} of dimension {axis} must be {limits}", "", info.name)

    def _create(self, new: NewDataset) -> None:
        name = new.name.strip("/")
        self._check_new(new, name)
        parent, leaf = self._group(name)
        try:
            space = space_of(new)
            dataset = h5d.create(parent, name_bytes(leaf), stored_type(new.dtype), space, self._creation(new))
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            raise refused(self.name, cause_of(error), dataset=name) from error
        self._in_place.note_addition(self._session, name)
        self._decorate(dataset, new)
        if not new.dtype.host_only and dataset.get_create_plist().get_layout() == h5d.CHUNKED:
            stored = self.stored(name)
            empty = no_chunks((0,) * len(new.shape), stored.info.chunk_shape)
            if new.compression is not None:
                self._keep_index(name, empty.on_grid(grid_of(new.shape, stored.info.chunk_shape[: stored.rank])))
                return
            self._keep_index(name, place_chunks(self._session, Growth(stored, (0,) * len(new.shape)), empty))

    def _decorate(self, dataset: h5d.DatasetID, new: NewDataset) -> None:
        """What belongs to a new dataset beside its elements."""
        for key, value in new.attributes.items():
            self._write_attribute(dataset, key, value)
        if new.dimensions is not None:
            self._write_attribute(dataset, "DIMENSION_LABELS", list(new.dimensions))

    def _check_name(self, name: str) -> None:
        if any(part in ("", ".", "..") for part in name.split("/")):
            raise refused(self.name, f"{name!r} is not a valid name for a dataset", "", name)

    def _check_new(self, new: NewDataset, name: str) -> None:
        self._check_name(name)
        if new.dtype.host_only:
            self._need_new(name)
        need_possible(self.name, new, name)

    def _creation(self, new: NewDataset) -> h5p.PropDCID:
        create = h5p.create(h5p.DATASET_CREATE)
        shape_object(create, self.ordered)
        self._set_fill(create, new)
        lay_out(create, new, PAGE_BYTES)
        return create

    def _set_fill(self, create: h5p.PropDCID, new: NewDataset) -> None:
        """HDF5's own fill value is zero."""

    def _group(self, name: str) -> tuple[h5f.FileID | h5g.GroupID, str]:
        """The group that a dataset belongs to, made where it is missing, and the dataset's name in it."""
        *path, leaf = name.split("/")
        at: Any = h5g.open(self._current(), b"/")
        for part in path:
            try:
                at = h5o.open(at, name_bytes(part))
                self._need_own(at, name)
            except KeyError:
                at = self._new_group(at, part, name)
            if not isinstance(at, h5g.GroupID):
                raise refused(self.name, f"{part!r} is a dataset, so nothing can lie in it", "", name)
        return at, leaf

    def _new_group(self, at: h5g.GroupID, part: str, name: str) -> h5g.GroupID:
        try:
            return h5g.create(at, name_bytes(part), gcpl=group_list(self.ordered, self._many_members))
        except (OSError, RuntimeError, ValueError) as error:  # there is a link that leads nowhere in this file
            raise refused(self.name, f"group {part!r} cannot be made: {cause_of(error)}", "", name) from error
