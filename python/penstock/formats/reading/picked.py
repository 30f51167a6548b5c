"""Elements that a list or a mask names: which of them each chunk holds, and which chunks a format is asked for.

Pure, NumPy columns, as pieces.py. Numbers are sorted, and those that follow each other in the dataset and in memory are
one part; so a chunk has as many parts as it has runs of numbers. What must stay true: the parts name each element of
the selection once for each time that the index names it; parts of one chunk follow each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from penstock._arrays.distinct import distinct
from penstock._arrays.selection import Box, Picks, Selection
from penstock.formats.model import ChunkTable, DatasetInfo, Shape
from penstock.formats.reading import pieces
from penstock.formats.reading.pieces import Part

_MOST_BLOCKS = 256  # questions to a format about one selection
_CELLS_A_QUESTION = (
    256  # of the grid: a question takes as long as to hear of so many more chunks, where those are files
)


def meet(info: DatasetInfo, selection: Selection, table: ChunkTable) -> Part:
    """What each chunk of the table holds of the selection; chunks that hold nothing are left out."""
    picks = selection.picks
    if picks is None:
        return pieces.meet(info, selection, table)
    part = pieces.meet(info, _between(selection), table)
    if not len(part.rows):
        return part
    origin = np.asarray(table.origin, np.int64).reshape(len(table.bytes), info.ndim)[part.rows]
    return _single(info, picks, part, origin) if picks.single else _of_axis(picks, part, origin)


def _between(selection: Selection) -> Selection:
    """All elements from the first that is picked to the last."""
    picks, box = selection.picks, selection.box
    assert picks is not None
    ndim = len(selection.first)
    axes = range(ndim) if picks.single else (picks.axis,)
    first, counts, steps = (list(column) for column in (selection.first, selection.counts, selection.steps))
    for axis in axes:
        first[axis], counts[axis], steps[axis] = box.start[axis], box.stop[axis] - box.start[axis], 1
    return Selection(tuple(first), tuple(counts), tuple(steps), selection.dropped)


def _of_axis(picks: Picks, part: Part, origin: np.ndarray) -> Part:
    """Runs of numbers of one dimension: those that ascend by one, in order in memory, within one chunk."""
    axis = picks.axis
    order = np.argsort(picks.numbers, kind="stable")
    number = picks.numbers[order]
    begin, end = origin[:, axis], origin[:, axis] + part.valid[:, axis]
    between = np.searchsorted(distinct(np.concatenate([begin, end])), number, "right")
    cut = (np.diff(number) != 1) | (np.diff(order) != 1) | (np.diff(between) != 0)
    starts = np.flatnonzero(np.concatenate([[True], cut]))
    length = np.diff(np.concatenate([starts, [len(number)]]))
    low, at = number[starts], order[starts]
    first, last = np.searchsorted(low, begin), np.searchsorted(low, end)
    rows, run = _spread(first, last)
    found = _rows_of(part, rows)
    found.counts[:, axis], found.at[:, axis] = length[run], at[run]
    found.inside[:, axis] = low[run] - begin[rows]
    return found


def _spread(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row, number) of each number in [first, last) of each row."""
    hits = last - first
    rows = np.repeat(np.arange(len(hits)), hits)
    return rows, np.arange(len(rows)) - (np.cumsum(hits) - hits - first)[rows]


def _rows_of(part: Part, rows: np.ndarray) -> Part:
    """Copies, so that columns can be set."""
    columns = (part.counts, part.at, part.inside, part.valid, part.extents, part.rows)
    return Part(*(column[rows] for column in columns))


