"""Row numbers of stored arrays: whatever a user indexes with, as 64-bit numbers in memory that the device reaches.

Lists, ranges and arrays on the host are checked here, negative ones count from the end; arrays on a GPU go as they are
and are checked there. What must stay true: an index is refused or means the row that NumPy would take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock._arrays.array import Shape
from penstock._error import Error
from penstock.formats.reading.target import Target, target_of

if TYPE_CHECKING:
    import numpy

    from penstock._api import Context


class OutOfRange(Error, IndexError):
    """A row that the array does not have."""


@dataclass(frozen=True)
class RowNumbers:
    """`memory` is what _core takes; `shape` that of the indices."""

    memory: Any
    shape: Shape
    count: int


@dataclass(frozen=True)
class RowCount:
    """That an array has, in a file."""

    count: int
    file: str


def row_numbers(indices: Any, rows: RowCount, context: Context, stream: int | None) -> RowNumbers:
    """Raises OutOfRange, TypeError for what is no list of whole numbers, ValueError for another device's."""
    target = _on_gpu(indices, stream)
    if target is None:
        return _from_host(indices, rows, context)
    if target.dtype.name not in ("int64", "uint64"):
        raise TypeError(f"indices on a GPU are 64-bit integers, these are {target.dtype}; indices.astype('int64')")
    if not target.is_order("C"):
        raise ValueError("the indices are not contiguous; pass a contiguous copy")
    if target.device != context._place[0]:
        raise ValueError(f"the indices lie on {target.device}, the array is read to {context._place[0]}")
    return RowNumbers(target.as_bytes(), target.shape, target.size)


def _on_gpu(indices: Any, stream: int | None) -> Target | None:
    if isinstance(indices, (int, list, tuple, range)):
        return None
    try:
        target = target_of(indices, stream)
    except TypeError:
        if hasattr(indices, "__array__"):  # what NumPy can take
            return None
        raise
    return None if target.device == "host" else target


def _from_host(indices: Any, rows: RowCount, context: Context) -> RowNumbers:
    import numpy as np

    if np.ma.is_masked(indices):
        raise TypeError("some indices are masked; indices.compressed() leaves them out")
    plain = hasattr(indices, "__array__") or not hasattr(indices, "__dlpack__")
    given = np.asarray(indices) if plain else np.from_dlpack(indices)
    if given.size == 0:
        return RowNumbers(bytearray(), given.shape, 0)
    if given.dtype.kind == "b":
        raise TypeError("a mask is not a list of rows; numpy.flatnonzero(mask) makes one of it")
    if given.dtype.kind == "O" and all(type(one) is int for one in given.flat):  # beyond 64 bits
        raise _out_of_range(next(one for one in given.flat if not -rows.count <= one < rows.count), rows)
    if given.dtype.kind not in "iu":
        raise TypeError(f"indices are whole numbers, these are {given.dtype}")
    numbers = _checked(given, rows)
    if context._place[1]:  # the emulated device reaches memory of the host
        return RowNumbers(numbers, given.shape, given.size)
    buffer = context.allocate(numbers.nbytes)
    context.copy_to_device(buffer, numbers)
    return RowNumbers(buffer, given.shape, given.size)


def _out_of_range(row: int, rows: RowCount) -> OutOfRange:
    cause = f"row {row} is out of range of the {rows.count} rows of the array"
    return OutOfRange(operation="index", file=rows.file, cause=cause)


def _checked(given: numpy.ndarray, rows: RowCount) -> numpy.ndarray:
    import numpy as np

    low, high = int(given.min()), int(given.max())
    if low < -rows.count or high >= rows.count:
        raise _out_of_range(low if low < -rows.count else high, rows)
    numbers = np.ascontiguousarray(given.reshape(-1), np.int64)
    return np.where(numbers < 0, numbers + rows.count, numbers) if low < 0 else numbers
