"""Which particles a run of h5bench writes or reads, as parts: boxes and lattices that NumPy's slices can say.

Pure. What must stay true: the parts of a run cover each of its particles once, in an order that depends on the run
only; so particle number k of a run is the same one for whoever writes and whoever checks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from penstock import Error
from penstock_bench.h5bench.config import H5benchRun

MOST_PARTS = 20_000  # of one step; each is a request of its own for each field
_LARGE_BLOCK = 64  # elements; so many single elements cost more to move than a request
Index = tuple[slice, ...]


@dataclass(frozen=True)
class Part:
    """A selection of the dataset; its particles are the run's from number `first` on."""

    index: Index
    shape: tuple[int, ...]
    first: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def parts_of(run: H5benchRun) -> list[Part]:
    """Raises Error when there are too many of them."""
    count = _how_many(run)  # before any is made: they might not fit into memory
    if count > MOST_PARTS:
        raise Error(
            operation="h5bench",
            file=str(run.file),
            cause=f"{run.option} makes {count} selections of each dataset, more than {MOST_PARTS}",
            advice="use smaller, or fewer, blocks",
        )
    parts, first = [], 0
    for index in _indexes(run):
        shape = tuple(len(range(*one.indices(extent))) for one, extent in zip(index, run.dims, strict=True))
        parts.append(Part(index, shape, first))
        first += parts[-1].count
    return parts


def start_of(part: Part, dims: tuple[int, ...]) -> int | None:
    """Number of the part's first particle in the dataset, when all of the part lies there in one piece; else None."""
    if part.shape == dims:
        return 0
    whole = all(shape == extent for shape, extent in zip(part.shape[1:], dims[1:], strict=True))
    one = part.index[0]
    return one.start * math.prod(dims[1:]) if whole and one.step in (None, 1) else None


def _indexes(run: H5benchRun) -> list[Index]:
    if run.option == "FULL":
        return [tuple(slice(0, extent) for extent in run.dims)]
    if run.option == "PARTIAL":
        return [(slice(0, run.particles),)]
    if run.option == "STRIDED":
        return [(one,) for axis in _axes(run) for one in _lattice(*axis)]
    if run.option == "CS":
        return list(product(*(_lattice(*axis) for axis in _axes(run))))
    return _around(run)


def _axes(run: H5benchRun) -> list[tuple[int, int, int]]:
    """(stride, block, count) of each dimension of a run of blocks; none of other runs."""
    if run.option == "STRIDED":
        ((stride, block),) = run.blocks
        return [(stride, block, run.block_count)]
    if run.option != "CS":
        return []
    return [
        (stride, block, (extent - block) // stride + 1)
        for (stride, block), extent in zip(run.blocks, run.dims, strict=True)
    ]


def _how_many(run: H5benchRun) -> int:
    """Selections of a run of blocks."""
    return math.prod(1 if _joined(*axis) else axis[2] if _as_blocks(*axis) else axis[1] for axis in _axes(run))


def _joined(stride: int, block: int, count: int) -> bool:
    return stride == block or count == 1


def _as_blocks(_stride: int, block: int, count: int) -> bool:
    return count <= block or (block >= _LARGE_BLOCK and count <= MOST_PARTS)


def _lattice(stride: int, block: int, count: int) -> list[slice]:
    """`count` blocks, one every `stride`: as blocks, or, where blocks are small and many, as every stride-th element
    from each element of the first block on."""
    if _joined(stride, block, count):
        return [slice(0, (count - 1) * stride + block)]
    if _as_blocks(stride, block, count):
        return [slice(turn * stride, turn * stride + block) for turn in range(count)]
    return [slice(first, first + (count - 1) * stride + 1, stride) for first in range(block)]


def _around(run: H5benchRun) -> list[Index]:
    """Two corners on a diagonal, or the frame."""
    (rows, columns), ((_, high), (_, wide)) = run.dims, run.blocks
    top, bottom = slice(0, high), slice(rows - high, rows)
    left, right = slice(0, wide), slice(columns - wide, columns)
    if run.option == "LDC":
        return [(top, left), (bottom, right)]
    if run.option == "RDC":
        return [(top, right), (bottom, left)]
    across, between = slice(0, columns), slice(high, rows - high)
    frame = [(top, across), (bottom, across), (between, left), (between, right)]
    return [one for one in frame if one[0].start < one[0].stop]
