"""Parts of compressed chunks: the chunks that they lie in are read, changed in memory, and written whole.

A file has one lock for that. It is held while a write or a read of the file begins, and as long as a part is written,
which waits for all that is under way: who reads a chunk, or writes all of it, does so before or after. What must stay
true: elements that were not named stay as they are; chunks of which no element is named are neither read nor written.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock import _core
from penstock._arrays.dtype import DType
from penstock._arrays.selection import Box, Picks, Selection
from penstock.formats.faults import refused
from penstock.formats.model import Shape, Writer
from penstock.formats.packing.compression import is_whole
from penstock.formats.pending import Pending
from penstock.formats.reading import picked
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.request import Request
from penstock.formats.reading.target import Target, target_of

_MOST_BYTES = 4 << 30  # of chunks that are read to change parts of them


class Waited(Protocol):
    """A write that is under way, or was."""

    @property
    def is_over(self) -> bool: ...

    def _finish(self) -> None:
        """Waits for its end."""


class ChunkOrder:
    """Which writes of chunks of a file wait for each other: two that meet in a chunk would leave a part of
    each in its place. All but `lock` is called with the lock held."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._writes: list[tuple[weakref.ref[Waited], str, Box]] = []

    def wait(self, name: str, box: Box) -> None:
        """For those that meet the box of the dataset."""
        left = []
        for one in self._writes:
            write = one[0]()
            if write is None or write.is_over:
                continue
            if one[1] == name and _meet(one[2], box):
                write._finish()
            else:
                left.append(one)
        self._writes = left

    def add(self, write: Waited, name: str, box: Box) -> None:
        self._writes.append((weakref.ref(write), name, box))


class Writing(NamedTuple):
    """What writing in a file takes. `settle` waits for all that is under way, or for `reads` alone."""

    order: ChunkOrder

    writer: Callable[..., AbstractContextManager[Writer]]
    mover: Callable[[], Mover]
    settle: Callable[..., None]
    checked: Callable[[Request], Target]
    read: Callable[..., Pending[Any]]
    write: Callable[..., Pending[Any]]


class WriteOptions(NamedTuple):
    """As the caller of a write said it."""

    stream: Any
    options: Mapping[str, Any]
    background: bool


class Piece(NamedTuple):
    """Chunks that lie together, and the elements of the selection in them."""

    chunks: Selection
    within: tuple[Any, ...]  # NumPy's index of the elements in the chunks, and
    of_value: tuple[Any, ...]  # in the value
    is_covered: bool  # the elements are all of the chunks

    @property
    def is_view(self) -> bool:
        """Whether the chunks are a part of the value as it lies there."""
        return self.is_covered and all(isinstance(one, slice) for one in self.of_value)


class _Run(NamedTuple):
    """The same along one dimension."""

    low: int
    high: int
    within: np.ndarray
    of_value: np.ndarray
    is_covered: bool


def start(calls: Writing, requests: Sequence[Request], how: WriteOptions) -> Pending[Any]:
    """Starts a write. One of parts is done when this returns. Requires: the lock of the file is held."""
    with calls.writer(changes=False) as writer:
        requests = [_now(writer, one) for one in requests]
        parts = [one for one in requests if _is_partial(writer, one)]
        packed = [one for one in requests if _unit(writer, one) is not None]
        units = [_unit(writer, one) for one in parts]
        name = writer.name
    if not packed:  # outside of the block, for writes that are waited for need the writer
        return _ordered(calls, requests, requests, how)
    if not parts:
        return _in_turn(calls, requests, packed, how)
    began = time.monotonic()
    values = [calls.checked(one) for one in parts]
    calls.settle()
    whole = [one for one in requests if not any(one is part for part in parts)]
    for one, unit, value in zip(parts, units, values, strict=True):
        assert unit is not None
        whole += _whole(calls, name, (one, unit, value), _left(how.options, began, only=True))
    pending = calls.write(whole, how.stream, _left(how.options, began), background=False)
    pending.wait()  # so that the next one reads what this one wrote
    return pending


