"""The whole of one read or write, as data: pieces of files, chunks that the device decodes, boxes to fill, and boxes
that the format must decode.

Pure: datasets and chunk tables in, a Plan out; the mover executes it. Several datasets may share a plan and a target
(one memory), so that all their ranges go in one submission. What must stay true: pieces, chunks, decoded boxes and
fills together write every selected element, and fills come first, because the others write over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from penstock._error import Error
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Extent
from penstock.formats.reading import batches, packed, pieces
from penstock.formats.reading.decoding import ON_HOST, Choice
from penstock.formats.reading.pieces import Group, Part, Side, Wanted

DECODE_BYTES = 64 << 20  # decoded on the host at a time, unless the format wants less


class Fill(NamedTuple):
    """Elements of memory that the file does not store."""

    target: int
    item: bytes  # in the order of this machine
    table: np.ndarray  # int64 [1, 1 + 2 ndim], as _core.fill_boxes takes it


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


@dataclass
class Plan:
    """What to do, in the order fills, then pieces and decodes."""

    writes: bool = False
    files: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)
    decodes: list[Decode] = field(default_factory=list)
    packed_chunks: list[packed.Packed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # for the evidence
    gaps: list[str] = field(default_factory=list)  # data that are not there: for the evidence, and refused in strict
    requested_bytes: int = 0
    part_bytes: int = field(default_factory=lambda: DECODE_BYTES)  # decoded at a time

    def add(self, wanted: Wanted, table: ChunkTable | None, choice: Choice = ON_HOST) -> None:
        """Adds one dataset; a selection without elements needs no table. `choice`: who decodes its chunks."""
        self.notes += [choice.note] if choice.note else []
        info, selection, _ = wanted
        self.requested_bytes += selection.size * info.dtype.itemsize
        if selection.size == 0 or table is None:
            return
        if len(table.bytes) == 1 and info.chunk_shape == info.shape and not table.encoded[0]:
            number = self._number(table.files[int(table.file_index[0])])
            self.groups += pieces.group_of_one(wanted, table, number, self.writes)
            return
        part = pieces.meet(info, selection, table)
        encoded = np.asarray(table.encoded, bool)[part.rows]
        plain = part.of(~encoded)
        self.add_groups(wanted, table, plain)
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
        if choice.on_device is not None:
            self._add_packed(wanted, table, part.of(encoded & choice.on_device[part.rows]))
            encoded &= ~choice.on_device[part.rows]
        elif encoded.all() and len(encoded):
            stored = np.asarray(table.bytes)[part.rows].any()  # else there are no chunks to decode as a whole
            self._decode(wanted, info.chunk_shape if stored else (1,) * info.ndim)  # fills in what is not stored
            return
        if not complete:
            self._fill(wanted)
        for row in np.flatnonzero(encoded):
            self._decode_box(wanted, part.at[row], part.counts[row])

    def add_groups(self, wanted: Wanted, table: ChunkTable, part: Part) -> None:
        """Adds the pieces of chunks that are stored as they are."""
        if len(part.rows) == 0:
            return
        numbers = np.array([self._number(name) for name in table.files], np.int64)
        shifted = ChunkTable(
            table.files,
            numbers[np.asarray(table.file_index)],
            table.origin,
            table.offset_bytes,
            table.bytes,
            table.encoded,
        )
        self.groups += pieces.groups_of(wanted, shifted, part, self.writes)

    def _add_packed(self, wanted: Wanted, table: ChunkTable, part: Part) -> None:
        """Adds chunks that the device decodes."""
        if len(part.rows):
            numbers = np.array([self._number(name) for name in table.files], np.int64)
            found = packed.packed_of(wanted, table, part)
            self.packed_chunks.append(replace(found, file=numbers[found.file]))

    def add_line(self, info: DatasetInfo, table: ChunkTable, side: Side) -> None:
        """Adds a whole dataset that is one plain range of a file, and is to be one range of memory. A file may hold
        thousands of those, so that is quick."""
        size = math.prod(info.shape) * info.dtype.itemsize
        row = (self._number(table.files[int(table.file_index[0])]), int(table.offset_bytes[0]), side.base, size)
        self._lines.setdefault((side.target, info.dtype.swap_bytes), []).append(row)
        self.requested_bytes += size

    def _all_groups(self) -> list[Group]:
        lines = self._lines.items()
        return [*self.groups, *(pieces.group_of_lines(rows, target, swap) for (target, swap), rows in lines)]

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.files)
            self.files.append(name)
        return self._numbers[name]

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.files)}
        self._lines: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}

    def _fill(self, wanted: Wanted) -> None:
        info, selection, side = wanted
        item = info.fill if info.fill is not None else bytes(info.dtype.itemsize)
        word = info.dtype.swap_bytes
        if word:
            item = b"".join(item[at : at + word][::-1] for at in range(0, len(item), word))
        at = pieces.memory_offset(selection, side, np.zeros((1, info.ndim), np.int64))
        row = [int(at[0]), *selection.counts, *pieces.memory_strides(selection, side)]
        self.fills.append(Fill(side.target, item, np.array([row], np.int64)))

    def _decode(self, wanted: Wanted, chunk: tuple[int, ...]) -> None:
        for at, counts in _slabs(wanted, chunk, self.part_bytes):
            self._decode_box(wanted, at, counts)

    def _decode_box(self, wanted: Wanted, at: np.ndarray, counts: np.ndarray) -> None:
        """Elements [at, at + counts) of the selection, counted in ascending order."""
        info, selection, side = wanted
        low, steps, _ = pieces.ascending(selection)
        start = low + at * steps
        extents = (counts - 1) * steps + 1
        box = Box(tuple(start.tolist()), tuple((start + extents).tolist()))
        item = info.dtype.itemsize
        strides = [item] * info.ndim
        for axis in range(info.ndim - 2, -1, -1):
            strides[axis] = strides[axis + 1] * int(extents[axis + 1])
        memory = int(pieces.memory_offset(selection, side, at.reshape(1, -1))[0])
        near = pieces.memory_strides(selection, side)
        far = [stride * int(step) for stride, step in zip(strides, steps, strict=True)]
        row = np.array([[memory, 0, *counts.tolist(), *near, *far]], np.int64)
        self.decodes.append(Decode(info.name, box, side.target, item, info.dtype.swap_bytes, row))

    def batches(self, decoded_bytes: int = packed.DECODED_BYTES) -> Iterator[batches.Batch]:
        """`decoded_bytes`: that one batch may decode to on the device."""
        yield from batches.batches(self._all_groups(), self.writes)
        yield from packed.batches(self.packed_chunks, decoded_bytes)

    @property
    def total_bytes(self) -> int:
        """Of file ranges and decoded boxes, as far as can be said before near ranges are joined."""
        streams = sum(int(one.bytes.sum()) for one in self.packed_chunks)
        return sum(group.bytes for group in self._all_groups()) + streams + self.decoded_bytes

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


def _cut(at: np.ndarray, size: np.ndarray, axis: int, cut: int, second: bool) -> tuple[np.ndarray, np.ndarray]:
    at, size = at.copy(), size.copy()
    if second:
        at[axis] += cut
        size[axis] -= cut
    else:
        size[axis] = cut
    return at, size
