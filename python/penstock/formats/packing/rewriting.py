"""Parts of compressed chunks: the chunks that they lie in are read, changed in memory, and written whole.

Such writes go one after the other, and each waits for all that is under way in its file: two of one chunk that were
read at once would lose the elements of one. What must stay true: elements that were not named stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock import _core
from penstock._arrays.array import Array
from penstock._arrays.selection import Picks, Selection
from penstock.formats.faults import refused
from penstock.formats.model import Shape, Writer
from penstock.formats.packing.compression import is_whole
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.request import Request
from penstock.formats.reading.target import Target

_MOST_BYTES = 1 << 30  # that are read to change a part of them


def is_partial(writer: Writer, one: Request) -> bool:
    """Whether it names parts of chunks, or shards, that must be written whole."""
    unit = writer.packing_unit(one.info.name) if one.bytes and one.info.order == "C" else None
    if unit is None:
        return False
    selection, box = one.selection, one.selection.box
    apart = selection.picks is not None or any(abs(step) != 1 for step in selection.steps)
    return apart or not is_whole(box.start, box.stop, unit, one.info.shape)


def whole_of(writer: Writer, one: Request) -> Selection:
    """The chunks, or shards, in which the elements lie. Raises Error where those are too many bytes."""
    info, box, unit = one.info, one.selection.box, writer.packing_unit(one.info.name)
    assert unit is not None
    start = tuple(low // size * size for low, size in zip(box.start, unit, strict=True))
    stop = tuple(min(-(-high // size) * size, end) for high, size, end in zip(box.stop, unit, info.shape, strict=True))
    counts = tuple(high - low for low, high in zip(start, stop, strict=True))
    bytes = math.prod(counts) * info.dtype.itemsize
    if bytes > _MOST_BYTES:
        cause = f"its chunks of {unit} are compressed, and those that the selection has parts of take {bytes} bytes"
        raise refused(writer.name, cause, "write whole chunks at a time", info.name)
    return Selection(start, counts, (1,) * len(counts), (False,) * len(counts))


def changed(mover: Mover, one: Request, value: Target, held: tuple[Selection, Array]) -> Request:
    """A request of the whole chunks: what they `held`, with the value in it."""
    whole, current = held
    array = np.array(current.to_numpy())
    array[index_in(one.selection, whole.first)] = _on_host(mover, value).reshape(one.selection.counts)
    return Request(one.info, whole, array)


def index_in(selection: Selection, first: Shape) -> tuple[slice | np.ndarray, ...]:
    """NumPy's index of the selected elements in an array that begins at `first`. It drops no dimension."""
    picks: Picks | None = selection.picks
    if picks is not None and picks.single:
        return tuple((picks.numbers - np.array(first)).T)
    index: list[slice | np.ndarray] = []
    for axis, (low, count, step) in enumerate(zip(selection.first, selection.counts, selection.steps, strict=True)):
        if picks is not None and axis == picks.axis:
            index.append(picks.numbers - first[axis])
            continue
        begin, end = low - first[axis], low - first[axis] + count * step
        index.append(slice(begin, end if end >= 0 else None, step))
    return tuple(index)


def _on_host(mover: Mover, value: Target) -> np.ndarray:
    """The elements of the value. Raises ValueError of memory of a GPU with gaps."""
    dtype = value.dtype.dtype
    if value.device == "host":
        memory = np.frombuffer(memoryview(value.memory).cast("B"), "u1")
        return np.ndarray(value.shape, dtype, memory, value.base, value.strides)  # type: ignore[call-overload]
    if not value.is_order("C"):
        raise ValueError(f"an array of {value.device} with strides {value.strides} cannot be written here: copy it")
    _core.synchronize_stream(mover.raw, value.stream or 0)
    array = np.empty(value.shape, dtype)
    mover.raw.copy_to_host(array, value.memory.slice(value.base, array.nbytes))
    return array


def rewritten(
    mover: Mover, writer: Writer, requests: Sequence[Request], calls: tuple[Callable[..., Target], Callable[..., Any]]
) -> list[Request]:
    """Those that can be written. `calls`: what checks the value of a request, and what starts reads."""
    check, read = calls
    made = []
    for one in requests:
        if not is_partial(writer, one):
            made.append(one)
            continue
        value, whole = check(one), whole_of(writer, one)
        (held,) = read([Request(one.info, whole)], None, {}, background=False).result()
        made.append(changed(mover, one, value, (whole, held)))
    return made
