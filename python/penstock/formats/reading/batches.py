"""From pieces to batches: tables of ranges for the engine, and boxes for the device, of bounded size.

Pure. A batch is one submission: ranges that go straight to memory, ranges that go through scratch, and the boxes that
then lie between scratch and memory (before a write: memory and scratch). Ranges that touch, or nearly touch, become
one. What must stay true: a batch needs at most SCRATCH_BYTES of scratch, and a quarter more for holes, unless a single
piece is larger; its ranges of scratch do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from penstock.formats.reading.pieces import DIRECT_BYTES, GAP_BYTES, Group
from penstock.formats.reading.streams import Unpack

SCRATCH_BYTES = 256 << 20  # of one batch, without the holes between pieces; two are under way at a time
BATCH_PIECES = 1 << 18
BATCH_FILES = 256
PAGE_BYTES = 4096
PAGED_BYTES = 32 << 10  # ranges this long begin in scratch where they begin in a page of the file, as O_DIRECT likes


class Move(NamedTuple):
    """Boxes of one device copy, as _core.copy_boxes takes them: between scratch and memory, or memory in place."""

    target: int
    in_place: bool
    item_bytes: int
    swap_bytes: int
    table: np.ndarray  # int64 [n, 2 + 3 ndim]


class Padding(NamedTuple):
    """Boxes of scratch to fill with an item, as _core.fill_boxes takes them."""

    item: bytes
    table: np.ndarray  # int64 [n, 3]


@dataclass
class Batch:
    """Tables hold (file, file offset, memory offset, bytes)."""

    direct: dict[int, np.ndarray] = field(default_factory=dict)  # by target
    staged: np.ndarray = field(default_factory=lambda: np.empty((0, 4), np.int64))  # memory is scratch
    scratch_bytes: int = 0
    moves: list[Move] = field(default_factory=list)
    paddings: list[Padding] = field(default_factory=list)
    unpacks: list[Unpack] = field(default_factory=list)  # what of scratch the device decodes

    @property
    def bytes(self) -> int:
        return int(self.staged[:, 3].sum()) + sum(int(table[:, 3].sum()) for table in self.direct.values())

    @property
    def ranges(self) -> int:
        return len(self.staged) + sum(len(table) for table in self.direct.values())


class Ranges(Protocol):
    """Columns of one row a range of a file."""

    @property
    def file(self) -> np.ndarray: ...
    @property
    def offset(self) -> np.ndarray: ...
    @property
    def bytes(self) -> np.ndarray: ...


class Run(NamedTuple):
    """Enumerated pieces of one group: columns of one row a piece."""

    group: Group
    file: np.ndarray
    offset: np.ndarray
    memory: np.ndarray
    bytes: np.ndarray

    def of(self, keep: slice) -> Run:
        return Run(self.group, *(column[keep] for column in self[1:]))


def batches(groups: list[Group], writes: bool = False) -> Iterator[Batch]:
    """All pieces of the groups, in batches."""
    if len(groups) == 1 and groups[0].direct and groups[0].pieces == 1:
        yield _of_one(groups[0], writes)
        return
    runs: list[Run] = []
    room = _Room()
    for group in groups:
        at = 0
        while at < group.pieces:
            run = _enumerate(group, at, min(group.pieces, at + room.pieces_of(group)))
            run = run.of(slice(room.take(run)))
            if len(run.offset) == 0:
                yield from _finished(runs, writes)
                runs, room = [], _Room()
                continue
            runs.append(run)
            at += len(run.offset)
    if runs:
        yield from _finished(runs, writes)


def _of_one(group: Group, writes: bool) -> Batch:
    """A single range."""
    row = np.array([[group.file[0], group.offset[0], group.memory[0], group.bytes]], np.int64)
    word = 0 if writes else group.swap_bytes
    moves = [Move(group.target, True, word, word, _lines(row[:, 2], row[:, 2], row[:, 3], word))] if word else []
    return Batch(direct={group.target: row}, moves=moves)


class _Room:
    """What still fits the batch that is being filled. An empty batch takes one piece of any size."""

    def __init__(self) -> None:
        self._pieces, self._scratch = BATCH_PIECES, SCRATCH_BYTES
        self._files: set[int] = set()
        self._empty = True

    def pieces_of(self, group: Group) -> int:
        fits = self._pieces if group.direct else min(self._pieces, self._scratch // group.span_bytes)
        return max(int(fits), 1 if self._empty else 0)

    def take(self, run: Run) -> int:
        """How many pieces, from the first on, stay: those before the first file too many."""
        kept = len(run.file)
        if kept == 0:
            return 0
        found, first_seen = np.unique(run.file, return_index=True)
        for at in np.argsort(first_seen).tolist():
            file = int(found[at])
            if file not in self._files and len(self._files) == BATCH_FILES:
                kept = int(first_seen[at])
                break
            self._files.add(file)
        self._pieces -= kept
        self._scratch -= 0 if run.group.direct else kept * run.group.span_bytes
        self._empty = self._empty and kept == 0
        return kept


def _enumerate(group: Group, start: int, stop: int) -> Run:
    if not group.outer:
        rows = slice(start, stop)
        size = np.full(stop - start, group.span_bytes) if group.sizes is None else group.sizes[rows]
        return Run(group, group.file[rows], group.offset[rows], group.memory[rows], size)
    row, rest = np.divmod(np.arange(start, stop, dtype=np.int64), group.pieces_a_row)
    offset, memory = group.offset[row], group.memory[row]
    for axis in reversed(group.outer):
        rest, position = np.divmod(rest, axis.count)
        offset += position * axis.file_stride
        memory += position * axis.memory_stride
    return Run(group, group.file[row], offset, memory, np.full(len(row), group.span_bytes))


def _finished(runs: list[Run], writes: bool) -> Iterator[Batch]:
    """The batch of these pieces; several, when what lies between near pieces makes scratch too large."""
    straight = _Straight([run for run in runs if run.group.direct])
    near = straight.take_near(0 if writes else GAP_BYTES)
    staged = [*(run for run in runs if not run.group.direct), *near]
    batch = Batch(direct=straight.tables())
    if not writes:
        batch.moves += straight.swaps()
    for half in _place(batch, staged, writes):
        if half.ranges:
            yield half


def _place(batch: Batch, staged: list[Run], writes: bool) -> Iterator[Batch]:
    if not staged:
        yield batch
        return
    scratch = ScratchRanges(staged, 0 if writes else GAP_BYTES)
    pieces = sum(len(run.offset) for run in staged)
    if scratch.bytes > SCRATCH_BYTES + SCRATCH_BYTES // 4 and pieces > 1:
        first, second = _halves(staged, pieces // 2)
        yield from _place(batch, first, writes)
        yield from _place(Batch(), second, writes)
        return
    batch.staged, batch.scratch_bytes = scratch.table, scratch.bytes
    for run, at in zip(staged, scratch.offsets, strict=True):
        batch.moves.append(_move(run, at, writes))
        if run.group.padding is not None:
            batch.paddings.append(_padding(run, at))
    yield batch


def _halves(runs: list[Run], count: int) -> tuple[list[Run], list[Run]]:
    first, second = [], []
    for run in runs:
        cut = min(count, len(run.offset))
        count -= cut
        first += [run.of(slice(0, cut))] if cut else []
        second += [run.of(slice(cut, None))] if cut < len(run.offset) else []
    return first, second


def _move(run: Run, scratch: np.ndarray, writes: bool) -> Move:
    group = run.group
    if group.direct:  # taken out of those that go straight: one run of bytes each
        to, source = (scratch, run.memory) if writes else (run.memory, scratch)
        return Move(
            group.target, False, group.item_bytes, group.swap_bytes, _lines(to, source, run.bytes, group.item_bytes)
        )
    counts, file_strides, memory_strides = zip(*group.inner, strict=True) if group.inner else ((), (), ())
    numbers = np.array([*counts, *memory_strides, *file_strides], np.int64)
    table = np.empty((len(run.offset), 2 + len(numbers)), np.int64)
    table[:, 0], table[:, 1] = run.memory, scratch
    if writes:
        table[:, 0], table[:, 1] = scratch, run.memory
        numbers = np.array([*counts, *file_strides, *memory_strides], np.int64)
    table[:, 2:] = numbers
    return Move(group.target, False, group.item_bytes, group.swap_bytes, table)


def _lines(to: np.ndarray, source: np.ndarray, size: np.ndarray, word: int) -> np.ndarray:
    """Boxes of one dense dimension."""
    stride = np.full(len(size), word)
    return np.column_stack([to, source, size // word, stride, stride])


def _padding(run: Run, scratch: np.ndarray) -> Padding:
    assert run.group.padding is not None
    table = np.empty((len(scratch), 3), np.int64)
    table[:, 0], table[:, 1], table[:, 2] = (
        scratch,
        run.group.span_bytes // len(run.group.padding),
        len(run.group.padding),
    )
    return Padding(run.group.padding, table)


class _Straight:
    """Direct pieces: those that touch in file and memory become one; small ones that nearly touch can be taken out."""

    def __init__(self, runs: list[Run]) -> None:
        columns = [
            np.column_stack(
                [
                    run.file,
                    run.offset,
                    run.memory,
                    run.bytes,
                    np.full(len(run.file), run.group.target),
                    np.full(len(run.file), run.group.swap_bytes),
                ]
            )
            for run in runs
        ]
        rows = np.concatenate(columns) if columns else np.empty((0, 6), np.int64)
        if len(rows) > 1:
            rows = self._joined(rows[np.lexsort((rows[:, 1], rows[:, 0]))])
        self._rows = rows

    @staticmethod
    def _joined(rows: np.ndarray) -> np.ndarray:
        above, below = rows[:-1], rows[1:]
        touch = (above[:, 1] + above[:, 3] == below[:, 1]) & (above[:, 2] + above[:, 3] == below[:, 2])
        touch &= (above[:, [0, 4, 5]] == below[:, [0, 4, 5]]).all(axis=1)
        starts = np.flatnonzero(np.concatenate([[True], ~touch]))
        joined = rows[starts].copy()
        joined[:, 3] = np.add.reduceat(rows[:, 3], starts)
        return joined

    def take_near(self, gap: int) -> list[Run]:
        """Small pieces next to each other in the file: fewer requests when they are fetched together."""
        rows = self._rows
        if len(rows) < 2:
            return []
        above, below = rows[:-1], rows[1:]
        hole = below[:, 1] - above[:, 1] - above[:, 3]
        small = np.maximum(above[:, 3], below[:, 3]) < DIRECT_BYTES
        near = (above[:, 0] == below[:, 0]) & (hole >= 0) & (hole <= gap) & small
        taken = np.concatenate([near, [False]]) | np.concatenate([[False], near])
        self._rows = rows[~taken]
        return [self._run(alike) for alike in _split_by(rows[taken], (4, 5))]

    @staticmethod
    def _run(rows: np.ndarray) -> Run:
        target, swap = int(rows[0, 4]), int(rows[0, 5])
        empty = np.empty(0, np.int64)
        group = Group(target, swap or 1, swap, empty, empty, empty, (), (), 0, True)
        return Run(group, *(rows[:, column] for column in range(4)))

    def tables(self) -> dict[int, np.ndarray]:
        return {int(rows[0, 4]): np.ascontiguousarray(rows[:, :4]) for rows in _split_by(self._rows, (4,))}

    def swaps(self) -> list[Move]:
        """Reversing words where they arrived."""
        moves = []
        for rows in _split_by(self._rows[self._rows[:, 5] > 0], (4, 5)):
            target, word = int(rows[0, 4]), int(rows[0, 5])
            moves.append(Move(target, True, word, word, _lines(rows[:, 2], rows[:, 2], rows[:, 3], word)))
        return moves


def _split_by(rows: np.ndarray, columns: tuple[int, ...]) -> list[np.ndarray]:
    """Rows that are equal in these columns, together."""
    if len(rows) == 0:
        return []
    keys = rows[:, columns]
    if (keys == keys[0]).all():
        return [rows]
    _, kind = np.unique(keys, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    order = np.argsort(kind, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(kind[order])) + 1)


class ScratchRanges:
    """Ranges through scratch: pieces that nearly touch are one range. `offsets` says, run by run, where pieces lie."""

    def __init__(self, runs: Sequence[Ranges], gap: int) -> None:
        file = np.concatenate([run.file for run in runs])
        offset = np.concatenate([run.offset for run in runs])
        size = np.concatenate([run.bytes for run in runs])
        order = np.lexsort((offset, file))
        file, offset, size = file[order], offset[order], size[order]
        hole = offset[1:] - offset[:-1] - size[:-1]
        joins = (file[1:] == file[:-1]) & (hole >= 0) & (hole <= gap)
        starts = np.flatnonzero(np.concatenate([[True], ~joins]))
        ends = np.concatenate([starts[1:], [len(order)]]) - 1
        length = offset[ends] + size[ends] - offset[starts]
        place = self._places(offset[starts], length)
        self.table = np.column_stack([file[starts], offset[starts], place, length])
        where = np.empty(len(order), np.int64)
        where[order] = np.repeat(place - offset[starts], ends - starts + 1) + offset
        cuts = np.cumsum([len(run.offset) for run in runs])[:-1]
        self.offsets = np.split(where, cuts)

    def _places(self, offset: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Each range at the place in a page (long ones) or in 64 bytes that it has in the file; long ones first."""
        long = length >= PAGED_BYTES
        unit = np.where(long, PAGE_BYTES, 64)
        phase = offset % unit
        room = -(-(phase + length) // unit) * unit
        order = np.argsort(~long, kind="stable")
        begin = np.empty(len(room), np.int64)
        begin[order] = np.cumsum(room[order]) - room[order]
        self.bytes = int(room.sum())
        return begin + phase
