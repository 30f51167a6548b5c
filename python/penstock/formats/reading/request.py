"""Requests: from names and selections to a plan and its memories, and arrays around the memory that is filled.

What must stay true: `out` is compared with what will be read before anything moves; arrays of one call share one new
buffer, in which each is aligned for its type and none overlap; a dataset stored in Fortran order comes as a view with
its dimensions in the user's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from penstock import _core
from penstock._arrays.array import Array, c_strides
from penstock._arrays.dtype import DType
from penstock._arrays.selection import Copier, Selection, select
from penstock._error import Error
from penstock.formats.divided.shares import taken
from penstock.formats.faults import no_memory
from penstock.formats.model import ChunkTable, Container, DatasetInfo, Extent
from penstock.formats.reading import picked
from penstock.formats.reading.decoders.decoding import ON_HOST, Choice, Means, Wish, choose, with_cores
from penstock.formats.reading.execution import Job
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.pieces import Wanted
from penstock.formats.reading.plan import BatchPlan
from penstock.formats.reading.target import Target, check_apart, target_of

_ANY_MEMORY = 1 << 63  # bytes
PAGE_BYTES = 4096
SMALL_BYTES = 64 << 10  # below this, the place in a page does not matter
ALIGNMENT = 256  # of the first element, as GPU libraries expect of an allocation


class Request(NamedTuple):
    """One dataset of a call. `selection` is in the user's order of dimensions."""

    info: DatasetInfo
    selection: Selection
    out: Any = None

    @property
    def stored(self) -> Selection:
        """In the order of the file."""
        return self.selection if self.info.order == "C" else self.selection.transposed

    @property
    def bytes(self) -> int:
        return self.selection.size * self.info.dtype.itemsize


def user_shape(info: DatasetInfo) -> tuple[int, ...]:
    return info.shape if info.order == "C" else info.shape[::-1]


def request(info: DatasetInfo, index: Any = ..., out: Any = None, context: Copier | None = None) -> Request:
    """`context`: of the device where lists of the index may lie. Raises Error when the dataset cannot be read,
    IndexError and TypeError of the index."""
    if info.refusal:
        raise Error(
            code="unsupported",
            operation=f"read dataset {info.name!r}",
            cause=info.refusal,
            advice="read it with the format's own library; load(names=[...]) reads the others",
        )
    shape = user_shape(info)
    return Request(info, Selection.all_of(shape) if index is ... else select(shape, index, context), out)


class Portion(NamedTuple):
    """What a request takes of one dataset: all of it, or of a part of one that is divided over files."""

    info: DatasetInfo
    selection: Selection  # as stored
    at: tuple[int, ...]  # of its first element in the selection of the whole
    table: ChunkTable

    def wanted(self, whole: Wanted) -> Wanted:
        """Where it goes, in the memory of the whole."""
        base = whole.base + sum(at * stride for at, stride in zip(self.at, whole.strides, strict=True))
        return Wanted(self.info, self.selection, whole.target, base, whole.strides)


def parts_of(source: Container, wanted: Request) -> list[Portion]:
    """With the chunks of each; none when nothing is selected."""
    info, selection = wanted.info, wanted.stored
    if not wanted.selection.size:
        return []
    shares = source.shares(info.name, selection.box)
    found = [(info, selection, (0,) * info.ndim)] if shares is None else taken(selection, shares)
    return [Portion(*one, _table_of(source, one[0], one[1])) for one in found]


def _table_of(source: Container, info: DatasetInfo, selection: Selection) -> ChunkTable:
    return picked.table_of(info, selection, lambda box: source.table(info.name, box))


def read_job(
    mover: Mover, container: Container, requests: Sequence[Request], stream: int | None, decode: str = "auto"
) -> tuple[Job, list[Any]]:
    """The job that reads all of the requests, and what its caller gets of each when it is done; memory for those
    without `out` is allocated here."""
    parts = [parts_of(container, one) for one in requests]
    wish = Wish(decode, sum(int(part.table.encoded.sum()) for found in parts for part in found), mover.rates)
    gaps = [
        f"{part.info.name}: reads as fill values in part: {cause}"
        for found in parts
        for part in found
        for cause in part.table.missing
    ]
    stored = [[(part, _choice(mover, part.info, part.table, wish)) for part in found] for found in parts]
    outs = {
        number: checked_out(one, stream, mover.device) for number, one in enumerate(requests) if one.out is not None
    }
    check_apart([(requests[number].info.name, target) for number, target in outs.items()])
    fresh = [number for number, one in enumerate(requests) if one.out is None]
    places, size = arrange([_stored(requests[number], parts[number]) for number in fresh])
    plan, targets, results = BatchPlan(gaps=gaps), [], [one.out for one in requests]
    plan.part_bytes = min(plan.part_bytes, container.part_bytes or plan.part_bytes)
    if fresh:
        if size >= _ANY_MEMORY:
            raise no_memory(container.name, f"it takes {size} bytes, more than any memory has", requests[0].info.name)
        buffer = _core.allocate(mover.raw, max(1, size), "device", "none")
        targets.append(Target(buffer, 0, requests[0].info.dtype.native, (size,), (1,), mover.device, keep=buffer))
        for number, place in zip(fresh, places, strict=True):
            one = requests[number]
            results[number] = _array(one, buffer, place)
            _add(plan, one, stored[number], place)
    for number, target in outs.items():
        one = requests[number]
        _add_parts(plan, wanted_at(one, target, len(targets)), stored[number])
        targets.append(target)
    kinds = {choice.kind for found in stored for part, choice in found if part.table.encoded.any()}
    return Job(plan, targets, stream=ordered_after(stream, len(fresh) < len(requests)), kinds=kinds), results


