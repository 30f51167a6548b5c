"""From chunks and a selection to columns: which runs of bytes of which file are wanted, and where they go in memory.

Pure, and vectorised over chunks: chunks that lie alike (same counts, same strides) are one Pieces, so a million chunks
are a few rows of NumPy columns. What must stay true: the pieces together name each selected element of the chunks once;
the runs of one piece are in file order; nothing outside the chunks' stored bytes is named. Chunks that the device
decodes are Packed: of them only the stream is read, and the checksum behind it, however little is selected; boxes take
from a decoded chunk what the selection holds of it, once.

A piece is one range of a file (`span_bytes`). In it lie the elements of the dimensions `inner`; over the dimensions
`outer` the piece repeats. A direct piece is one dense run of the file that is one dense run of memory too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penstock import _core
from penstock._arrays.selection import Selection
from penstock._error import Error
from penstock.formats.model import ChunkTable, DatasetInfo, Filter, Recipe

GAP_BYTES = 4096  # of unwanted bytes that are read rather than skipped: a page comes from storage as a whole
DIRECT_BYTES = 256 << 10  # a run this long goes straight to its place, even if scratch would save requests
PIECE_BYTES = 64 << 20  # longest piece that goes through scratch


class Axis(NamedTuple):
    """A dimension of a piece: how often, and how far apart in the file and in memory (bytes)."""

    count: int
    file_stride: int
    memory_stride: int


class Wanted(NamedTuple):
    """A selection of a dataset, dimensions as stored, and where its elements lie in memory."""

    info: DatasetInfo
    selection: Selection
    target: int  # number of the memory, when there are several
    base: int  # byte offset of the first selected element
    strides: tuple[int, ...]  # bytes, of the dimensions of the selection, dropped ones included


@dataclass(frozen=True)
class Pieces:
    """Pieces that lie alike. Columns: one row a chunk, of its first element; or one row a piece, when `sizes` are
    there, which replace `span_bytes`: then there are no `outer` dimensions."""

    target: int
    item_bytes: int
    swap_bytes: int
    file: np.ndarray  # int64 [n]
    offset: np.ndarray  # int64 [n], in the file
    memory: np.ndarray  # int64 [n], in the target
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    span_bytes: int
    direct: bool
    padding: bytes | None = None  # what the rest of the span is filled with before it is written (one element)
    sizes: np.ndarray | None = None  # int64 [n]

    @property
    def count(self) -> int:
        return len(self.offset) * math.prod(axis.count for axis in self.outer)

    @property
    def scratch_bytes(self) -> int:
        """That each piece takes of scratch; near direct pieces are taken there later, and are small."""
        return 0 if self.direct else self.span_bytes

    @property
    def total_bytes(self) -> int:
        """Bytes of the file ranges."""
        return self.count * self.span_bytes if self.sizes is None else int(self.sizes.sum())

    def part(self, start: int, stop: int) -> Pieces:
        """Pieces [start, stop), one row each."""
        if not self.outer:
            rows = slice(start, stop)
            sizes = np.full(max(0, stop - start), self.span_bytes) if self.sizes is None else self.sizes[rows]
            return self._listed(self.file[rows], self.offset[rows], self.memory[rows], sizes)
        row, rest = np.divmod(np.arange(start, stop, dtype=np.int64), self.count // len(self.offset))
        offset, memory = self.offset[row], self.memory[row]
        for axis in reversed(self.outer):
            rest, position = np.divmod(rest, axis.count)
            offset += position * axis.file_stride
            memory += position * axis.memory_stride
        return self._listed(self.file[row], offset, memory, np.full(len(row), self.span_bytes))

    def _listed(self, file: np.ndarray, offset: np.ndarray, memory: np.ndarray, sizes: np.ndarray) -> Pieces:
        return replace(self, file=file, offset=offset, memory=memory, sizes=sizes, outer=())


@dataclass(frozen=True)
class Packed:
    """Chunks of one dataset that the device decodes, by the recipe, or the cores of the host, by the pipeline. Columns:
    one row a chunk."""

    dataset: str
    recipe: Recipe
    chunk_bytes: int  # decoded
    target: int
    item_bytes: int
    swap_bytes: int
    file: np.ndarray  # int64 [n]
    offset: np.ndarray  # int64 [n], of the stream in the file
    sizes: np.ndarray  # int64 [n], of the stream and what follows it
    origin: np.ndarray  # int64 [n, ndim], for messages
    boxes: np.ndarray  # int64 [n, 2 + 3 ndim], as _core.copy_boxes takes them; sources count from the decoded chunk
    skipped: np.ndarray  # int64 [n], as of ChunkTable
    pipeline: _core.Pipeline | None = None
    filters: tuple[Filter, ...] = ()  # that the pipeline undoes
    each: np.ndarray | None = None  # int64 [n]: so many of the boxes are of each chunk, in order; None: one

    @property
    def count(self) -> int:
        return len(self.offset)

    @property
    def scratch_bytes(self) -> int:
        """That a batch counts for each: what it decodes to, and on the host its stream when that is longer."""
        return self.chunk_bytes if self.pipeline is None else max(self.chunk_bytes, int(self.sizes.max(initial=0)))

    @property
    def selected_bytes(self) -> int:
        ndim = self.origin.shape[1]
        return int(self.boxes[:, 2 : 2 + ndim].prod(axis=1).sum()) * self.item_bytes

    @property
    def stream_bytes(self) -> np.ndarray:
        """int64 [n]."""
        return self.sizes - self.recipe.trailer_bytes

    def part(self, start: int, stop: int) -> Packed:
        return self.of(slice(start, stop))

    def of(self, rows: slice | np.ndarray) -> Packed:
        names = ("file", "offset", "sizes", "origin", "skipped")
        columns = {name: getattr(self, name)[rows] for name in names}
        if self.each is None:
            return replace(self, boxes=self.boxes[rows], **columns)
        kept = np.zeros(self.count, bool)
        kept[rows] = True
        return replace(self, boxes=self.boxes[kept[self.chunk_of_box]], each=self.each[rows], **columns)

    @property
    def chunk_of_box(self) -> np.ndarray:
        """int64, one row a box."""
        return np.repeat(np.arange(self.count), 1 if self.each is None else self.each)


@dataclass(frozen=True)
class Part:
    """The elements of the selection that lie in some chunks: columns of one row a chunk."""

    counts: np.ndarray  # int64 [n, ndim], selected elements
    at: np.ndarray  # int64 [n, ndim], first of them, as position in the selection (ascending)
    inside: np.ndarray  # int64 [n, ndim], first of them, as position in the chunk
    valid: np.ndarray  # int64 [n, ndim], elements of the chunk that belong to the dataset
    extents: np.ndarray  # int64 [n, ndim], elements that the chunk stores
    rows: np.ndarray  # int64 [n], rows of the table; a list of elements leaves a chunk in several parts, one by one

    def of(self, keep: np.ndarray) -> Part:
        if keep.all():
            return self
        columns = (self.counts, self.at, self.inside, self.valid, self.extents, self.rows)
        return Part(*(column[keep] for column in columns))


def meet(info: DatasetInfo, selection: Selection, table: ChunkTable) -> Part:
    """What each chunk of the table holds of the selection; chunks that hold nothing are left out."""
    low, steps, counts = ascending(selection)
    origin = np.asarray(table.origin, np.int64).reshape(len(table.file_index), info.ndim)
    chunk, shape = np.array(info.chunk_shape, np.int64), np.array(info.shape, np.int64)
    valid = np.minimum(chunk, shape - origin)  # elements of the dataset
    first = np.maximum(0, -((low - origin) // steps))
    last = np.minimum(counts - 1, (origin + valid - 1 - low) // steps)
    extents = valid if info.edge_cut else np.broadcast_to(chunk, origin.shape)
    inside = low + first * steps - origin
    part = Part(last - first + 1, first, inside, valid, extents, np.arange(len(origin)))
    return part.of((part.counts > 0).all(axis=1))


def ascending(selection: Selection) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first element, step, count) a dimension, with steps turned positive."""
    low = np.array(selection.box.start, np.int64)
    return low, np.abs(np.array(selection.steps, np.int64)), np.array(selection.counts, np.int64)