def _in_turn(calls: Writing, requests: Sequence[Request], packed: Sequence[Request], how: WriteOptions) -> Pending[Any]:
    """Of whole chunks: behind reads, and behind writes of the same chunks."""
    calls.settle(reads=True)
    return _ordered(calls, requests, packed, how)


def _ordered(
    calls: Writing, requests: Sequence[Request], ordered: Sequence[Request], how: WriteOptions
) -> Pending[Any]:
    """Behind writes of the same chunks, of which some may be making their files."""
    for one in ordered:
        calls.order.wait(one.info.name, one.stored.box)
    pending = calls.write(requests, how.stream, how.options, background=how.background)
    for one in ordered:
        calls.order.add(pending, one.info.name, one.stored.box)
    return pending


def _meet(one: Box, other: Box) -> bool:
    sides = zip(one.start, one.stop, other.start, other.stop, strict=True)
    return all(low < end and first < high for low, high, first, end in sides)


def _now(writer: Writer, one: Request) -> Request:
    """With the dataset as it is now: others may have appended to it since the caller looked."""
    if _unit(writer, one) is None:
        return one
    return one._replace(info=writer.info(one.info.name))


def _unit(writer: Writer, one: Request) -> Shape | None:
    return writer.packing_unit(one.info.name, one.stored.box) if one.bytes else None


def _is_partial(writer: Writer, one: Request) -> bool:
    """Whether it names parts of chunks, or shards, that must be written whole."""
    unit = _unit(writer, one) if one.bytes and one.info.order == "C" else None
    if unit is None:
        return False
    selection, box = one.selection, one.selection.box
    apart = selection.picks is not None or any(abs(step) != 1 for step in selection.steps)
    return apart or not is_whole(box.start, box.stop, unit, one.info.shape)


def _left(options: Mapping[str, Any], began: float, *, only: bool = False) -> dict[str, Any]:
    """The options with the time that is left of timeout_s; `only`: nothing but that."""
    limit = options.get("timeout_s")
    left = {} if limit is None else {"timeout_s": max(limit - (time.monotonic() - began), 1e-3)}
    return left if only else {**options, **left}


def _whole(
    calls: Writing, name: str, part: tuple[Request, Shape, Target], options: Mapping[str, Any]
) -> Iterator[Request]:
    """Requests of whole chunks, with the value in them."""
    one, unit, target = part
    if picked.is_repeated(one.selection):
        cause = "an index of the list is there twice, and no order is promised in which rows are written"
        raise ValueError(f"dataset {one.info.name!r}: {cause}: name each once")
    pieces = list(pieces_of(one.selection, unit, one.info.shape))
    to_read = [piece for piece in pieces if not piece.is_covered]
    bytes = sum(piece.chunks.size for piece in to_read) * one.info.dtype.itemsize
    if bytes > _MOST_BYTES:
        cause = f"chunks of {unit} are compressed, and those that the selection has parts of take {bytes} bytes"
        raise refused(name, cause, "write fewer of them at a time, or whole chunks", one.info.name)
    value = _on_host(calls.mover(), target).reshape(one.selection.counts)
    held: list[Any] = []
    if to_read:
        requests = [Request(one.info, piece.chunks) for piece in to_read]
        held = calls.read(requests, None, options, background=False).result()
    left, given = iter(held), replace(target_of(value), dtype=target.dtype)
    room = _ChunkMemory(sum(piece.chunks.size for piece in pieces if not piece.is_view), target.dtype)
    for piece in pieces:
        if piece.is_view:
            seen = value[piece.of_value]
            base = given.base + seen.ctypes.data - value.ctypes.data
            yield Request(one.info, piece.chunks, replace(given, base=base, shape=seen.shape, strides=seen.strides))
            continue
        array, memory = room.take(piece.chunks.counts)
        if not piece.is_covered:
            array[...] = next(left).to_numpy()
        array[piece.within] = value[piece.of_value]
        yield Request(one.info, piece.chunks, memory)


