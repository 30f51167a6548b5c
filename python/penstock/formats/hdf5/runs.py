"""Datasets whose parts lie plainly in several places: equal cells, each one run of bytes of some file.

What must stay true: cells do not overlap, lie on one grid, and each is contiguous where it lies; a dataset that cannot
be cut so, or only into absurdly many cells, has no Runs and is decoded by HDF5 instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from penstock._arrays.distinct import distinct
from penstock.formats.model import Box, ChunkTable, Shape

MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Block:
    """A box of the dataset that lies in one file, its elements `strides` bytes apart."""

    start: Shape
    counts: Shape
    strides: Shape
    file: str
    offset_bytes: int  # of the first element


@dataclass(frozen=True)
class Runs:
    """Cells of `chunk_shape` elements, one row each."""

    chunk_shape: Shape
    files: tuple[str, ...]
    file_index: np.ndarray
    origin: np.ndarray
    offset_bytes: np.ndarray
    cell_bytes: int

    def table(self, box: Box) -> ChunkTable:
        low = self.origin < np.array(box.stop, np.int64)
        high = self.origin + np.array(self.chunk_shape, np.int64) > np.array(box.start, np.int64)
        rows = np.flatnonzero((low & high).all(axis=1))
        sizes = np.full(len(rows), self.cell_bytes, np.int64)
        encoded = np.zeros(len(rows), bool)
        return ChunkTable(self.files, self.file_index[rows], self.origin[rows], self.offset_bytes[rows], sizes, encoded)


def runs_from(blocks: Sequence[Block], shape: Shape, item_bytes: int) -> Runs | None:
    """None when no grid of contiguous cells fits all blocks, or when blocks overlap."""
    if not blocks or not shape:
        return None
    cell = _cell(blocks, len(shape), item_bytes)
    if sum(prod(n // c for n, c in zip(block.counts, cell, strict=True)) for block in blocks) > MOST_CELLS:
        return None
    files = tuple(dict.fromkeys(block.file for block in blocks))
    numbers = {file: number for number, file in enumerate(files)}
    parts = [_cut(block, cell) for block in blocks]
    index = np.repeat([numbers[block.file] for block in blocks], [len(origin) for origin, _ in parts])
    origin, offset = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(distinct(np.ravel_multi_index(tuple(origin.T), shape))) != len(origin):
        return None
    return Runs(cell, files, index.astype(np.int32), origin, offset, prod(cell) * item_bytes)


def _cell(blocks: Sequence[Block], ndim: int, item_bytes: int) -> Shape:
    """The largest cell that divides all blocks and their places, and is contiguous in each."""
    cell = [0] * ndim
    for block in blocks:
        cell = [gcd(size, start, count) for size, start, count in zip(cell, block.start, block.counts, strict=True)]
    run_bytes = item_bytes
    for axis in reversed(range(ndim)):
        if any(block.strides[axis] != run_bytes for block in blocks):
            cell[axis] = 1
        run_bytes *= cell[axis]
    return tuple(cell)


def _cut(block: Block, cell: Shape) -> tuple[np.ndarray, np.ndarray]:
    """(origin, offset) of the cells of a block."""
    steps = [np.arange(0, count, size, dtype=np.int64) for count, size in zip(block.counts, cell, strict=True)]
    grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, len(cell))
    offset = block.offset_bytes + (grid * np.array(block.strides, np.int64)).sum(axis=1)
    return grid + np.array(block.start, np.int64), offset


def c_strides(shape: Shape, item_bytes: int) -> Shape:
    """Bytes between neighbours of a contiguous array."""
    return tuple(prod(shape[axis + 1 :]) * item_bytes for axis in range(len(shape)))
