"""HDF5 files, opened for reading: h5py reads the metadata, the mover the bytes.

Opening a file in HDF5 takes most of the time of a program that reads one row of it. So datasets of plain numbers are
found by a parser of our own, and the file is opened in HDF5 by the first question that goes beyond them.

What must stay true: what is handed out describes the file as it was opened; once it, or a file that it leads to, has
changed, every question is answered by an Error.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from h5py import h5d, h5f

from penstock import _core
from penstock._arrays.dtype import DType
from penstock.formats.faults import unsupported
from penstock.formats.hdf5 import virtual as hdf5_virtual
from penstock.formats.hdf5.attributes import StoredAttributes
from penstock.formats.hdf5.filters import ToldFilters, told_of
from penstock.formats.hdf5.index import is_doubtful
from penstock.formats.hdf5.metadata import Metadata, keep, plain_rows
from penstock.formats.hdf5.open import Stamp, check_unchanged, name_bytes, stamp_of
from penstock.formats.hdf5.shared import SharedHandle, is_open_elsewhere, share_file
from penstock.formats.hdf5.stored import NO_CHUNKS, Stored
from penstock.formats.model import Box, ChunkLookup, ChunkTable, DatasetInfo, Watch

_MOST_LOOKED_UP = 64  # chunks of a dataset's first box, and a fourth of all


class _PlainDataset(NamedTuple):
    """One of numbers that lie as they are, or in chunks."""

    info: DatasetInfo
    offset_bytes: int | None  # in the file; None: it has chunks


class _Lookup:
    """A ChunkLookup whose answers come from another place when the file is opened in HDF5."""

    __slots__ = ("find",)

    def __init__(self, find: ChunkLookup | None) -> None:
        self.find = find

    def __call__(self, cell: Sequence[int]) -> tuple[int, int, int] | None:
        find = self.find
        return None if find is None else find(cell)


_dtype_named = cache(DType.of)


def _parsed(name: str, stamp: Stamp) -> _core.PlainHdf5 | None:
    """None where HDF5 has to open the file, or to tell why it cannot: a program of this process may have it open to
    write, and locks may be other ones than HDF5 usually takes."""
    if "HDF5_USE_FILE_LOCKING" in os.environ or is_open_elsewhere():
        return None
    parsed = _core.open_plain_hdf5(name)
    return parsed if parsed is not None and parsed.stamp() == stamp else None


class Hdf5(Metadata):
    """An HDF5 file, opened for reading.

    Args:
        skip_checksums: chunks that only have a fletcher32 checksum are read without it: directly, and unchecked.
        depth: how many virtual datasets lead from file to file to this one.
    """

    def __init__(self, name: str | os.PathLike[str], *, skip_checksums: bool = False, depth: int = 0) -> None:
        super().__init__(name, skip_checksums)
        self.depth = depth
        self._stamps = {self.name: stamp_of(self.name)}  # of all files that answers depend on
        self._is_closed = False
        self._parsed = _parsed(self.name, self._stamps[self.name]) if type(self) is Hdf5 else None
        self._plain: OrderedDict[str, _PlainDataset] = OrderedDict()
        self._lent: list[tuple[str, _Lookup]] = []  # to readers, which find chunks by what was parsed
        self._shared: SharedHandle | None = None
        if self._parsed is None:
            self._shared = share_file(self.name, self._stamps[self.name])
        self._looked_up: set[str] = set()  # datasets of which a few chunks were found

    def close(self) -> None:
        self._stored.clear()
        self._indexes.clear()
        self._sources.clear()
        self._opened.clear()
        self._plain.clear()
        self._lent.clear()
        if self._parsed is not None:
            self._parsed.close()
        self._is_closed, self._shared, self._parsed = True, None, None

    def _need_current(self) -> None:
        if self._is_closed:
            raise ValueError(f"{self.name} is closed")
        check_unchanged(self.name, self._stamps[self.name])

    def _current(self) -> h5f.FileID:
        self._need_current()
        if self._shared is None:
            self._shared = share_file(self.name, self._stamps[self.name])
            self._hand_over()
        return self._shared.file

    def _hand_over(self) -> None:
        """Readers that find chunks by what was parsed ask HDF5 from now on: one descriptor is enough for a file."""
        parsed, self._parsed = self._parsed, None
        if parsed is None:
            return
        lent, self._lent = self._lent, []
        try:
            for name, lookup in lent:
                lookup.find = super().lookup(name)
        finally:
            parsed.close()

    def _found_plain(self, name: str) -> _PlainDataset | None:
        """None where HDF5 has to be asked."""
        if self._parsed is None and not self._plain:
            return None
        self._need_current()
        known = self._plain.get(name)
        if known is None and self._parsed is not None:
            known = self._described_plain(name, self._parsed.find(name_bytes(name)))
        return known

    def _described_plain(self, name: str, found: tuple[Any, ...] | None) -> _PlainDataset | None:
        if found is None:
            return None
        dtype, shape, fill, offset, chunks = found
        path = name_bytes(name)
        attributes = StoredAttributes(self.name, lambda: self._object(path), self.hidden_attributes)
        told: dict[str, Any] = {"fill": fill, "attributes": attributes, "recipe": NO_CHUNKS, "pipeline": NO_CHUNKS}
        if chunks is not None:
            chunk_shape, largest, filters = chunks
            told |= {
                "layout": "chunked",
                "chunk_shape": chunk_shape,
                "resizable": largest if largest != shape else None,
            }
            told |= told_of(ToldFilters(filters))
        known = _PlainDataset(DatasetInfo.plain(name, shape, _dtype_named(dtype), **told), offset)
        keep(self._plain, name, known)
        return known

    def described(self, name: str) -> DatasetInfo | None:
        known = self._found_plain(name.strip("/"))
        return super().described(name) if known is None else known.info

    def info(self, name: str) -> DatasetInfo:
        known = self._found_plain(name.strip("/"))
        return super().info(name) if known is None else known.info

    def table(self, name: str, box: Box) -> ChunkTable:
        known = self._found_plain(name.strip("/"))
        if known is None or known.offset_bytes is None:
            return super().table(name, box)
        bytes = math.prod(known.info.shape) * known.info.dtype.itemsize
        is_empty = any(low >= high for low, high in zip(box.start, box.stop, strict=True))
        return plain_rows((self.name,), known.info.ndim, () if is_empty else ((known.offset_bytes, bytes, False),))

    def place(self, name: str) -> int | None:
        known = self._plain.get(name)
        return super().place(name) if known is None else known.offset_bytes

    def lookup(self, name: str) -> ChunkLookup | None:
        known, parsed = self._plain.get(name), self._parsed
        if known is None or known.info.layout != "chunked" or parsed is None or self.skip_checksums:
            return super().lookup(name)
        info, path, end = known.info, name_bytes(name), self._stamps[self.name].bytes

        def find(cell: Sequence[int]) -> tuple[int, int, int] | None:
            found = parsed.chunk(path, cell)
            return None if found is None or found[2] or is_doubtful(info, cell, found, end) else found

        made = _Lookup(find)
        self._lent.append((name, made))
        return made

    @property
    def _reading_file(self) -> h5f.FileID | None:
        return None if self._shared is None else self._shared.file

    def _home(self, dataset: h5d.DatasetID) -> str:
        found = super()._home(dataset)
        return self.name if self._shared is not None and found == self._shared.name else found

    def _watched_bytes(self, file: str) -> int:
        if file not in self._stamps:
            self._stamps[file] = stamp_of(file)
        elif file != self.name:  # that one was looked at when the question came in
            check_unchanged(file, self._stamps[file])
        return self._stamps[file].bytes

    def _chunk_table(self, stored: Stored, box: Box) -> ChunkTable:
        few = self._few_chunks(stored, box)
        return super()._chunk_table(stored, box) if few is None else few

    def _few_chunks(self, stored: Stored, box: Box) -> ChunkTable | None:
        """Those of a dataset's first box, where they are few of many and all there: HDF5 finds them one by one. The
        second box takes the index of all."""
        info, name = stored.info, stored.info.name
        if name in self._indexes or name in self._looked_up or info.conversion or stored.item_dims:
            return None
        numbers = box.chunks(info.chunk_shape)
        grid = (-(-extent // size) for extent, size in zip(info.shape, info.chunk_shape, strict=True))
        if math.prod(map(len, numbers)) > min(_MOST_LOOKED_UP, math.prod(grid) // 4):
            return None
        lookup = self.lookup(name) if stored.home == self.name else None
        if lookup is None:
            return None
        self._looked_up.add(name)
        cells = list(itertools.product(*numbers))
        found = [lookup(cell) for cell in cells]
        if any(one is None or not (info.filters or one[1] == info.chunk_bytes) for one in found):
            return None
        columns = np.array(found, np.int64).reshape(len(cells), 3)
        origin = np.array(cells, np.int64) * np.array(info.chunk_shape, np.int64)
        encoded = np.full(len(cells), bool(info.filters))
        index = np.zeros(len(cells), np.int32)
        offset, size = columns[:, 0].copy(), columns[:, 1].copy()
        return ChunkTable((stored.home,), index, origin, offset, size, encoded, skipped=columns[:, 2].copy())

    def watch(self, name: str) -> Watch | None:
        if name in self._plain:  # one of chunks too: they lie in the file
            return Watch(self.name, *self._stamps[self.name])
        stored = self._described(name)
        plain = stored.info.layout in ("contiguous", "chunked") and stored.home == self.name
        return Watch(self.name, *self._stamps[self.name]) if plain else None

    def _source(self, file: str) -> Hdf5:
        if self.depth == hdf5_virtual.MOST_DEPTH:
            raise unsupported(self.name, "virtual datasets lead to virtual datasets without end")
        self._watched_bytes(file)
        return Hdf5(file, skip_checksums=self.skip_checksums, depth=self.depth + 1)