def memory_offset(wanted: Wanted, at: np.ndarray) -> np.ndarray:
    """Byte offsets of elements, from their ascending positions in the selection (int64 [n, ndim])."""
    offset = np.full(len(at), wanted.base, np.int64)
    steps, counts = wanted.selection.steps, wanted.selection.counts
    for axis, (stride, step, count) in enumerate(zip(wanted.strides, steps, counts, strict=True)):
        position = at[:, axis] if step > 0 else count - 1 - at[:, axis]
        offset += position * stride
    return offset


def memory_strides(wanted: Wanted) -> tuple[int, ...]:
    """Bytes from one ascending position to the next."""
    return tuple(s if step > 0 else -s for s, step in zip(wanted.strides, wanted.selection.steps, strict=True))


def of_one_chunk(wanted: Wanted, table: ChunkTable, file: int, writes: bool = False) -> list[Pieces]:
    """Pieces of a dataset that is one chunk, in plain numbers: small reads are quick, and most datasets are so."""
    info, selection, target, base, strides = wanted
    item, needed = info.dtype.itemsize, math.prod(info.shape) * info.dtype.itemsize
    if int(table.bytes[0]) < needed:
        raise _short(info, table, 0)
    offset, memory, axes, stride = int(table.offset_bytes[0]), base, [], item
    for axis in range(info.ndim - 1, -1, -1):
        first, count, step = selection.first[axis], selection.counts[axis], selection.steps[axis]
        near, low = strides[axis], min(first, first + (count - 1) * step)
        offset += low * stride
        if step < 0:
            memory += (count - 1) * near
        if count > 1:
            axes.append(Axis(count, stride * abs(step), near if step > 0 else -near))
        stride *= info.shape[axis]
    columns = (np.array([number], np.int64) for number in (file, offset, memory))
    whole = Pieces(target, item, info.dtype.swap_bytes, *columns, (), tuple(reversed(axes)), 0, False)
    return _divide(whole, writes)


