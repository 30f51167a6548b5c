"""Which chunks a dataset needs when it grows, and giving them their space.

What must stay true: every chunk that meets the new elements has space when we are done; space that holds elements
that no caller will write holds the fill value, as readers expect it.
"""

from __future__ import annotations

from itertools import chain, product
from math import prod
from typing import NamedTuple

import numpy as np

from penstock._files.descriptor import write_at
from penstock.formats.faults import unsupported
from penstock.formats.hdf5.changing.session import Session
from penstock.formats.hdf5.index import ChunkIndex, number_of
from penstock.formats.hdf5.stored import Stored
from penstock.formats.model import Shape

_FILL_BYTES = 1 << 20  # written at a time
MOST_CHUNK_BYTES = (1 << 32) - 1  # HDF5's own limit


class Growth(NamedTuple):
    """A dataset (without the dimensions of an array type) and its shape before."""

    stored: Stored  # as it is now
    before: Shape

    @property
    def shape(self) -> Shape:
        return self.stored.info.shape[: self.stored.rank]

    @property
    def chunk(self) -> Shape:
        return self.stored.info.chunk_shape[: self.stored.rank]


def grid_of(shape: Shape, chunk: Shape) -> Shape:
    return tuple(-(-extent // size) for extent, size in zip(shape, chunk, strict=True))


def new_origins(growth: Growth) -> np.ndarray:
    """First elements of all chunks that hold an element beyond the old shape, in order (int64 [n, ndim])."""
    grid = grid_of(growth.shape, growth.chunk)
    grown = [axis for axis, before in enumerate(growth.before) if growth.shape[axis] > before]
    slabs = []
    for axis in grown:
        spans = [range(0, extent, size) for extent, size in zip(growth.shape, growth.chunk, strict=True)]
        spans[axis] = spans[axis][growth.before[axis] // growth.chunk[axis] :]
        count = prod(len(span) for span in spans)
        flat = np.fromiter(chain.from_iterable(product(*spans)), np.int64, count * len(grid))
        slabs.append(flat.reshape(count, len(grid)))
    if len(slabs) == 1:
        return slabs[0]
    return np.unique(np.concatenate(slabs), axis=0) if slabs else np.empty((0, len(grid)), np.int64)


def place_chunks(session: Session, growth: Growth, index: ChunkIndex) -> ChunkIndex:
    """Gives space to chunks of the growth that have none; the index with them. Raises Error when one is encoded."""
    origin = new_origins(growth)
    grid = grid_of(growth.shape, growth.chunk)
    index = index.on_grid(grid)
    cell = number_of(origin, grid, growth.chunk)
    rows = index.rows_of(cell)
    if index.encoded[rows[rows >= 0]].any():
        cause = "its last chunk is encoded and only partly used, so adding to it would mean to decode and move it"
        raise unsupported(session.name, cause, "append with h5py, or whole chunks at a time", growth.stored.info.name)
    return place_missing(session, growth, index, origin)


def place_missing(session: Session, growth: Growth, index: ChunkIndex, origin: np.ndarray) -> ChunkIndex:
    """Gives space to chunks, by their first elements, as far as they have none; the index with them. Those that held
    elements before the growth hold the fill value."""
    cell = number_of(origin, index.grid, growth.chunk)
    rows = index.rows_of(cell)
    origin, cell = origin[rows < 0], cell[rows < 0]
    if not len(cell):
        return index
    size = prod(growth.chunk) * prod(growth.stored.item_dims) * growth.stored.info.dtype.itemsize
    content = np.zeros(size, np.uint8)  # never touched: no memory is used
    mask = (1 << len(growth.stored.info.filters)) - 1  # stored as it is, whatever filters there are
    offsets = [session.place(growth.stored.dataset, tuple(one), content, mask) for one in origin.tolist()]
    session.reserve()
    placed = np.array(offsets, np.int64)
    _fill(session, growth, origin, placed, size)
    return index.plus(cell, origin, placed, size)


def place_encoded(
    session: Session, stored: Stored, index: ChunkIndex, origin: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, ChunkIndex]:
    """Gives space to chunks that went through all filters; where it is, and the index with them."""
    chunk = stored.info.chunk_shape[: stored.rank]
    content = np.zeros(int(sizes.max(initial=0)), np.uint8)  # never touched: no memory is used
    pairs = zip(origin.tolist(), sizes.tolist(), strict=True)
    offsets = [session.place(stored.dataset, tuple(one), content[:size], 0) for one, size in pairs]
    session.reserve()
    placed, grid = np.array(offsets, np.int64), grid_of(stored.info.shape[: stored.rank], chunk)
    return placed, index.with_new(number_of(origin, grid, chunk), origin, placed, sizes)


def place_one(session: Session, stored: Stored, origin: Shape, bytes: int) -> int:
    """Gives space to a chunk that went through all filters; where it is."""
    offset = session.place(stored.dataset, origin, np.empty(bytes, np.uint8), 0)
    session.reserve()
    return offset


def cell_of(stored: Stored, origin: Shape) -> int:
    """Number of the chunk in the grid of those of the dataset."""
    cell = 0
    for extent, size, at in zip(stored.info.shape, stored.info.chunk_shape, origin, strict=True):
        cell = cell * -(-extent // size) + at // size
    return cell


def _fill(session: Session, growth: Growth, origin: np.ndarray, offsets: np.ndarray, size: int) -> None:
    """Chunks that reach beyond the dataset, or back into its old part, begin as fill value; zeros they are already."""
    fill = growth.stored.info.fill
    if fill is None or not len(origin):
        return
    chunk, shape = np.array(growth.chunk, np.int64), np.array(growth.shape, np.int64)
    beyond = (origin + chunk > shape).any(axis=1)
    into_old = (origin < np.array(growth.before, np.int64)).all(axis=1)
    block = fill * max(1, min(size, _FILL_BYTES) // len(fill))
    for start in offsets[beyond | into_old].tolist():
        for done in range(0, size, len(block)):
            write_at(session.descriptor, block[: size - done], start + done)


def default_chunk(shape: Shape, resizable: tuple[int | None, ...], item_bytes: int, page_bytes: int) -> Shape:
    """One step of the first dimension, whole in the others; several steps where one would not fill a page, and part
    of one where it would be larger than HDF5 allows."""
    chunk = [1, *(max(1, extent) for extent in shape[1:])]
    for axis in range(1, len(chunk)):
        while chunk[axis] > 1 and prod(chunk) * item_bytes > MOST_CHUNK_BYTES:
            chunk[axis] = -(-chunk[axis] // 2)
    chunk[0] = max(1, page_bytes // (prod(chunk) * item_bytes))
    most = resizable[0]
    return (chunk[0] if most is None else max(1, min(chunk[0], most)), *chunk[1:])