def ordered_after(stream: int | None, foreign: bool) -> int | None:
    """Memory that others may still work on is used after the default stream, where nothing else was said."""
    return 0 if stream is None and foreign else stream


def _choice(mover: Mover, info: DatasetInfo, table: ChunkTable, wish: Wish) -> Choice:
    """What decodes. On the emulated device that is the host, without a note, unless the caller brought a decoder."""
    if not table.encoded.any():
        return ON_HOST
    on_host = wish.decode == "auto" and mover.emulated and mover.decoder is None
    pipeline = mover.pipeline(info)
    choice = ON_HOST if on_host else choose(info, table, wish, Means(mover.device_decoder(), pipeline))
    return with_cores(info, table, choice, pipeline)


def _add(plan: BatchPlan, one: Request, stored: Sequence[tuple[Portion, Choice]], place: int) -> None:
    table = stored[0][0].table if len(stored) == 1 and stored[0][0].info is one.info else None
    if table is not None and is_one_range(one, table):
        plan.add_line(one.info, table, 0, place)
    else:
        strides = c_strides(one.stored.counts, one.info.dtype.itemsize)
        _add_parts(plan, Wanted(one.info, one.stored, 0, place, strides), stored)


def _add_parts(plan: BatchPlan, whole: Wanted, stored: Sequence[tuple[Portion, Choice]]) -> None:
    for part, choice in stored:
        plan.add(part.wanted(whole), part.table, choice)


def is_one_range(one: Request, table: ChunkTable) -> bool:
    """All of a dataset that is one plain chunk, forwards."""
    info, selection = one.info, one.selection
    if len(table.bytes) != 1 or table.encoded[0] or info.chunk_shape != info.shape or table.bytes[0] < one.bytes:
        return False
    if selection.picks is not None:
        return False
    return selection.counts == user_shape(info) and all(step > 0 for step in selection.steps)


def _stored(one: Request, parts: Sequence[Portion]) -> tuple[Extent, int]:
    """Where it lies, in no file ("") unless it is one range of one; and the alignment that its type needs."""
    word = word_of(one.info.dtype)
    table = parts[0].table if len(parts) == 1 and parts[0].info is one.info else None
    if table is None or not is_one_range(one, table):
        return Extent("", 0, one.bytes), word
    return Extent(table.files[int(table.file_index[0])], int(table.offset_bytes[0]), one.bytes), word


def word_of(dtype: DType) -> int:
    """The alignment that a type needs."""
    return dtype.word_bytes if dtype.kind != "V" else 16


def arrange(stored: Sequence[tuple[Extent, int]]) -> tuple[list[int], int]:
    """(byte offset of each dataset, bytes of the buffer). Datasets that follow each other in a file follow each other
    in memory, so that a whole safetensors file is one range of one transfer; others begin at a place that copies and
    direct I/O like."""
    order = sorted(range(len(stored)), key=lambda number: (stored[number][0].file == "", stored[number][0]))
    places, end, before = [0] * len(stored), 0, None
    for number in order:
        one, word_bytes = stored[number]
        touches = before is not None and one.file and one[:2] == (before.file, before.offset_bytes + before.bytes)
        if not touches or end % word_bytes:
            end = _begin(one, end)
        places[number] = end
        end += one.bytes
        before = one
    return places, end


def _begin(one: Extent, end: int) -> int:
    """The next good place. A large range begins where it begins in a page of its file, if that is aligned enough."""
    if one.bytes < SMALL_BYTES or not one.file:
        return -(-end // ALIGNMENT) * ALIGNMENT
    phase = one.offset_bytes % PAGE_BYTES
    return -(-end // PAGE_BYTES) * PAGE_BYTES + (phase if phase % 64 == 0 else 0)


def _array(one: Request, buffer: _core.Buffer, place: int) -> Array:
    array = Array(buffer, one.info.dtype.native, one.stored.shape, place)
    return array if one.info.order == "C" else array.T


def wanted_at(one: Request, target: Target, number: int) -> Wanted:
    """With the strides of the target for all dimensions as stored; those that an index dropped get 0."""
    left = iter(target.strides)
    spread = [0 if gone else next(left) for gone in one.selection.dropped]
    strides = tuple(spread if one.info.order == "C" else spread[::-1])
    return Wanted(one.info, one.stored, number, target.base, strides)


def checked_out(one: Request, stream: int | None, device: str) -> Target:
    """`out` as a target. TypeError and ValueError say what it is and what it would have to be."""
    target = target_of(one.out, stream)
    name, dtype, shape = one.info.name, one.info.dtype.native, one.selection.shape
    if target.dtype != dtype:
        order = ", in the order of this machine" if target.dtype.native == dtype else ""
        raise TypeError(f"out has elements of {target.dtype}, dataset {name!r} is read as {dtype}{order}")
    if target.shape != shape:
        raise ValueError(f"out has shape {target.shape}, the selection of dataset {name!r} {shape}")
    if target.device != device:
        raise ValueError(
            f"out lies on {target.device}, the file reads to {device}: open it with device={target.device!r}"
        )
    if target.readonly:
        raise ValueError(f"out, for dataset {name!r}, is read-only; pass memory that can be written")
    if not target.is_order(one.info.order):
        order = {"C": "C (row-major)", "F": "Fortran (column-major)"}[one.info.order]
        raise ValueError(f"out has strides {target.strides}; dataset {name!r} is read in {order} order, without gaps")
    return replace(target, dtype=dtype)
