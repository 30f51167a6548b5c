"""The chunk index of an HDF5 dataset as NumPy columns, and the part of it that meets a box.

Read once with H5Dchunk_iter, which visits all chunks in one pass; asking chunk by chunk is quadratic. What must stay
true: one row a chunk position inside the dataset, in order of position (a B-tree that a dead writer left half changed
may name a chunk twice, or hold chunks beyond the end: both are valid HDF5 and neither may be counted).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from math import prod
from typing import Any, NamedTuple

import numpy as np
from h5py import h5d

from penstock._arrays.distinct import first_of_each
from penstock.formats.hdf5.library import true_origins, user_block_left_out
from penstock.formats.model import Box, ChunkLookup, ChunkTable, DatasetInfo, Shape

ENCODED = 1  # by all filters of the dataset
IN_PART = 2  # by some of them, or in an unknown way
INDEX_AFTER = 8  # times as many chunks as were searched for: there are no more


class Filters(NamedTuple):
    """Filters of a dataset; a chunk's mask has a bit for each that was skipped."""

    count: int
    checksums: int = 0  # bits of fletcher32 filters whose sums the caller wants unchecked
    converted: bool = False  # the bytes that they leave are no values yet: the pipeline begins with what makes these

    def applied(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(how chunks are encoded, bytes that follow their elements). Fletcher32 only adds 4 bytes."""
        every = (1 << self.count) - 1
        if self.converted:
            return np.full(len(mask), ENCODED, np.int8), np.zeros(len(mask), np.int64)
        left = ~mask & every
        summed = (left != 0) & (left & ~self.checksums == 0)
        encoded = np.where(left == every, ENCODED, IN_PART)
        return np.where((left == 0) | summed, 0, encoded).astype(np.int8), 4 * summed


@dataclass(frozen=True)
class ChunkIndex:
    """Rows sorted by `cell`, the chunk's number in the grid of chunks (C order)."""

    grid: Shape
    chunk_shape: Shape
    cell: np.ndarray  # int64 [n]
    origin: np.ndarray  # int64 [n, ndim]
    offset_bytes: np.ndarray  # int64 [n]
    bytes: np.ndarray  # int64 [n]
    encoded: np.ndarray  # int8 [n]: 0, ENCODED or IN_PART
    skipped: np.ndarray  # int64 [n]: a bit for each filter that a chunk did not go through; -1: not known

    def meet(self, box: Box) -> np.ndarray:
        """Rows of the chunks that hold an element of the box."""
        spans = [
            (start // chunk, -(-stop // chunk) if stop > start else start // chunk)
            for start, stop, chunk in zip(box.start, box.stop, self.chunk_shape, strict=True)
        ]
        wanted = int(np.prod([max(0, high - low) for low, high in spans], dtype=np.float64))
        if wanted < len(self.cell) // 8:
            return self._find(spans)
        keep = np.ones(len(self.cell), bool)
        for axis, (low, high) in enumerate(spans):
            column = self.origin[:, axis]
            keep &= (column >= low * self.chunk_shape[axis]) & (column < high * self.chunk_shape[axis])
        return np.flatnonzero(keep)

    def _find(self, spans: list[tuple[int, int]]) -> np.ndarray:
        """A few chunks of many: looked up one by one."""
        cells = np.zeros(1, np.int64)
        for (low, high), extent in zip(spans, self.grid, strict=True):
            cells = (cells[:, None] * extent + np.arange(low, high, dtype=np.int64)).reshape(-1)
        rows = self.rows_of(cells)
        return rows[rows >= 0]

    def rows_of(self, cell: np.ndarray) -> np.ndarray:
        """Rows of chunks by their numbers; -1 where there is none."""
        if not len(self.cell):
            return np.full(len(cell), -1, np.int64)
        at = np.minimum(np.searchsorted(self.cell, cell), len(self.cell) - 1)
        return np.where(self.cell[at] == cell, at, -1)

    def on_grid(self, grid: Shape) -> ChunkIndex:
        """The same chunks when the dataset has grown."""
        if grid[1:] == self.grid[1:]:
            return replace(self, grid=grid)
        cell = number_of(self.origin, grid, self.chunk_shape)
        order = np.argsort(cell, kind="stable")
        columns = (cell, self.origin, self.offset_bytes, self.bytes, self.encoded, self.skipped)
        return ChunkIndex(grid, self.chunk_shape, *(column[order] for column in columns))

    def plus(
        self, cell: np.ndarray, origin: np.ndarray, offset_bytes: np.ndarray, bytes: int | np.ndarray
    ) -> ChunkIndex:
        """With more chunks: stored as they are, all of so many bytes, or encoded, each of its own."""
        if not len(cell):
            return self
        ours = (self.cell, self.origin, self.offset_bytes, self.bytes, self.encoded, self.skipped)
        sizes, zeros = np.full(len(cell), bytes, np.int64), np.zeros(len(cell), np.int64)
        encoded = np.full(len(cell), 0 if isinstance(bytes, int) else ENCODED, np.int8)
        more = (cell, origin, offset_bytes, sizes, encoded, zeros)
        columns = [np.concatenate(pair) for pair in zip(ours, more, strict=True)]
        if len(self.cell) and cell.min() < self.cell[-1]:
            order = np.argsort(columns[0], kind="stable")
            columns = [column[order] for column in columns]
        return ChunkIndex(self.grid, self.chunk_shape, *columns)

    def with_new(self, cell: np.ndarray, origin: np.ndarray, offset_bytes: np.ndarray, bytes: np.ndarray) -> ChunkIndex:
        """With encoded chunks, in any order, of which some take the place of those that are there."""
        order = np.argsort(cell, kind="stable")
        rows = self.rows_of(cell)
        left = np.ones(len(self.cell), bool)
        left[rows[rows >= 0]] = False
        columns = (self.cell, self.origin, self.offset_bytes, self.bytes, self.encoded, self.skipped)
        kept = self if left.all() else ChunkIndex(self.grid, self.chunk_shape, *(column[left] for column in columns))
        return kept.plus(cell[order], origin[order], offset_bytes[order], bytes[order])

    def place(self, cell: int) -> tuple[int, int, int] | None:
        """(offset, bytes, 0) of the chunk of this number; None where there is none, or a filter was skipped."""
        at = int(self.cell.searchsorted(cell))
        if at == len(self.cell) or self.cell[at] != cell or self.encoded[at] == IN_PART or self.skipped[at]:
            return None
        return int(self.offset_bytes[at]), int(self.bytes[at]), 0

    def has(self, cell: int) -> bool:
        """Whether the chunk of this number is there."""
        at = int(self.cell.searchsorted(cell))
        return at < len(self.cell) and int(self.cell[at]) == cell

    def table(self, files: tuple[str, ...], rows: np.ndarray) -> ChunkTable:
        index = np.zeros(len(rows), np.int32)
        encoded = self.encoded[rows]
        columns = (column[rows] for column in (self.origin, self.offset_bytes, self.bytes))
        return ChunkTable(files, index, *columns, encoded > 0, encoded == IN_PART, self.skipped[rows])


def read_index(dataset: h5d.DatasetID, shape: Shape, chunk_shape: Shape, filters: Filters) -> ChunkIndex:
    """`shape` and `chunk_shape` without the dimensions of an array type. Raises Misplaced."""
    stored: list[Any] = []
    dataset.chunk_iter(stored.append)
    count, ndim = len(stored), len(shape)
    starts, masks, offsets, sizes = zip(*stored, strict=True) if stored else ((), (), (), ())
    origin = np.fromiter(chain.from_iterable(starts), np.int64, count * ndim).reshape(count, ndim)
    offset = np.array([-1 if one is None else one for one in offsets], np.int64)
    offset[offset >= 0] += user_block_left_out(dataset)
    size, mask = np.array(sizes, np.int64), np.array(masks, np.int64)
    encoded, trailer = filters.applied(mask)
    origin = true_origins(dataset, origin, chunk_shape)
    grid = tuple(-(-extent // chunk) for extent, chunk in zip(shape, chunk_shape, strict=True))
    cell = number_of(origin, grid, chunk_shape)
    rows = np.flatnonzero((origin < np.array(shape, np.int64)).all(axis=1) & (offset >= 0))
    if (np.diff(cell[rows]) <= 0).any():
        rows = rows[first_of_each(cell[rows])[1]]
    columns = (cell, origin, offset, size - trailer, encoded, mask << int(filters.converted))
    return ChunkIndex(grid, chunk_shape, *(column[rows] for column in columns))


def number_of(origin: np.ndarray, grid: Shape, chunk_shape: Shape) -> np.ndarray:
    """Numbers of chunks in the grid. The first extent of the grid plays no part."""
    cell = np.zeros(len(origin), np.int64)
    for axis, (extent, chunk) in enumerate(zip(grid, chunk_shape, strict=True)):
        cell = cell * extent + origin[:, axis] // chunk
    return cell


def cell_number(cell: Sequence[int], grid: Shape) -> int:
    """Of one chunk, by its place in the grid."""
    number = 0
    for at, extent in zip(cell, grid, strict=True):
        number = number * extent + at
    return number


def no_chunks(shape: Shape, chunk_shape: Shape) -> ChunkIndex:
    """The index of a dataset that has no chunks yet."""
    grid = tuple(-(-extent // chunk) for extent, chunk in zip(shape, chunk_shape, strict=True))
    empty = np.empty(0, np.int64)
    origin, encoded = np.empty((0, len(grid)), np.int64), np.empty(0, np.int8)
    return ChunkIndex(grid, chunk_shape, empty, origin, empty, empty, encoded, empty)


def all_encoded(shape: Shape, chunk_shape: Shape) -> ChunkIndex:
    """The index of a dataset whose chunks only HDF5 can find."""
    grid = tuple(-(-extent // chunk) for extent, chunk in zip(shape, chunk_shape, strict=True))
    origin = np.stack(np.indices(grid), axis=-1).reshape(-1, len(grid)) * np.array(chunk_shape, np.int64)
    nowhere, count = np.zeros(len(origin), np.int64), len(origin)
    encoded, unknown = np.full(count, IN_PART, np.int8), np.full(count, -1, np.int64)
    return ChunkIndex(grid, chunk_shape, np.arange(count), origin, nowhere, nowhere, encoded, unknown)


def is_doubtful(info: DatasetInfo, cell: Sequence[int], place: tuple[int, int, int], end: int) -> bool:
    """Whether a chunk leaves the file, or lies at the dataset's end and is of just the size of its elements: HDF5 may
    have left that one unfiltered, and no mask tells."""
    offset, size, _ = place
    if offset + size > end:
        return True
    if not info.filters or size != info.chunk_bytes:
        return False
    return any((at + 1) * chunk > extent for at, chunk, extent in zip(cell, info.chunk_shape, info.shape, strict=False))


def chunk_lookup(
    dataset: h5d.DatasetID, info: DatasetInfo, end: int, read_index: Callable[[], ChunkIndex]
) -> ChunkLookup:
    """By HDF5's search, which takes some 20 us, and by the index when an eighth of the chunks were searched for: it is
    read as quickly as a tenth are found. `end`: of the file. The index is the lookup's own: one that the file keeps may
    be of the file as it is later."""
    rank = dataset.rank
    chunk = info.chunk_shape[:rank]
    grid = tuple(-(-extent // size) for extent, size in zip(info.shape[:rank], chunk, strict=True))
    searches, chunks = count(1), prod(grid)
    known: list[ChunkIndex] = []

    def search(cell: Sequence[int]) -> tuple[int, int, int] | None:
        found = dataset.get_chunk_info_by_coord(tuple(at * size for at, size in zip(cell, chunk, strict=True)))
        return None if found.byte_offset is None or found.filter_mask else (found.byte_offset, found.size, 0)

    def find(cell: Sequence[int]) -> tuple[int, int, int] | None:
        try:
            if INDEX_AFTER * next(searches) < chunks:
                place = search(cell[:rank])
            else:
                if not known:
                    known.append(read_index())
                place = known[0].place(cell_number(cell[:rank], grid))
        except (OSError, RuntimeError, ValueError, KeyError):
            return None
        return None if place is None or is_doubtful(info, cell, place, end) else place

    return find


def edges_in_doubt(table: ChunkTable, info: DatasetInfo) -> ChunkTable:
    """HDF5 may have left chunks at the dataset's end unfiltered, and no mask tells: one of just the size of its
    elements is left to HDF5."""
    rank = table.origin.shape[1]
    beyond = (table.origin + np.array(info.chunk_shape[:rank], np.int64) > np.array(info.shape[:rank], np.int64)).any(1)
    doubtful = beyond & table.encoded & (table.bytes == info.chunk_bytes)
    if not doubtful.any() or table.skipped is None:
        return table
    return replace(table, skipped=np.where(doubtful, -1, table.skipped))
