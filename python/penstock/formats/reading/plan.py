"""The whole of one read or write, as data: from datasets and tables of chunks to batches for the engine.

Pure, NumPy columns: no file is opened and no device is asked. execution.py does what a plan says. Several datasets may
share a plan and a target (one memory), so that all their ranges go in one submission. The way through this file:

1. `BatchPlan.add` takes a Wanted (a selection of a dataset, and its place in memory) and the table of the chunks that
   meet it. A dataset that is one plain chunk goes a short way, `pieces.of_one_chunk`; a whole one that is one range of
   its file and of memory goes the shortest, `add_line`.
2. `pieces.meet` says what each chunk holds of the selection. Chunks that are stored as they are become Pieces, ranges
   of files; encoded ones that the device or the host's cores decode become Packed, ranges of their streams.
3. What the format's library decodes becomes Decodes: boxes of at most `part_bytes`, cut where chunks end.
4. Where chunks are missing, all of the selection's memory is filled before (Fill), and the others write over it.
5. `batches` fills one Batch after the other: `_portions` takes pieces until their number, their files or their scratch
   are too many, an empty batch takes one of any size. Packed chunks count with what they decode to.
6. In a batch, direct pieces that touch in file and memory become one range (`_straight`). Small ones that nearly touch
   go through scratch as all others do: one request for many (`_near`).
7. Pieces in scratch that nearly touch are one range, too (`_scratch`). If the holes between them make scratch too
   large, the batch is cut in halves (`_place`). A Move for each Pieces then says which boxes lie between scratch and
   memory (before a write: memory and scratch).

What must stay true: pieces, chunks, decoded boxes and fills together write every selected element, and fills come
first; a batch needs at most SCRATCH_BYTES of scratch, and a quarter more for holes, unless one piece is larger; its
ranges of scratch do not overlap; a batch decodes to at most what it may, unless one chunk is larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np

from penstock import _core
from penstock._arrays.array import c_strides
from penstock._arrays.distinct import distinct
from penstock._arrays.selection import Selection
from penstock._error import Error
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Extent
from penstock.formats.packing.encoding import Encoding
from penstock.formats.reading import picked, pieces
from penstock.formats.reading.decoders.decoding import ON_HOST, Choice
from penstock.formats.reading.pieces import DIRECT_BYTES, GAP_BYTES, PIECE_BYTES, Packed, Part, Pieces, Wanted

DECODE_BYTES = 64 << 20  # decoded on the host at a time, unless the format wants less
SCRATCH_BYTES = 256 << 20  # of one batch, without the holes between pieces; two are under way at a time
BATCH_PIECES = 1 << 18
BATCH_FILES = 256
PAGE_BYTES = 4096
PAGED_BYTES = 32 << 10  # ranges this long begin in scratch where they begin in a page of the file, as O_DIRECT likes
# That one batch decodes to, at most: a GPU takes long for a chunk, and hardly longer for a thousand of them.
DECODED_BYTES = 1 << 30
BATCH_CHUNKS = 1 << 16
CORES_BYTES = 64 << 20  # that one batch for the host's cores decodes to: some chunks for each of them
SCRATCH = -1  # in place of the number of a target


class Fill(NamedTuple):
    """Elements that no file gives: of memory what is not stored, of scratch what is written behind the elements."""

    target: int  # or SCRATCH
    item: bytes  # in the order of this machine
    table: np.ndarray  # int64 [n, 1 + 2 ndim], as _core.fill_boxes takes it


class Decode(NamedTuple):
    """A box that the format decodes on the host, and the boxes that then go to memory."""

    dataset: str
    box: Box
    target: int
    item_bytes: int
    swap_bytes: int
    table: np.ndarray  # int64 [1, 2 + 3 ndim], as _core.copy_boxes takes it; source is the decoded box

    @property
    def bytes(self) -> int:
        size = self.item_bytes
        for start, stop in zip(self.box.start, self.box.stop, strict=True):
            size *= stop - start
        return size


class Move(NamedTuple):
    """Boxes of one device copy, as _core.copy_boxes takes them: between scratch and memory, or memory in place."""

    target: int
    in_place: bool
    item_bytes: int
    swap_bytes: int
    table: np.ndarray  # int64 [n, 2 + 3 ndim]


@dataclass
class Batch:
    """One submission. Tables hold (file, file offset, memory offset, bytes)."""

    direct: dict[int, np.ndarray] = field(default_factory=dict)  # by target
    staged: np.ndarray = field(default_factory=lambda: np.empty((0, 4), np.int64))  # memory is scratch
    scratch_bytes: int = 0
    moves: list[Move] = field(default_factory=list)
    paddings: list[Fill] = field(default_factory=list)
    # What of scratch is decoded: chunks, and where their streams lie in it (int64 [n]).
    unpacks: list[tuple[Packed, np.ndarray]] = field(default_factory=list)
    on_cores: bool = False  # those of the host decode: scratch is memory of the host

    @property
    def bytes(self) -> int:
        return int(self.staged[:, 3].sum()) + sum(int(table[:, 3].sum()) for table in self.direct.values())

    @property
    def ranges(self) -> int:
        return len(self.staged) + sum(len(table) for table in self.direct.values())


@dataclass
class BatchPlan:
    """What to do, in the order fills, then pieces and decodes."""

    writes: bool = False
    files: list[str] = field(default_factory=list)
    pieces: list[Pieces] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)
    decodes: list[Decode] = field(default_factory=list)
    packed: list[Packed] = field(default_factory=list)  # for the device
    coded: list[Packed] = field(default_factory=list)  # for the host's cores
    encodings: list[Encoding] = field(default_factory=list)  # of a write, by the host's cores
    notes: list[str] = field(default_factory=list)  # for the evidence
    gaps: list[str] = field(default_factory=list)  # data that are not there: for the evidence, and refused in strict
    requested_bytes: int = 0
    part_bytes: int = field(default_factory=lambda: DECODE_BYTES)  # decoded at a time

    def add(self, wanted: Wanted, table: ChunkTable | None, choice: Choice = ON_HOST) -> None:
        """Adds one dataset; a selection without elements needs no table. `choice`: who decodes its chunks."""
        self.notes += [choice.note] if choice.note else []
        info, selection = wanted.info, wanted.selection
        self.requested_bytes += selection.size * info.dtype.itemsize
        if selection.size == 0 or table is None:
            return
        listed = selection.picks is not None
        if len(table.bytes) == 1 and info.chunk_shape == info.shape and not (listed or table.encoded[0]):
            number = self.number_of(table.files[int(table.file_index[0])])
            self.pieces += pieces.of_one_chunk(wanted, table, number, self.writes)
            return
        part = picked.meet(info, selection, table)
        encoded = np.asarray(table.encoded, bool)[part.rows]
        plain = part.of(~encoded)
        self.add_plain(wanted, table, plain)
        complete = int(part.counts.prod(axis=1).sum()) == selection.size
        if self.writes:
            if encoded.any() or not complete:
                raise Error(
                    code="unsupported",
                    operation=f"write {info.name} of",
                    file=table.files[0] if table.files else "",
                    cause="chunks of the selection are compressed, or have no place in the file yet",
                    advice="write to a dataset without filters, or write it anew",
                )
            return
        ways = ((choice.on_device, self.packed, None), (choice.on_cores, self.coded, choice.pipeline))
        for rows, into, pipeline in ways:
            if rows is not None:
                into += self._packed(wanted, table, part.of(encoded & rows[part.rows]), pipeline)
                encoded &= ~rows[part.rows]
        if choice.on_device is None and choice.on_cores is None and encoded.all() and len(encoded) and not listed:
            stored = np.asarray(table.bytes)[part.rows].any()  # else there are no chunks to decode as a whole
            self._decode(wanted, info.chunk_shape if stored else (1,) * info.ndim)  # fills in what is not stored
            return
        if not complete:
            self._fill(wanted)
        if listed:
            self._decode_parts(wanted, part.of(encoded), table)
            return
        for row in np.flatnonzero(encoded):
            self._decode_box(wanted, part.at[row], part.counts[row])

    def add_plain(self, wanted: Wanted, table: ChunkTable, part: Part) -> None:
        """Adds the pieces of chunks that are stored as they are."""
        if len(part.rows) == 0:
            return
        numbers = np.array([self.number_of(name) for name in table.files], np.int64)
        shifted = ChunkTable(
            table.files,
            numbers[np.asarray(table.file_index)],
            table.origin,
            table.offset_bytes,
            table.bytes,
            table.encoded,
        )
        self.pieces += pieces.of_chunks(wanted, shifted, part, self.writes)

    def _packed(self, wanted: Wanted, table: ChunkTable, part: Part, pipeline: _core.Pipeline | None) -> list[Packed]:
        """Chunks that the device decodes, or the host's cores by the pipeline."""
        if not len(part.rows):
            return []
        numbers = np.array([self.number_of(name) for name in table.files], np.int64)
        found = pieces.packed_of(wanted, table, part, pipeline is None)
        return [replace(found, file=numbers[found.file], pipeline=pipeline)]

    def add_line(self, info: DatasetInfo, table: ChunkTable, target: int, at: int) -> None:
        """Adds a whole dataset that is one plain range of a file, and is to be one range of memory, at byte `at`. A
        file may hold thousands of those, so that is quick."""
        size = math.prod(info.shape) * info.dtype.itemsize
        row = (self.number_of(table.files[int(table.file_index[0])]), int(table.offset_bytes[0]), at, size)
        self._lines.setdefault((target, info.dtype.swap_bytes), []).append(row)
        self.requested_bytes += size

    def add_encoding(self, encoding: Encoding) -> None:
        """Adds chunks that are encoded on their way to the file."""
        self.encodings.append(encoding)
        self.requested_bytes += encoding.bytes

    def _all_pieces(self) -> list[Pieces]:
        lines = self._lines.items()
        return [*self.pieces, *(pieces.of_lines(rows, target, swap) for (target, swap), rows in lines)]

    def number_of(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.files)
            self.files.append(name)
        return self._numbers[name]

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.files)}
        self._lines: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}

    def _fill(self, wanted: Wanted) -> None:
        info, selection = wanted.info, wanted.selection
        item = info.fill if info.fill is not None else bytes(info.dtype.itemsize)
        word = info.dtype.swap_bytes
        if word:
            item = b"".join(item[at : at + word][::-1] for at in range(0, len(item), word))
        at = pieces.memory_offset(wanted, np.zeros((1, info.ndim), np.int64))
        row = [int(at[0]), *selection.counts, *pieces.memory_strides(wanted)]
        self.fills.append(Fill(wanted.target, item, np.array([row], np.int64)))

    def _decode(self, wanted: Wanted, chunk: tuple[int, ...]) -> None:
        for at, counts in _slabs(wanted, chunk, self.part_bytes):
            self._decode_box(wanted, at, counts)

    def _decode_box(self, wanted: Wanted, at: np.ndarray, counts: np.ndarray) -> None:
        """Elements [at, at + counts) of the selection, counted in ascending order."""
        info, selection = wanted.info, wanted.selection
        low, steps, _ = pieces.ascending(selection)
        start = low + at * steps
        extents = (counts - 1) * steps + 1
        box = Box(tuple(start.tolist()), tuple((start + extents).tolist()))
        item = info.dtype.itemsize
        strides = [item] * info.ndim
        for axis in range(info.ndim - 2, -1, -1):
            strides[axis] = strides[axis + 1] * int(extents[axis + 1])
        memory = int(pieces.memory_offset(wanted, at.reshape(1, -1))[0])
        near = pieces.memory_strides(wanted)
        far = [stride * int(step) for stride, step in zip(strides, steps, strict=True)]
        row = np.array([[memory, 0, *counts.tolist(), *near, *far]], np.int64)
        self.decodes.append(Decode(info.name, box, wanted.target, item, info.dtype.swap_bytes, row))

    def _decode_parts(self, wanted: Wanted, part: Part, table: ChunkTable) -> None:
        """A chunk once, from its first element that is wanted to its last, whatever lies between. What has no chunks
        is cut where nothing is wanted, and where a box grows too large."""
        info, item = wanted.info, wanted.info.dtype.itemsize
        origin = np.asarray(table.origin, np.int64)[part.rows]
        steps = np.abs(np.array(wanted.selection.steps, np.int64))
        if not len(part.rows):
            return
        low = origin + part.inside
        high = low + (part.counts - 1) * steps + 1
        strides, at = pieces.memory_strides(wanted), pieces.memory_offset(wanted, part.at)
        for rows in _decoded_together(part, (low, high), np.asarray(table.bytes), self.part_bytes // item):
            start, stop = low[rows].min(axis=0), high[rows].max(axis=0)
            inner = pieces.c_strides((stop - start).reshape(1, -1), item)[0]
            boxes = np.empty((len(rows), 2 + 3 * info.ndim), np.int64)
            boxes[:, 0], boxes[:, 1] = at[rows], ((low[rows] - start) * inner).sum(axis=1)
            boxes[:, 2 : 2 + info.ndim] = part.counts[rows]
            boxes[:, 2 + info.ndim :] = [*strides, *(inner * steps).tolist()]
            box = Box(tuple(start.tolist()), tuple(stop.tolist()))
            self.decodes.append(Decode(info.name, box, wanted.target, item, info.dtype.swap_bytes, boxes))

    def batches(self, decoded_bytes: int = DECODED_BYTES) -> Iterator[Batch]:
        """`decoded_bytes`: that one batch may decode to on the device; it may hold chunks of several datasets."""
        every = self._all_pieces()
        if len(every) == 1 and every[0].direct and every[0].count == 1:
            yield _of_one(every[0], self.writes)
        else:
            for taken in _portions(every, BATCH_PIECES, SCRATCH_BYTES):
                yield from _batches_of(taken, self.writes)
        for chunks in _portions(self.packed, BATCH_CHUNKS, decoded_bytes):
            table, size, places = _scratch(chunks, GAP_BYTES)
            yield Batch(staged=table, scratch_bytes=size, unpacks=list(zip(chunks, places, strict=True)))
        for chunks in _portions(self.coded, BATCH_CHUNKS, CORES_BYTES):
            table, size, places = _scratch(chunks, GAP_BYTES)
            unpacks = list(zip(chunks, places, strict=True))
            yield Batch(staged=table, scratch_bytes=size, unpacks=unpacks, on_cores=True)

    @property
    def total_bytes(self) -> int:
        """Of file ranges, decoded boxes and chunks to encode, as far as can be said before near ranges are joined."""
        streams = sum(int(one.sizes.sum()) for one in [*self.packed, *self.coded])
        plain = sum(one.bytes for one in self.encodings)
        return sum(one.total_bytes for one in self._all_pieces()) + streams + self.decoded_bytes + plain

    @property
    def decoded_bytes(self) -> int:
        return sum(decode.bytes for decode in self.decodes)

    def extents(self) -> list[Extent]:
        """The ranges of files that will be touched."""
        found: list[Extent] = []
        for batch in self.batches():
            tables = [batch.staged, *batch.direct.values()]
            rows = sorted((int(f), int(o), int(n)) for table in tables for f, o, _, n in table)
            found += [Extent(self.files[file], offset, size) for file, offset, size in rows]
        return found


def _slabs(wanted: Wanted, chunk: tuple[int, ...], most_bytes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(first, counts) of parts of the selection of at most `most_bytes`, cut where chunks end."""
    low, steps, counts = pieces.ascending(wanted.selection)
    waiting = [(np.zeros_like(counts), counts)]
    while waiting:
        at, size = waiting.pop()
        if int(((size - 1) * steps + 1).prod()) * wanted.info.dtype.itemsize <= most_bytes:
            yield at, size
            continue
        for axis in range(len(size)):
            first, last = (int(low[axis] + (at[axis] + n) * steps[axis]) // chunk[axis] for n in (0, size[axis] - 1))
            if last > first:
                edge = (first + last + 1) // 2 * chunk[axis]  # the chunk that begins here goes to the second part
                cut = int(-((low[axis] + at[axis] * steps[axis] - edge) // steps[axis]))
                waiting += [_cut(at, size, axis, cut, False), _cut(at, size, axis, cut, True)][::-1]
                break
        else:
            yield at, size  # one chunk, however large


def _decoded_together(
    part: Part, ends: tuple[np.ndarray, np.ndarray], stored: np.ndarray, most: int
) -> Iterator[np.ndarray]:
    """Row numbers of the parts that one call of the format's library decodes."""
    low, high = ends
    begin, first, last = 0, low[0], high[0]
    for row in range(1, len(part.rows)):
        together = part.rows[row] == part.rows[begin]
        first, last = np.minimum(first, low[row]), np.maximum(last, high[row])
        if together and not stored[part.rows[row]]:
            together = bool((low[row] <= high[row - 1]).all()) and int((last - first).prod()) <= most
        if not together:
            yield np.arange(begin, row)
            begin, first, last = row, low[row], high[row]
    yield np.arange(begin, len(part.rows))


def _cut(at: np.ndarray, size: np.ndarray, axis: int, cut: int, second: bool) -> tuple[np.ndarray, np.ndarray]:
    at, size = at.copy(), size.copy()
    if second:
        at[axis] += cut
        size[axis] -= cut
    else:
        size[axis] = cut
    return at, size


def _of_one(one: Pieces, writes: bool) -> Batch:
    """A single range."""
    row = np.array([[one.file[0], one.offset[0], one.memory[0], one.total_bytes]], np.int64)
    word = 0 if writes else one.swap_bytes
    moves = [Move(one.target, True, word, word, _lines(row[:, 2], row[:, 2], row[:, 3], word))] if word else []
    return Batch(direct={one.target: row}, moves=moves)


Columns = TypeVar("Columns", Pieces, Packed)


def _portions(every: Sequence[Columns], most: int, most_bytes: int) -> Iterator[list[Columns]]:
    """All of them, in portions that one batch holds: at most so many, with so much scratch, of so many files."""
    taken: list[Columns] = []
    files: set[int] = set()
    left, room = most, most_bytes
    for one in every:
        at, each = 0, one.scratch_bytes
        while at < one.count:
            fits = min(left, room // each) if each else left
            part = one.part(at, min(one.count, at + max(fits, 0 if taken else 1)))
            count = _of_few_files(part.file, files)
            if count == 0:
                yield taken
                taken, files, left, room = [], set(), most, most_bytes
                continue
            taken.append(part if count == part.count else part.part(0, count))
            at, left, room = at + count, left - count, room - count * each
    if taken:
        yield taken


def _of_few_files(file: np.ndarray, seen: set[int]) -> int:
    """How many rows, from the first on, come before the first file too many. Adds the files to `seen`."""
    for at in np.flatnonzero(np.diff(file, prepend=-1)).tolist():
        number = int(file[at])
        if number not in seen and len(seen) == BATCH_FILES:
            return int(at)
        seen.add(number)
    return len(file)


def _batches_of(taken: list[Pieces], writes: bool) -> Iterator[Batch]:
    """The batch of these pieces; several, when what lies between near pieces makes scratch too large."""
    rows = _straight([one for one in taken if one.direct])
    near = _near(rows, 0 if writes else GAP_BYTES)
    small = [_of_rows(alike) for alike in _alike_rows(rows[near], (4, 5))]
    rows = rows[~near]
    batch = Batch(direct={int(some[0, 4]): np.ascontiguousarray(some[:, :4]) for some in _alike_rows(rows, (4,))})
    if not writes:
        batch.moves += _swaps(rows)
    for half in _place(batch, [*(one for one in taken if not one.direct), *small], writes):
        if half.ranges:
            yield half


def _place(batch: Batch, staged: list[Pieces], writes: bool) -> Iterator[Batch]:
    if not staged:
        yield batch
        return
    table, size, places = _scratch(staged, 0 if writes else GAP_BYTES)
    count = sum(one.count for one in staged)
    if size > SCRATCH_BYTES + SCRATCH_BYTES // 4 and count > 1:
        first, second = _halves(staged, count // 2)
        yield from _place(batch, first, writes)
        yield from _place(Batch(), second, writes)
        return
    batch.staged, batch.scratch_bytes = table, size
    for one, at in zip(staged, places, strict=True):
        batch.moves.append(_move(one, at, writes))
        if one.padding is not None:
            batch.paddings.append(_padding(one, at))
    yield batch


def _halves(every: list[Pieces], count: int) -> tuple[list[Pieces], list[Pieces]]:
    first, second = [], []
    for one in every:
        cut = min(count, one.count)
        count -= cut
        first += [one.part(0, cut)] if cut else []
        second += [one.part(cut, one.count)] if cut < one.count else []
    return first, second


def _move(one: Pieces, scratch: np.ndarray, writes: bool) -> Move:
    if one.direct:  # taken out of those that go straight: one run of bytes each
        assert one.sizes is not None
        to, source = (scratch, one.memory) if writes else (one.memory, scratch)
        lines = _lines(to, source, one.sizes, one.item_bytes)
        return Move(one.target, False, one.item_bytes, one.swap_bytes, lines)
    counts, file_strides, memory_strides = zip(*one.inner, strict=True) if one.inner else ((), (), ())
    numbers = np.array([*counts, *memory_strides, *file_strides], np.int64)
    table = np.empty((len(one.offset), 2 + len(numbers)), np.int64)
    table[:, 0], table[:, 1] = one.memory, scratch
    if writes:
        table[:, 0], table[:, 1] = scratch, one.memory
        numbers = np.array([*counts, *file_strides, *memory_strides], np.int64)
    table[:, 2:] = numbers
    return Move(one.target, False, one.item_bytes, one.swap_bytes, table)


def _lines(to: np.ndarray, source: np.ndarray, size: np.ndarray, word: int) -> np.ndarray:
    """Boxes of one dense dimension."""
    stride = np.full(len(size), word)
    return np.column_stack([to, source, size // word, stride, stride])


def _padding(one: Pieces, scratch: np.ndarray) -> Fill:
    assert one.padding is not None
    item = len(one.padding)
    table = np.empty((len(scratch), 3), np.int64)
    table[:, 0], table[:, 1], table[:, 2] = scratch, one.span_bytes // item, item
    return Fill(SCRATCH, one.padding, table)


def _straight(direct: list[Pieces]) -> np.ndarray:
    """Direct pieces as rows: file, offset in it, in memory, bytes, target, bytes to swap. Those that touch are one."""
    if not direct:
        return np.empty((0, 6), np.int64)
    columns = []
    for one in direct:
        assert one.sizes is not None
        same = np.ones(len(one.file), np.int64)
        columns.append([one.file, one.offset, one.memory, one.sizes, one.target * same, one.swap_bytes * same])
    rows = np.concatenate([np.column_stack(each) for each in columns])
    if len(rows) < 2:
        return rows
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    above, below = rows[:-1], rows[1:]
    touch = (above[:, 1] + above[:, 3] == below[:, 1]) & (above[:, 2] + above[:, 3] == below[:, 2])
    touch &= (above[:, [0, 4, 5]] == below[:, [0, 4, 5]]).all(axis=1)
    starts = np.flatnonzero(np.concatenate([[True], ~touch]))
    joined = rows[starts].copy()
    joined[:, 3] = np.add.reduceat(rows[:, 3], starts)
    return joined


def _near(rows: np.ndarray, gap: int) -> np.ndarray:
    """bool [n]: small, and near another small one in the file; they are fewer requests when fetched together. What is
    wanted twice is fetched once so."""
    if len(rows) < 2:
        return np.zeros(len(rows), bool)
    above, below = rows[:-1], rows[1:]
    hole = below[:, 1] - above[:, 1] - above[:, 3]
    longer = np.maximum(above[:, 3], below[:, 3])
    small = (longer < DIRECT_BYTES) | ((hole < 0) & (longer <= PIECE_BYTES))
    near = (above[:, 0] == below[:, 0]) & (hole <= gap) & small
    return np.concatenate([near, [False]]) | np.concatenate([[False], near])


def _of_rows(rows: np.ndarray) -> Pieces:
    """Rows of _straight with one target and one swap."""
    file, offset, memory, sizes = (rows[:, column] for column in range(4))
    target, swap = int(rows[0, 4]), int(rows[0, 5])
    return Pieces(target, swap or 1, swap, file, offset, memory, (), (), 0, True, sizes=sizes)


def _swaps(rows: np.ndarray) -> list[Move]:
    """Reversing words where they arrived."""
    moves = []
    for some in _alike_rows(rows[rows[:, 5] > 0], (4, 5)):
        target, word = int(some[0, 4]), int(some[0, 5])
        moves.append(Move(target, True, word, word, _lines(some[:, 2], some[:, 2], some[:, 3], word)))
    return moves


def _alike_rows(rows: np.ndarray, columns: tuple[int, ...]) -> list[np.ndarray]:
    """Rows that are equal in these columns, together."""
    return [rows[numbers] for numbers in pieces.alike(rows[:, columns])] if len(rows) else []


def _scratch(every: Sequence[Pieces] | Sequence[Packed], gap: int) -> tuple[np.ndarray, int, list[np.ndarray]]:
    """Ranges through scratch, as a table for the engine, and its bytes: what nearly touches is one range. And, one
    column each, where they lie in it."""
    file = np.concatenate([one.file for one in every])
    offset = np.concatenate([one.offset for one in every])
    size = np.concatenate([one.sizes for one in every])
    order = np.lexsort((offset, file))
    file, offset, size = file[order], offset[order], size[order]
    reach = _reach(file, offset + size)
    joins = (file[1:] == file[:-1]) & (offset[1:] - reach[:-1] <= gap)
    starts = np.flatnonzero(np.concatenate([[True], ~joins]))
    ends = np.concatenate([starts[1:], [len(order)]]) - 1
    length = reach[ends] - offset[starts]
    place, total = _places(offset[starts], length)
    where = np.empty(len(order), np.int64)
    where[order] = np.repeat(place - offset[starts], ends - starts + 1) + offset
    cuts = np.cumsum([len(one.offset) for one in every])[:-1]
    return np.column_stack([file[starts], offset[starts], place, length]), total, np.split(where, cuts)


def _reach(file: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Where in its file all rows up to each one end; the rows of a file follow each other."""
    if (end[1:] >= end[:-1])[file[1:] == file[:-1]].all():
        return end
    starts = np.flatnonzero(np.concatenate([[True], np.diff(file) != 0]))
    return np.concatenate([np.maximum.accumulate(one) for one in np.split(end, starts[1:])])


def _places(offset: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, int]:
    """Each range at the place in a page (long ones) or in 64 bytes that it has in the file; long ones first. And the
    bytes of all."""
    long = length >= PAGED_BYTES
    unit = np.where(long, PAGE_BYTES, 64)
    phase = offset % unit
    room = -(-(phase + length) // unit) * unit
    order = np.argsort(~long, kind="stable")
    begin = np.empty(len(room), np.int64)
    begin[order] = np.cumsum(room[order]) - room[order]
    return begin + phase, int(room.sum())


def stored_extents(info: DatasetInfo, selection: Selection, table: ChunkTable | None) -> list[Extent]:
    """The byte ranges of files that a selection (as stored) needs, in file order: of plain chunks the ranges that are
    read; of encoded ones all their stored bytes. Ranges that touch are one."""
    if table is None:
        return []
    plan = BatchPlan()
    met = picked.meet(info, selection, table)
    coded = np.asarray(table.encoded, bool)[met.rows]
    wanted = Wanted(info, selection, 0, 0, c_strides(selection.counts, info.dtype.itemsize))
    plan.add_plain(wanted, table, met.of(~coded))
    found = plan.extents()
    found += [
        Extent(table.files[int(table.file_index[row])], int(table.offset_bytes[row]), int(table.bytes[row]))
        for row in distinct(met.rows[coded])
        if table.bytes[row]
    ]
    joined: list[Extent] = []
    for one in sorted(found):
        last = joined[-1] if joined else None
        if last and last.file == one.file and last.offset_bytes + last.bytes == one.offset_bytes:
            joined[-1] = last._replace(bytes=last.bytes + one.bytes)
        else:
            joined.append(one)
    return joined
