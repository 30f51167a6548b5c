"""Writing chunks that go through filters: into datasets that no reader can see yet, and into those that readers see.

Where a dataset was made in this session, HDF5 gives each chunk its space, and another one when it is written again.
Where readers see it, a chunk that is stored encoded is written to new space, and its entry in the index leads there
(moved); a chunk that was never stored gets an entry from HDF5, as chunks of datasets that grow do. What must stay true:
until a file is published, its readers find every chunk where it was and as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from h5py import h5o

from penstock._error import Error
from penstock.formats.faults import unsupported
from penstock.formats.hdf5.changing.late import LateChunks
from penstock.formats.hdf5.changing.moved import MovedChunks
from penstock.formats.hdf5.changing.place import cell_of, place_encoded, place_one
from penstock.formats.hdf5.filters import encoder_of
from penstock.formats.hdf5.index import ChunkIndex, number_of
from penstock.formats.hdf5.metadata import Metadata
from penstock.formats.hdf5.open import explained
from penstock.formats.hdf5.stored import Stored
from penstock.formats.model import Box, Filter, Places, Shape, Writer

if TYPE_CHECKING:
    import os


class PackedChunks(Metadata, Writer):
    """What a writer of HDF5 does with chunks that go through filters."""

    _session: Any  # a Session, or None between a publish and the next question

    def __init__(self, name: str | os.PathLike[str]) -> None:
        super().__init__(name)
        self._late, self._moved = LateChunks(), MovedChunks()
        self._failed: Error | None = None  # something was half done, so nothing can be published

    def packing(self, name: str, box: Box) -> tuple[Filter, ...]:
        """Chunks that are stored as they are stay where they are, where no other is concerned."""
        stored = self.readable(name)
        if stored.info.layout != "chunked" or not stored.info.filters or stored.info.dtype.host_only:
            return ()
        index, box = self._index(stored), Box(box.start[: stored.rank], box.stop[: stored.rank])
        rows = index.meet(box)
        if self._is_unseen(stored):
            return encoder_of(stored.info) if not len(rows) or index.encoded[rows].any() else ()
        is_needed = index.encoded[rows].any()
        if not is_needed and len(rows) == _count(box, stored.info.chunk_shape):
            return ()
        filters = self._mover_of(stored)
        if is_needed and not filters:
            raise self._cannot_move(stored)
        return filters

    def packing_unit(self, name: str, box: Box) -> Shape | None:
        stored = self.readable(name)
        if stored.info.layout != "chunked" or not stored.info.filters or stored.info.dtype.host_only:
            return None
        if self._is_unseen(stored):
            return stored.info.chunk_shape if self.packing(name, box) else None
        index, box = self._index(stored), Box(box.start[: stored.rank], box.stop[: stored.rank])
        rows = index.meet(box)
        anew = index.encoded[rows].any() or len(rows) < _count(box, stored.info.chunk_shape)
        return stored.info.chunk_shape if anew and self._mover_of(stored) else None

    def place(self, name: str, origin: np.ndarray, sizes: np.ndarray) -> Places:
        stored = self.readable(name)
        index, origin = self._index(stored), origin[:, : stored.rank]
        cell = number_of(origin, index.grid, stored.info.chunk_shape[: stored.rank])
        is_new = np.full(len(cell), True) if self._is_unseen(stored) else index.rows_of(cell) < 0
        offsets = np.empty(len(cell), np.int64)
        with self._all_or_nothing():
            for give, rows in ((place_encoded, is_new), (self._moved.place, ~is_new)):
                if rows.any():
                    offsets[rows], index = give(self._session, stored, index, origin[rows], sizes[rows])
            self._keep_index(stored.info.name, index)
            if is_new.any():
                self._note_more_chunks(stored)
        return Places((self._session.path,), np.zeros(len(offsets), np.int64), offsets)

    def _note_more_chunks(self, stored: Stored) -> None:
        """Raises Error where the index of a dataset that readers see cannot take them in steps that are each safe."""

    def takes_one(self, name: str, origin: Shape) -> bool:
        stored = self.readable(name)
        if stored.item_dims or not stored.info.filters or not self._is_unseen(stored):
            return False
        cell, index = cell_of(stored, origin), self._indexes.get(stored.info.name) or self._index(stored)
        return not index.has(cell)

    def place_one(self, name: str, origin: Shape, bytes: int) -> tuple[str, int]:
        stored = self.readable(name)
        with self._all_or_nothing():
            offset = place_one(self._session, stored, origin, bytes)
            self._late.add(stored.info.name, cell_of(stored, origin), (origin, offset, bytes))
        return self._session.path, offset

    def _grows_by_packed(self, stored: Stored, before: Shape) -> bool:
        """Whether all that a dataset grows by is whole chunks, which are encoded when they are written."""
        shape, chunk = stored.info.shape[: stored.rank], stored.info.chunk_shape[: stored.rank]
        sides = zip(shape, before, chunk, strict=True)
        whole = all(old % size == 0 and new % size == 0 for new, old, size in sides if new != old)
        return whole and bool(stored.info.filters) and self._is_unseen(stored) and bool(encoder_of(stored.info))

    def _is_unseen(self, stored: Stored) -> bool:
        """Whether no reader can see the dataset yet. The index of others is changed in place, which changing/append
        proves for growth by chunks that are stored as they are."""
        session, name = self._session, stored.info.name
        if session.old is None or stored.home != session.path:
            return session.old is None and stored.home == session.path
        if name not in session.unseen:  # HDF5 reads all of an index to say where its dataset is
            address = h5o.get_info(stored.dataset).addr + session.old.offset
            session.unseen[name] = address >= session.old.end
        return session.unseen[name]  # type: ignore[no-any-return]

    def _mover_of(self, stored: Stored) -> tuple[Filter, ...]:
        """What chunks that readers see go through to be written anew; nothing where that cannot be."""
        is_own = stored.home == self._session.path
        return encoder_of(stored.info) if is_own and self._moved.can(self._session, stored) else ()

    def _doubts_edges(self, stored: Stored) -> bool:
        """HDF5 knows nothing of where chunks of these are now, and none was left unfiltered."""
        if stored.home != self._session.path or not stored.info.filters:
            return True
        return not (self._is_unseen(stored) or self._moved.can(self._session, stored))

    def _cannot_move(self, stored: Stored) -> Error:
        if not encoder_of(stored.info):
            cause = f"its chunks went through filters that are not applied here: {', '.join(stored.info.filters)}"
            advice = "write it with h5py"
        else:
            cause = "its chunks are compressed, and entries of their index are changed in B-trees of version 1 alone"
            advice = 'write it with h5py, or anew; files that are not made with libver="latest" have such B-trees'
        return unsupported(self.name, cause, advice, stored.info.name)

    def _index(self, stored: Stored) -> ChunkIndex:
        """With the chunks that were placed one by one."""
        index = super()._index(stored)
        whole = self._late.taken_into(stored.info.name, index)
        if whole is not index:
            self._keep_index(stored.info.name, whole)
        return whole

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """After an error in the block, HDF5 has changes that must not reach the file."""
        try:
            with explained(self.name):
                yield
        except Error as error:
            self._failed = error
            raise


def _count(box: Box, chunk: Shape) -> int:
    """Chunks that hold an element of the box."""
    sides = zip(box.start, box.stop, chunk, strict=False)
    return prod(max(0, -(-high // size) - low // size) for low, high, size in sides)
