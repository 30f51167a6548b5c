"""What is asked of an HDF5 file's metadata, whoever holds the file: a reader, or a writer with changes under way.

Contiguous datasets are one extent, chunked ones a row for each stored chunk; virtual and external ones become rows too
where their parts lie plainly in files. Filtered chunks, compact datasets and all other layouts are encoded rows, which
the HDF5 library decodes.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5o

from penstock._error import Error
from penstock.formats.faults import cut_short, damaged, unsupported
from penstock.formats.hdf5 import (
    external as hdf5_external,
    filters as hdf5_filters,
    sources as hdf5_sources,
    virtual as hdf5_virtual,
)
from penstock.formats.hdf5.attributes import StoredAttributes
from penstock.formats.hdf5.index import ChunkIndex, Filters, all_encoded, chunk_lookup, edges_in_doubt, read_index
from penstock.formats.hdf5.library import Misplaced, begins_the_file, place_of, user_block_of
from penstock.formats.hdf5.mapped import MappedReads, left_out, not_open
from penstock.formats.hdf5.open import (
    explained,
    home_of,
    name_bytes,
    names_of,
    object_at,
    open_dataset,
    release,
)
from penstock.formats.hdf5.stored import Stored, describe
from penstock.formats.hdf5.values import read_values
from penstock.formats.model import Box, ChunkLookup, ChunkTable, Container, DatasetInfo

_MOST_KEPT = 64  # descriptions, and indexes of chunks


class Metadata(Container):
    """Datasets, tables and attributes of one HDF5 file."""

    format = "hdf5"
    hidden_attributes: frozenset[str] = frozenset()
    part_bytes: int | None = (
        16 << 20
    )  # HDF5 decodes one chunk after the other, 0.1 s at a time, and no other call meanwhile

    def __init__(self, name: str | os.PathLike[str], skip_checksums: bool = False) -> None:
        self.name = os.fspath(name)
        self.skip_checksums = skip_checksums
        self._stored: OrderedDict[str, Stored] = OrderedDict()
        self._indexes: OrderedDict[str, ChunkIndex] = OrderedDict()
        self._sources: OrderedDict[str, hdf5_sources.Sources] = OrderedDict()  # of virtual datasets
        self._user_blocks: dict[str, int] = {}  # by file
        self._opened: dict[str, h5d.DatasetID] = {}  # one that was found, and is not described yet

    @abstractmethod
    def _current(self) -> h5f.FileID:
        """The file as HDF5 sees it now. Raises when it is closed or was changed by others."""

    @property
    def _reading_file(self) -> h5f.FileID | None:
        """The file, where it is open for reading, and was not replaced since the question came in."""
        return None

    @abstractmethod
    def _watched_bytes(self, file: str) -> int:
        """Size of a file that an answer depends on, which must not change from now on."""

    @abstractmethod
    def _source(self, file: str) -> Metadata:
        """The file of a virtual dataset's source, opened."""

    @abstractmethod
    def close(self) -> None: ...

    def _need_own(self, found: h5d.DatasetID | h5g.GroupID, name: str) -> None:  # noqa: B027 - readers may use any
        """Raises Error of an object that may not be used, because a link led to another file."""

    def _home(self, dataset: h5d.DatasetID) -> str:
        """Name of the file that a dataset lies in."""
        return home_of(dataset)

    def names(self) -> Sequence[str]:
        file = self._current()
        with explained(self.name, names_exist=True):
            return tuple(names_of(file))

    def names_in(self, group: str) -> Sequence[str]:
        """Groups that have several names, and those that soft and external links lead to, are looked through when they
        are asked for."""
        listed = super().names_in(group)
        if listed or not group or type(self).names is not Metadata.names:  # it hides some
            return listed
        file = self._current()
        with explained(self.name, names_exist=True):
            return [f"{group}/{name}" for name in names_of(file, group)]

    def is_group(self, name: str) -> bool:
        return self._leads_to_group(self._current(), name.strip("/"))

    def _leads_to_group(self, file: h5f.FileID, path: str) -> bool:
        found = None if path in self._stored else object_at(file, path)
        if isinstance(found, h5d.DatasetID):  # it is most often described next
            self._opened = {path: found}
        if isinstance(found, h5g.GroupID):
            self._need_own(found, path)
        return isinstance(found, h5g.GroupID)

    def described(self, name: str) -> DatasetInfo | None:
        """Whether the file has changed is asked once for both questions."""
        if type(self).names is not Metadata.names:
            return super().described(name)
        file, path = self._current(), name.strip("/")
        if path not in self._stored and self._leads_to_group(file, path):
            return None
        return self._stored_in(file, path).info

    def info(self, name: str) -> DatasetInfo:
        return self.stored(name).info

    def table(self, name: str, box: Box) -> ChunkTable:
        stored = self.readable(name)
        if stored.info.dtype.host_only:
            raise unsupported(self.name, stored.info.conversion, dataset=stored.info.name)
        with explained(self.name, stored.info.name):
            table = self._table(stored, box)
        sizes = [self._watched_bytes(file) for file in table.files]
        _check_ends(table, stored.info.name, sizes)
        missing = self.gaps(name, box)
        return replace(table, missing=missing) if missing else table

    def gaps(self, name: str, box: Box) -> tuple[str, ...]:
        """What the box lacks, so that it reads as fill values in part. Raises Error where HDF5 cannot go on without."""
        stored = self.stored(name)
        layout = stored.info.layout
        if layout not in ("virtual", "external") or any(a >= b for a, b in zip(box.start, box.stop, strict=True)):
            return ()
        if layout == "external":
            return () if stored.runs is not None else hdf5_external.need_there(stored, box)
        with hdf5_sources.in_turn(self._source) as source:
            return self._sources_of(stored).gaps(source, box)

    def _sources_of(self, stored: Stored) -> hdf5_sources.Sources:
        sources = self._sources.get(stored.info.name)
        if sources is None:
            sources = hdf5_sources.Sources(stored)
            keep(self._sources, stored.info.name, sources)
        return sources

    def _source_files(self, stored: Stored, box: Box) -> set[str]:
        """Those that are there, of a part of a virtual dataset."""
        with hdf5_sources.in_turn(self._source) as source:
            return self._sources_of(stored).files(source, box)

    def _anew(self, stored: Stored) -> Stored:
        """The dataset closed, and with it its sources, and opened again."""
        name = stored.info.name
        release(stored.dataset)
        fresh = replace(stored, dataset=open_dataset(self._current(), self.name, name))
        self._stored[name] = fresh
        self._sources_of(fresh).moved(fresh)
        return fresh

    def decode(self, name: str, box: Box) -> memoryview:
        stored = self.readable(name)
        hdf5_filters.check_available(stored.home, stored.info.name, stored.dataset.get_create_plist())
        with explained(self.name, stored.info.name):
            if stored.info.layout != "virtual":
                return stored.read(box)
            return MappedReads(stored, partial(self._source_files, stored), self._anew).read(box)

    def values(self, name: str, box: Box) -> np.ndarray:
        stored = self.readable(name)
        assert stored.how is not None, "elements of a fixed size are plain bytes"
        hdf5_filters.check_available(stored.home, stored.info.name, stored.dataset.get_create_plist())
        with explained(self.name, stored.info.name):
            files = self._source_files(stored, box) if stored.info.layout == "virtual" else set()
            found = read_values(stored.dataset, stored.how, box, self._watched_bytes(stored.home))
            missing = not_open(files) if stored.info.layout == "virtual" else None
            if missing is not None:
                raise left_out(self._anew(stored), missing)
        return found

    def stored_bytes(self, name: str) -> int:
        """As HDF5 counts them: text and lists lie in heaps, which are not counted, and leave 16 bytes each here."""
        return int(self.stored(name).dataset.get_storage_size())

    def hindrance(self, name: str) -> str:
        """Why the dataset cannot be read by this process: its type, a filter or a file that is not there."""
        info = self.info(name)
        try:
            stored = self.readable(name)
            if info.filters and isinstance(info.pipeline, str):  # else the cores undo them
                hdf5_filters.check_available(stored.home, info.name, stored.dataset.get_create_plist())
            if info.layout == "external":
                self.gaps(name, Box((0,) * info.ndim, info.shape))
        except Error as error:
            return error.cause
        return ""

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        path = name_bytes(group.strip("/")) or b"/"
        self._object(path)
        return StoredAttributes(self.name, lambda: self._object(path), self.hidden_attributes)

    def has_at_root(self, attribute: str) -> bool:
        try:
            return bool(h5a.exists(self._current(), name_bytes(attribute)))
        except (OSError, RuntimeError, ValueError, KeyError):  # what is damaged is told by what needs it
            return False

    def stored(self, name: str) -> Stored:
        """The dataset as HDF5 describes it, and with the chunks that we make of its layout."""
        return self._stored_in(self._current(), name.strip("/"))

    def _stored_in(self, file: h5f.FileID, name: str) -> Stored:
        if name in self._stored:
            self._stored.move_to_end(name)
            return self._stored[name]
        with explained(self.name, name):
            found = self._with_runs(self._found(file, name))
        keep(self._stored, name, found)
        return found

    def _found(self, file: h5f.FileID, name: str) -> Stored:
        dataset = self._opened.pop(name, None) or open_dataset(file, self.name, name)
        self._need_own(dataset, name)
        path = name_bytes(name)
        attributes = StoredAttributes(self.name, lambda: self._object(path), self.hidden_attributes)
        found = describe(name, dataset, self._home(dataset), attributes)
        self._watched_bytes(found.home)
        return found

    def readable(self, name: str) -> Stored:
        stored = self.stored(name)
        if stored.info.refusal:
            raise unsupported(self.name, stored.info.refusal, dataset=stored.info.name)
        return stored

    def _with_runs(self, found: Stored) -> Stored:
        """Virtual and external layouts get the chunk shape of the runs that they consist of."""
        info = found.info
        if info.layout not in ("virtual", "external") or info.refusal or info.conversion:
            return found
        runs = hdf5_virtual.runs_of(self._source, found) if info.layout == "virtual" else hdf5_external.runs_of(found)
        return found if runs is None else replace(found, info=replace(info, chunk_shape=runs.chunk_shape), runs=runs)

    def _table(self, stored: Stored, box: Box) -> ChunkTable:
        info, files = stored.info, (stored.home,)
        if any(low >= high for low, high in zip(box.start, box.stop, strict=True)):
            return plain_rows(files, info.ndim, ())
        if info.layout == "contiguous" and not info.conversion:
            return plain_rows(files, info.ndim, self._extent(stored))
        if info.layout == "chunked":
            return self._chunk_table(stored, box)
        if stored.runs is not None:
            return stored.runs.table(box)
        return plain_rows(files, info.ndim, ((0, 0, True),))

    def _extent(self, stored: Stored) -> tuple[tuple[int, int, bool], ...]:
        """The row of a contiguous dataset; none when it has no space yet, so that all is fill value."""
        offset, home = place_of(stored.dataset), stored.home
        if offset is None:
            return ()
        block = self._user_block(stored)
        if offset < block:
            cause = f"its data begin at byte {offset}, inside the user block of {block} bytes"
            raise damaged(home, cause, stored.info.name)
        return ((offset, prod(stored.info.shape) * stored.info.dtype.itemsize, False),)

    def _user_block(self, stored: Stored) -> int:
        home = stored.home
        if home not in self._user_blocks:
            begins = begins_the_file(home, self._reading_file if home == self.name else None)
            self._user_blocks[home] = 0 if begins else user_block_of(stored.dataset)
        return self._user_blocks[home]

    def _described(self, name: str) -> Stored:
        """As stored(), for answers that hold while the file is as `watch` says: nothing is looked at again."""
        return self._stored.get(name) or self.stored(name)

    def place(self, name: str) -> int | None:
        """None where the dataset has chunks, no space yet, or does not lie whole in the file."""
        stored = self._described(name)
        if stored.info.layout != "contiguous" or stored.info.refusal:
            return None
        offset = place_of(stored.dataset)
        if offset is None or offset < self._user_block(stored):
            return None
        bytes = prod(stored.info.shape) * stored.info.dtype.itemsize
        return offset if offset + bytes <= self._watched_bytes(stored.home) else None

    def lookup(self, name: str) -> ChunkLookup | None:
        """None where some chunks may be unfiltered and no mask tells, or HDF5 may say wrong positions (see
        library.true_origins), or leave out the user block."""
        stored = self._described(name)
        info = stored.info
        if info.layout != "chunked" or any(most is None for most in (info.resizable or ())[1:]):
            return None
        if self.skip_checksums or self._user_block(stored):
            return None
        end = self._watched_bytes(stored.home)
        return chunk_lookup(stored.dataset, info, end, lambda: self._read_index(stored))

    def _chunk_table(self, stored: Stored, box: Box) -> ChunkTable:
        rank, index = stored.rank, self._index(stored)
        table = index.table((stored.home,), index.meet(Box(box.start[:rank], box.stop[:rank])))
        if self._doubts_edges(stored):
            table = edges_in_doubt(table, stored.info)
        if not stored.item_dims:
            return table
        inner = np.zeros((len(table.origin), len(stored.item_dims)), np.int64)
        return replace(table, origin=np.hstack([table.origin, inner]))

    def _doubts_edges(self, stored: Stored) -> bool:
        """Whether HDF5 may have left chunks at the dataset's end unfiltered."""
        return True

    def _index(self, stored: Stored) -> ChunkIndex:
        index = self._indexes.get(stored.info.name)
        if index is None:
            index = self._read_index(stored)
            self._keep_index(stored.info.name, index)
        return index

    def _read_index(self, stored: Stored) -> ChunkIndex:
        info, rank = stored.info, stored.rank
        if info.conversion and isinstance(info.pipeline, str):
            return all_encoded(info.shape[:rank], info.chunk_shape[:rank])
        sums = sum(1 << bit for bit, one in enumerate(info.filters) if one == "fletcher32" and self.skip_checksums)
        filters = Filters(len(info.filters), sums, bool(info.conversion))
        try:
            return read_index(stored.dataset, info.shape[:rank], info.chunk_shape[:rank], filters)
        except Misplaced:
            return all_encoded(info.shape[:rank], info.chunk_shape[:rank])

    def _keep_index(self, name: str, index: ChunkIndex) -> None:
        keep(self._indexes, name, index)

    def _object(self, path: bytes) -> h5g.GroupID:
        try:
            found = h5o.open(self._current(), path)
            self._need_own(found, path.decode("utf-8", "replace"))
            return found
        except KeyError:
            raise KeyError(f"{self.name} has no group or dataset {path.decode('utf-8', 'replace')!r}") from None


