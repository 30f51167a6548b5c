"""What `dataset[...]` asks for: NumPy's basic indexing as numbers, one lattice of elements per dimension.

Pure: needs a shape, no file. What must stay true: a Selection of shape S with index I has the shape that NumPy gives
`empty(S)[I]`, and names the same elements. What would need a list of elements (masks, index arrays) is refused with
advice, because it is not a lattice and would be read one element at a time.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

Shape = tuple[int, ...]


class Box(NamedTuple):
    """A rectangular part of a dataset: per dimension, [start, stop)."""

    start: Shape
    stop: Shape


@dataclass(frozen=True)
class Selection:
    """Per dimension: elements first, first + step, ... (`counts` of them; step may be negative), and whether the
    dimension goes, as it does for an integer index."""

    first: Shape
    counts: Shape
    steps: Shape
    dropped: tuple[bool, ...]

    @classmethod
    def all_of(cls, shape: Shape) -> Selection:
        return cls((0,) * len(shape), shape, (1,) * len(shape), (False,) * len(shape))

    @property
    def shape(self) -> Shape:
        """Shape of the array that the selection gives."""
        return tuple(n for n, gone in zip(self.counts, self.dropped, strict=True) if not gone)

    @property
    def size(self) -> int:
        size = 1
        for count in self.counts:
            size *= count
        return size

    @property
    def box(self) -> Box:
        """The smallest box that holds all selected elements."""
        low, high = [], []
        for first, count, step in zip(self.first, self.counts, self.steps, strict=True):
            last = first + (count - 1) * step
            low.append(min(first, last) if count else first)
            high.append(max(first, last) + 1 if count else first)
        return Box(tuple(low), tuple(high))

    @property
    def transposed(self) -> Selection:
        """The same selection in the transposed dataset."""
        return Selection(self.first[::-1], self.counts[::-1], self.steps[::-1], self.dropped[::-1])


def select(shape: Shape, index: Any) -> Selection:
    """The selection that `dataset[index]` makes. Raises IndexError and TypeError as NumPy does."""
    parts = _spread(shape, index if isinstance(index, tuple) else (index,))
    found = [_one(part, extent, axis) for axis, (part, extent) in enumerate(zip(parts, shape, strict=True))]
    first, counts, steps, dropped = zip(*found, strict=True) if found else ((), (), (), ())
    return Selection(first, counts, steps, dropped)


def _spread(shape: Shape, parts: tuple[Any, ...]) -> list[Any]:
    """One part a dimension: the Ellipsis, written or not, becomes whole dimensions."""
    for part in parts:
        if part is None:
            raise TypeError("None (newaxis) adds no dimension here; reshape the array that was read")
    ellipses = sum(part is Ellipsis for part in parts)
    if ellipses > 1:
        raise IndexError("an index can have only one Ellipsis ('...')")
    given = len(parts) - ellipses
    if given > len(shape):
        raise IndexError(f"too many indices: the dataset has {len(shape)} dimensions, the index {given}")
    whole = [slice(None)] * (len(shape) - given)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return [*parts[:at], *whole, *parts[at + 1 :]]


def _one(part: Any, extent: int, axis: int) -> tuple[int, int, int, bool]:
    """(first, count, step, dropped) of one dimension."""
    if isinstance(part, slice):
        start, stop, step = part.indices(extent)
        count = len(range(start, stop, step))
        return (start if count else 0), count, step, False
    if isinstance(part, bool) or type(part).__name__ in ("bool_", "bool"):
        raise TypeError("True and False are not indices here; use integers and slices")
    try:
        at = operator.index(part)
    except TypeError:
        raise TypeError(_advice(part, axis)) from None
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for dimension {axis} of extent {extent}")
    return at % extent, 1, 1, True


def _advice(part: Any, axis: int) -> str:
    if isinstance(part, (str, bytes)) or not (hasattr(part, "__len__") or hasattr(part, "__iter__")):
        return f"an index is made of integers, slices and '...', not of {type(part).__name__}"
    return (
        f"a list of indices or a mask (dimension {axis}) cannot select here: read the slice that holds them, "
        "dataset[low:high], and pick from the array with your array library"
    )