def of_lines(lines: list[tuple[int, int, int, int]], target: int, swap_bytes: int) -> Pieces:
    """Whole datasets that are one range each: (file, file offset, memory offset, bytes)."""
    file, offset, memory, sizes = np.array(lines, np.int64).T
    return Pieces(target, swap_bytes or 1, swap_bytes, file, offset, memory, (), (), 0, True, sizes=sizes)


def of_chunks(wanted: Wanted, table: ChunkTable, part: Part, writes: bool = False) -> list[Pieces]:
    """The pieces of chunks that are stored as they are (not encoded)."""
    info, selection = wanted.info, wanted.selection
    if len(part.rows) == 0:
        return []
    item, steps = info.dtype.itemsize, np.abs(np.array(selection.steps, np.int64))
    strides = c_strides(part.extents, item)
    _check_bytes(info, table, part, item)
    offset = np.asarray(table.offset_bytes, np.int64)[part.rows] + (part.inside * strides).sum(axis=1)
    memory = memory_offset(wanted, part.at)
    file = np.asarray(table.file_index, np.int64)[part.rows]
    turned = memory_strides(wanted)
    found = []
    for rows in alike(np.hstack([part.counts, part.valid, strides])):
        one = rows[0]
        axes = tuple(
            Axis(int(n), int(far), near)
            for n, far, near in zip(part.counts[one], strides[one] * steps, turned, strict=True)
            if n > 1
        )
        place = (file[rows], offset[rows], memory[rows])
        whole = Pieces(wanted.target, item, info.dtype.swap_bytes, *place, (), axes, 0, False)
        chunk_bytes = int(part.extents[one].prod()) * item
        covered = (part.counts[one] == part.valid[one]).all()  # the rest of the chunk is padding
        if writes and covered and part.counts[one].prod() * item < chunk_bytes <= PIECE_BYTES:
            found.append(replace(whole, span_bytes=chunk_bytes, padding=info.fill or bytes(item)))
        else:
            found += _divide(whole, writes)
    return found


_WHOLE = Recipe("")  # the cores get all that is stored


def packed_of(wanted: Wanted, table: ChunkTable, part: Part, on_device: bool) -> Packed:
    """`part`: chunks that the recipe of the dataset fits, or its pipeline. `file` numbers are those of the table."""
    info = wanted.info
    recipe, item = info.recipe if on_device else _WHOLE, info.dtype.itemsize
    assert isinstance(recipe, Recipe)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(part.rows) != 0]))
    rows, each = part.rows[starts], np.diff(np.concatenate([starts, [len(part.rows)]]))
    stored = np.asarray(table.bytes, np.int64)[rows]
    framing = max(recipe.header_bytes + recipe.trailer_bytes, recipe.check_at)
    if (stored <= framing).any():
        raise _no_stream(info, table, int(rows[int(np.argmax(stored <= framing))]), framing)
    steps = np.abs(np.array(wanted.selection.steps, np.int64))
    strides = c_strides(part.extents, item)
    boxes = np.empty((len(part.rows), 2 + 3 * info.ndim), np.int64)
    near, far, ndim = memory_strides(wanted), strides * steps, info.ndim
    boxes[:, 0] = memory_offset(wanted, part.at)
    boxes[:, 1] = (part.inside * strides).sum(axis=1)
    boxes[:, 2 : 2 + ndim], boxes[:, 2 + ndim : 2 + 2 * ndim], boxes[:, 2 + 2 * ndim :] = part.counts, near, far
    return Packed(
        dataset=info.name,
        recipe=recipe,
        chunk_bytes=info.chunk_bytes,
        target=wanted.target,
        item_bytes=item,
        swap_bytes=info.dtype.swap_bytes,
        file=np.asarray(table.file_index, np.int64)[rows],
        offset=np.asarray(table.offset_bytes, np.int64)[rows] + recipe.header_bytes,
        sizes=stored - recipe.header_bytes,
        origin=np.asarray(table.origin, np.int64)[rows],
        boxes=boxes,
        filters=() if isinstance(info.pipeline, str) else info.pipeline,
        skipped=np.zeros(len(stored), np.int64) if table.skipped is None else np.asarray(table.skipped)[rows],
        each=None if len(starts) == len(part.rows) else each,
    )