def keep(kept: OrderedDict[str, Any], name: str, value: Any) -> None:
    kept[name] = value
    if len(kept) > _MOST_KEPT:
        kept.popitem(last=False)


def plain_rows(files: tuple[str, ...], ndim: int, rows: tuple[tuple[int, int, bool], ...]) -> ChunkTable:
    """Rows (offset, bytes, encoded) that hold the whole dataset."""
    count = len(rows)
    return ChunkTable(
        files,
        np.zeros(count, np.int32),
        np.zeros((count, ndim), np.int64),
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], bool),
    )


def no_rows(ndim: int) -> ChunkTable:
    """The table of a dataset whose elements HDF5 places itself."""
    return plain_rows((), ndim, ())


def _check_ends(table: ChunkTable, name: str, sizes: list[int]) -> None:
    """An extent beyond the end of its file is refused, with the dataset's name."""
    if not len(table.bytes):
        return
    last = np.array(sizes, np.int64)[table.file_index] - table.bytes  # that one may begin at; a sum could overflow
    over = np.flatnonzero(table.offset_bytes > last)
    if len(over):
        at = int(table.file_index[over[0]])
        end = int(table.offset_bytes[over[0]]) + int(table.bytes[over[0]])
        cause = f"its data reach to byte {end}, the file ends at {sizes[at]}"
        raise cut_short(table.files[at], cause, name)
