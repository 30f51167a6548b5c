"""HDF5 files, opened for reading: h5py reads the metadata, the mover the bytes.

What must stay true: what is handed out describes the file as it was opened; once it, or a file that it leads to, has
changed, every question is answered by an Error.
"""

from __future__ import annotations

import itertools
import math
import os

import numpy as np
from h5py import h5d, h5f

from penstock.formats.faults import unsupported
from penstock.formats.hdf5 import virtual as hdf5_virtual
from penstock.formats.hdf5.metadata import Metadata
from penstock.formats.hdf5.open import check_unchanged, stamp_of
from penstock.formats.hdf5.shared import SharedHandle, share_file
from penstock.formats.hdf5.stored import Stored
from penstock.formats.model import Box, ChunkTable, Watch

_MOST_LOOKED_UP = 64  # chunks of a dataset's first box, and a fourth of all


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
        self._shared: SharedHandle | None = share_file(self.name, self._stamps[self.name])
        self._looked_up: set[str] = set()  # datasets of which a few chunks were found

    def close(self) -> None:
        self._stored.clear()
        self._indexes.clear()
        self._sources.clear()
        self._opened.clear()
        self._shared = None

    def _current(self) -> h5f.FileID:
        if self._shared is None:
            raise ValueError(f"{self.name} is closed")
        check_unchanged(self.name, self._stamps[self.name])
        return self._shared.file

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
        stored = self._described(name)
        plain = stored.info.layout in ("contiguous", "chunked") and stored.home == self.name
        return Watch(self.name, *self._stamps[self.name]) if plain else None

    def _source(self, file: str) -> Hdf5:
        if self.depth == hdf5_virtual.MOST_DEPTH:
            raise unsupported(self.name, "virtual datasets lead to virtual datasets without end")
        self._watched_bytes(file)
        return Hdf5(file, skip_checksums=self.skip_checksums, depth=self.depth + 1)