def _no_stream(info: DatasetInfo, table: ChunkTable, row: int, framing: int) -> Error:
    return Error(
        code="damaged",
        operation=f"decode dataset {info.name!r} of",
        file=table.files[int(table.file_index[row])],
        offset_bytes=int(table.offset_bytes[row]),
        length_bytes=int(table.bytes[row]),
        cause=f"its chunk at {np.asarray(table.origin)[row].tolist()} is too short: its framing alone takes {framing}",
        advice="the file was cut short or is damaged: write it again",
    )


def _check_bytes(info: DatasetInfo, table: ChunkTable, part: Part, item: int) -> None:
    short = np.asarray(table.bytes, np.int64)[part.rows] < part.extents.prod(axis=1) * item
    if short.any():
        raise _short(info, table, int(part.rows[int(np.argmax(short))]))


def _short(info: DatasetInfo, table: ChunkTable, row: int) -> Error:
    return Error(
        code="damaged",
        operation=f"read {info.name} of",
        file=table.files[int(table.file_index[row])],
        offset_bytes=int(table.offset_bytes[row]),
        length_bytes=int(table.bytes[row]),
        cause="a stored chunk is shorter than its shape says",
        advice="the file was cut short or is damaged: write it again",
    )


def c_strides(extents: np.ndarray, item: int) -> np.ndarray:
    strides = np.full(extents.shape, item, np.int64)
    for axis in range(extents.shape[1] - 2, -1, -1):
        strides[:, axis] = strides[:, axis + 1] * extents[:, axis + 1]
    return strides


def alike(keys: np.ndarray) -> list[np.ndarray]:
    """Row numbers of equal rows, kind by kind, each in order."""
    if keys.shape[1] == 0 or (keys == keys[0]).all():
        return [np.arange(len(keys))]
    _, kind = np.unique(keys, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    order = np.argsort(kind, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)


def _divide(whole: Pieces, writes: bool) -> list[Pieces]:
    """Decides which dimensions are inside a piece; may split them so that pieces fit scratch."""
    axes = whole.inner
    run = whole.item_bytes
    dense = len(axes)
    while dense and axes[dense - 1].file_stride == run == axes[dense - 1].memory_stride:
        dense -= 1
        run *= axes[dense].count
    swaps_on_the_way = writes and whole.swap_bytes
    span, first = _span(whole, 0 if writes else GAP_BYTES)
    if not swaps_on_the_way and (run == span or run >= DIRECT_BYTES):
        return [replace(whole, outer=axes[:dense], inner=(), span_bytes=run, direct=True)]
    if span <= PIECE_BYTES:
        return [replace(whole, outer=axes[:first], inner=axes[first:], span_bytes=span)]
    return [each for block in _split(whole, first, span) for each in _divide_block(block, writes)]


def _span(pieces: Pieces, gap: int) -> tuple[int, int]:
    """(bytes, first dimension inside) of the longest range in which no hole is wider than `gap`."""
    span, first = pieces.item_bytes, len(pieces.inner)
    while first and pieces.inner[first - 1].file_stride - span <= gap:
        first -= 1
        span += (pieces.inner[first].count - 1) * pieces.inner[first].file_stride
    return span, first


def _split(pieces: Pieces, first: int, span: int) -> list[Pieces]:
    """Cuts the outermost dimension inside the span into blocks of at most PIECE_BYTES: whole blocks, and the rest."""
    axis, axes = pieces.inner[first], pieces.inner
    within = span - (axis.count - 1) * axis.file_stride
    block = 1 if within > PIECE_BYTES else 1 + (PIECE_BYTES - within) // axis.file_stride
    blocks, rest = divmod(axis.count, block)
    whole = Axis(blocks, axis.file_stride * block, axis.memory_stride * block)
    cut = axis._replace(count=block)
    parts = [replace(pieces, outer=(*axes[:first], whole), inner=(*_real(cut), *axes[first + 1 :]))]
    if rest:
        parts.append(
            replace(
                pieces,
                offset=pieces.offset + blocks * whole.file_stride,
                memory=pieces.memory + blocks * whole.memory_stride,
                outer=axes[:first],
                inner=(*_real(axis._replace(count=rest)), *axes[first + 1 :]),
            )
        )
    return parts


def _divide_block(block: Pieces, writes: bool) -> list[Pieces]:
    """A block whose own span may still be too long is divided again; its outer dimensions stay."""
    divided = _divide(replace(block, outer=()), writes)
    return [replace(one, outer=(*block.outer, *one.outer)) for one in divided]


def _real(axis: Axis) -> tuple[Axis, ...]:
    return (axis,) if axis.count > 1 else ()