class _ChunkMemory:
    """Memory of all chunks that are put together here: chunks of one memory are encoded together."""

    def __init__(self, count: int, dtype: DType) -> None:
        self._dtype, self._used = dtype, 0
        self._all = target_of(np.empty(count * dtype.itemsize, np.uint8))

    def take(self, shape: Shape) -> tuple[np.ndarray, Target]:
        """The next elements, to be filled, and to be written."""
        array = np.ndarray(shape, self._dtype.dtype, self._all.keep, self._used)
        memory = replace(self._all, base=self._used, dtype=self._dtype, shape=shape, strides=array.strides)
        self._used += array.nbytes
        return array, memory


def pieces_of(selection: Selection, unit: Shape, shape: Shape) -> Iterator[Piece]:
    """`unit`: of chunks, or shards, in a dataset of that shape."""
    picks = selection.picks
    if picks is not None and picks.single:
        yield from _singles(picks, unit, shape)
        return
    runs = []
    for axis, (low, count, step) in enumerate(zip(selection.first, selection.counts, selection.steps, strict=True)):
        is_list = picks is not None and axis == picks.axis
        numbers = picks.numbers if picks is not None and is_list else low + step * np.arange(count, dtype=np.int64)
        runs.append(_runs(numbers, unit[axis], shape[axis]))
    for sides in itertools.product(*runs):
        chunks = _box(tuple(one.low for one in sides), tuple(one.high for one in sides))
        is_covered = all(one.is_covered for one in sides)
        yield Piece(chunks, _index([one.within for one in sides]), _index([one.of_value for one in sides]), is_covered)


def _runs(numbers: np.ndarray, size: int, extent: int) -> list[_Run]:
    """`numbers`: of the elements along a dimension, which are not the same."""
    order = np.argsort(numbers, kind="stable")  # as the file has them: a whole chunk is the value in this order
    touched, counts = np.unique(numbers // size, return_counts=True)
    covered = counts == np.minimum(size, extent - touched * size)
    breaks = np.flatnonzero((np.diff(touched) != 1) | (covered[1:] != covered[:-1])) + 1
    ends = np.cumsum(counts)
    runs = []
    for group in np.split(np.arange(len(touched)), breaks):
        first, last = int(group[0]), int(group[-1])
        at = order[ends[first] - counts[first] : ends[last]]
        low, high = int(touched[first]) * size, min((int(touched[last]) + 1) * size, extent)
        runs.append(_Run(low, high, numbers[at] - low, at, bool(covered[first])))
    return runs


def _singles(picks: Picks, unit: Shape, shape: Shape) -> Iterator[Piece]:
    """Of elements that are named one by one."""
    sizes = np.array(unit, np.int64)
    touched, place = np.unique(picks.numbers // sizes, axis=0, return_inverse=True)
    order = np.argsort(place.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(place.reshape(-1), minlength=len(touched)))
    for number, one in enumerate(touched):
        at = order[ends[number - 1] if number else 0 : ends[number]]
        low = one * sizes
        high = np.minimum(low + sizes, np.array(shape, np.int64))
        within = tuple((picks.numbers[at] - low).T)
        of_value = (*(0 for _ in unit[1:]), at)
        yield Piece(_box(tuple(low.tolist()), tuple(high.tolist())), within, of_value, False)


def _box(low: Shape, high: Shape) -> Selection:
    counts = tuple(stop - start for start, stop in zip(low, high, strict=True))
    return Selection(low, counts, (1,) * len(low), (False,) * len(low))


def _index(sides: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Slices, which take no copy, where the numbers of each dimension follow each other."""
    slices = []
    for one in sides:
        if len(one) > 1 and not (np.diff(one) == 1).all():
            return np.ix_(*sides)
        slices.append(slice(int(one[0]), int(one[0]) + len(one)))
    return tuple(slices)


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
    mover.raw.copy_to_host(array, value.as_bytes())
    return array