def _single(info: DatasetInfo, picks: Picks, part: Part, origin: np.ndarray) -> Part:
    """Runs of single elements: neighbours in the last dimension, in order in memory, within one chunk."""
    chunk = np.array(info.chunk_shape, np.int64)
    numbers, place = picks.numbers, np.arange(len(picks.numbers))
    if (origin % chunk).any():  # chunks in no grid
        inside = [_held(numbers, origin[row], part.valid[row]) for row in range(len(origin))]
        rows = np.repeat(np.arange(len(origin)), [len(one) for one in inside])
        order = np.concatenate(inside)
    else:
        grid = tuple(-(-n // c) for n, c in zip(info.shape, info.chunk_shape, strict=True))
        stored, wanted = (np.ravel_multi_index(tuple((one // chunk).T), grid) for one in (origin, numbers))
        sorted_rows = np.argsort(stored, kind="stable")
        near = np.minimum(np.searchsorted(stored[sorted_rows], wanted), len(stored) - 1)
        rows = sorted_rows[near]
        order = np.flatnonzero(stored[rows] == wanted)
        rows = rows[order]
    sort = np.lexsort((*numbers[order].T[::-1], rows))
    rows, order, place = rows[sort], order[sort], place[order[sort]]
    numbers = numbers[order]
    joins = (np.diff(rows) == 0) & (np.diff(place) == 1) & (np.diff(numbers[:, -1]) == 1)
    joins &= (np.diff(numbers[:, :-1], axis=0) == 0).all(axis=1) & (picks.axis == info.ndim - 1)
    starts = np.flatnonzero(np.concatenate([[True], ~joins])) if len(rows) else np.empty(0, np.int64)
    found = _rows_of(part, rows[starts])
    found.counts[:], found.at[:] = 1, 0
    found.counts[:, -1] = np.diff(np.concatenate([starts, [len(rows)]]))
    found.at[:, picks.axis] = place[starts]
    found.inside[:] = numbers[starts] - origin[rows[starts]]
    return found


def _held(numbers: np.ndarray, origin: np.ndarray, extents: np.ndarray) -> np.ndarray:
    """Which of the elements a chunk holds."""
    return np.flatnonzero(((numbers >= origin) & (numbers < origin + extents)).all(axis=1))


def is_repeated(selection: Selection) -> bool:
    """Whether an element is named twice."""
    picks = selection.picks
    return picks is not None and not picks.single and len(distinct(picks.numbers)) < len(picks.numbers)


def table_of(info: DatasetInfo, selection: Selection, ask: Callable[[Box], ChunkTable]) -> ChunkTable:
    """Chunks that meet the selection, and maybe others between them. Where what is picked is a small part of a large
    grid, the format is asked for that alone: to know a chunk may cost it a call of the system."""
    picks, box = selection.picks, selection.box
    if picks is None or picks.single:
        return ask(box)
    axis, chunk = picks.axis, info.chunk_shape[picks.axis]
    cells = distinct(picks.numbers // chunk)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(cells) != 1]))
    stops = np.concatenate([starts[1:], [len(cells)]]) - 1
    every = 1
    for low, high, size in zip(box.start, box.stop, info.chunk_shape, strict=True):
        every *= (high - 1) // size - low // size + 1
    if len(starts) > _MOST_BLOCKS or every <= _CELLS_A_QUESTION * len(starts):
        return ask(box)
    tables = []
    for low, high in zip(cells[starts].tolist(), cells[stops].tolist(), strict=True):
        start, stop = list(box.start), list(box.stop)
        start[axis], stop[axis] = max(start[axis], low * chunk), min(stop[axis], (high + 1) * chunk)
        tables.append(ask(Box(tuple(start), tuple(stop))))
    if any((table.origin[:, axis] % chunk).any() for table in tables):
        return ask(box)  # chunks in no grid may be in several
    return _joined(tables)


def table_to_write(info: DatasetInfo, selection: Selection, ask: Callable[[Box], ChunkTable]) -> ChunkTable:
    """As table_of, of a writer that gives places to the chunks of a box. Those that are not stored and will be written
    in part have to be asked for in part, because the rest of such a chunk is then filled."""
    if selection.picks is None and all(abs(step) == 1 for step in selection.steps):
        return ask(selection.box)
    chunk = np.array(info.chunk_shape, np.int64)
    tables = []
    for cell in _touched(selection, chunk).tolist():
        origin = [number * size for number, size in zip(cell, info.chunk_shape, strict=True)]
        tables.append(ask(Box(tuple(origin), tuple(at + 1 for at in origin))))
    return _joined(tables)


def cells_of(selection: Selection, chunk_shape: Shape) -> np.ndarray:
    """The cells of the grid that hold elements of the selection: int64 [n, ndim]."""
    if selection.picks is not None or any(abs(step) != 1 for step in selection.steps):
        return _touched(selection, np.array(chunk_shape, np.int64))
    box = selection.box
    sides = zip(box.start, box.stop, chunk_shape, strict=True)
    axes = [np.arange(low // size, -(-high // size), dtype=np.int64) for low, high, size in sides]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _touched(selection: Selection, chunk: np.ndarray) -> np.ndarray:
    """The cells of the grid that hold elements of the selection: int64 [n, ndim]."""
    picks = selection.picks
    if picks is not None and picks.single:
        return np.unique(picks.numbers // chunk, axis=0)
    axes = []
    for axis, (first, count, step) in enumerate(zip(selection.first, selection.counts, selection.steps, strict=True)):
        numbers = first + np.arange(count, dtype=np.int64) * step
        if picks is not None and axis == picks.axis:
            numbers = picks.numbers
        axes.append(distinct(numbers // chunk[axis]))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _joined(tables: list[ChunkTable]) -> ChunkTable:
    files = {name: number for number, name in enumerate(dict.fromkeys(name for one in tables for name in one.files))}
    index = [np.array([files[name] for name in one.files], np.int32)[np.asarray(one.file_index)] for one in tables]
    names = ("origin", "offset_bytes", "bytes", "encoded")
    columns = {name: np.concatenate([getattr(one, name) for one in tables]) for name in names}
    for name, kind in (("host_only", bool), ("skipped", np.int64)):
        given = [getattr(one, name) for one in tables]
        if any(column is not None for column in given):
            spread = zip(given, tables, strict=True)
            columns[name] = np.concatenate([np.zeros(len(t.bytes), kind) if c is None else c for c, t in spread])
    missing = tuple(dict.fromkeys(cause for one in tables for cause in one.missing))
    first = replace(tables[0], missing=missing)
    return replace(first, files=tuple(files), file_index=np.concatenate(index), **columns)
