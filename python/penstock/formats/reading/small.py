"""Small reads of one dataset, without a plan, a job and a transfer.

`dataset[i : i + 1]` in a loop asks for a few KiB a million times; a program that opens a file for one row asks once.
Where the bytes of a dataset are stored as they are read, the native SmallReader finds the ranges of the file and reads
them on the calling thread, as the policy would have had it done. Where the cores decode chunks, it takes the bytes out
of chunks that an earlier read has left decoded, or decodes one there and then. Where the host reaches the memory, it
reads by many small reads: a box of some MiB, a larger one that the page cache has, and rows that are listed. It answers
None to all else: other lists, large boxes of a disk, missing chunks, a file that changed, errors. Then the way of all
reads is taken, so that no error is told in two ways. What must stay true: bytes, shapes and evidence are those of that
way, but for the staging that no byte needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._arrays.array import Array, c_strides
from penstock._arrays.distinct import distinct
from penstock._arrays.dtype import DType
from penstock._arrays.selection import is_list, select
from penstock._files.open_files import Lease
from penstock.formats.model import Box, ChunkLookup, ChunkTable, Container, DatasetInfo, Extent, FilePart, Watch
from penstock.formats.reading.cores import decoder_name
from penstock.formats.reading.kept import file_stamp, settles_ns
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.request import SMALL_BYTES, Request, arrange, word_of

_MOST_DIMENSIONS = 16  # of the native reader
_FEW_CHUNKS = 256  # of a dataset, which its first read may look for: that takes less than planning
_MOST_WHOLE = 1 << 30  # bytes of whole datasets that are read so: beyond 4 MiB where the page cache has them
LOOKED_UP = 4096  # chunks of a dataset that are found one by one
_MOST_LOOKED_UP = 64  # for its first read, and a fourth of them


class Readers(NamedTuple):
    """What makes the readers of one open file. `mover()`: what decodes chunks and keeps them."""

    raw: _core.Context
    tally: _core.SmallTally
    mover: Callable[[], Mover]

    def reader_of(
        self, container: Container, info: DatasetInfo, asked: tuple[bool, Any] = (False, ...)
    ) -> tuple[_core.SmallReader | None, bool]:
        """None where bytes are neither stored as they are read nor decoded by the cores, or only `table` can tell where
        they are. `asked`: whether it is the first read, which may be the last, and its index: that gets a reader of the
        chunks that it needs, if they are few of many, and none where finding all takes longer than a plan. And whether
        it is a reader of all chunks, or there is none."""
        if not may_be_native(info):
            return None, True
        watch = container.watch(info.name)
        if watch is None:
            return None, True
        few = _few_chunks(container, info, asked[1]) if asked[0] else None
        if few is not None:
            return self._made(info, (few, None), watch), False
        found = _found(self.mover, container, info, (watch, asked[0]))
        return None if found is None else self._made(info, found, watch), True

    def _made(self, info: DatasetInfo, found: tuple[np.ndarray | int, _How | None], watch: Watch) -> _core.SmallReader:
        chunks, how = found
        stored = described(info, chunks)
        stored["array_class"], stored["dtype"], stored["backwards"] = Array, info.dtype.native, info.order != "C"
        stored["coded"] = None if how is None else how.coded
        return _core.SmallReader(self.raw, self.tally, stored, (*watch, None if how is None else how.changed_ns))


def may_be_native(info: DatasetInfo) -> bool:
    """Bytes are the values, and there are elements, in as many dimensions as the native readers know."""
    if info.refusal or info.conversion or info.dtype.host_only:
        return False
    return 0 < len(info.shape) <= _MOST_DIMENSIONS and 0 not in info.shape


def described(info: DatasetInfo, chunks: np.ndarray | int) -> dict[str, Any]:
    """As native readers take it. `chunks`: number in the grid and place in the file, a row a chunk; or the place of the
    only one."""
    return {
        "shape": info.shape,
        "chunk_shape": info.chunk_shape,
        "item_bytes": info.dtype.itemsize,
        "swap_bytes": info.dtype.swap_bytes,
        "edge_cut": info.edge_cut,
        "chunks": chunks,
    }


class _How(NamedTuple):
    """How chunks are decoded: as the native ChunkSource takes it, and when the file changed, which must stay."""

    coded: dict[str, Any]
    changed_ns: int


_Found = tuple[np.ndarray | int, _How | None] | None  # without how: chunks are stored as they are read


def _found(mover: Callable[[], Mover], container: Container, info: DatasetInfo, asked: tuple[Watch, bool]) -> _Found:
    """Number in the grid and place in the file, a row a chunk, and how they are read."""
    watch, first = asked
    if info.chunk_shape == info.shape and not info.filters:
        offset = container.place(info.name)
        if offset is not None:
            return offset, None
    grid = [-(-extent // chunk) for extent, chunk in zip(info.shape, info.chunk_shape, strict=True)]
    if info.filters and math.prod(grid) <= LOOKED_UP:
        lookup = container.lookup(info.name)
        if lookup is not None:
            return _looked_up(mover(), info, watch, (lookup, grid))
    if first and math.prod(grid) > _FEW_CHUNKS:
        return None
    table = container.table(info.name, Box((0,) * info.ndim, info.shape))
    if info.filters:
        return _coded_chunks(mover(), info, table, watch)
    chunks = plain_chunks(info, table, watch)
    return None if chunks is None else (chunks, None)


def _few_chunks(container: Container, info: DatasetInfo, index: Any) -> np.ndarray | None:
    """As plain_chunks, of the chunks that a box meets; None where they are many, or one is not simply there. Without a
    table, whose columns would take half of the time."""
    is_divided = info.chunk_shape != info.shape and not info.filters and info.order == "C"
    lookup = container.lookup(info.name) if is_divided else None
    if lookup is None or is_list(index):
        return None
    try:
        selection = select(info.shape, index)
    except (IndexError, TypeError, ValueError):
        return None  # told by the read
    if selection.picks is not None or not selection.size:
        return None
    numbers = selection.box.chunks(info.chunk_shape)
    grid = [-(-extent // size) for extent, size in zip(info.shape, info.chunk_shape, strict=True)]
    if math.prod(map(len, numbers)) > min(_MOST_LOOKED_UP, math.prod(grid) // 4):
        return None
    rows = []
    for cell in itertools.product(*numbers):
        found = lookup(cell)
        if found is None or found[1] != info.chunk_bytes:
            return None
        number = 0
        for at, extent in zip(cell, grid, strict=True):
            number = number * extent + at
        rows.append((number, found[0]))
    return np.array(rows, np.int64)


def plain_chunks(info: DatasetInfo, table: ChunkTable, watch: Watch) -> np.ndarray | None:
    """Number in the grid and place in the file, a row a chunk; None where a chunk is not simply there."""
    if not _is_of_one_file(table, watch) or np.asarray(table.encoded, bool).any():
        return None
    chunk = np.array(info.chunk_shape, np.int64)
    held = np.broadcast_to(chunk, table.origin.shape)
    if info.edge_cut:
        held = np.minimum(chunk, np.array(info.shape, np.int64) - table.origin)
    whole = (np.asarray(table.bytes) == held.prod(axis=1) * info.dtype.itemsize).all()
    cells = _cells(info, table)
    if not whole or cells is None:
        return None
    order = np.argsort(cells, kind="stable")
    rows = np.column_stack([cells, table.offset_bytes]).astype(np.int64)[order]
    return np.ascontiguousarray(rows)


def _is_of_one_file(table: ChunkTable, watch: Watch) -> bool:
    return table.files == (watch.file,) and not table.missing and len(table.bytes) > 0


def _coded_chunks(mover: Mover, info: DatasetInfo, table: ChunkTable, watch: Watch) -> _Found:
    """As plain_chunks, where the cores decode; and how."""
    if not _is_of_one_file(table, watch):
        return None
    masks = np.zeros(len(table.bytes), np.int64) if table.skipped is None else np.asarray(table.skipped)
    decoded = np.asarray(table.encoded, bool).all() and (masks >= 0).all() and (np.asarray(table.bytes) > 0).all()
    cells = _cells(info, table)
    if not decoded or cells is None:
        return None
    order = np.argsort(cells, kind="stable")
    columns = [np.asarray(column)[order] for column in (table.offset_bytes, table.bytes, masks)]
    how = _decoding(mover, info, watch, {"chunks": len(order), "table": np.column_stack(columns).astype(np.int64)})
    if how is None:
        return None
    places = np.arange(len(order), dtype=np.int64) * info.chunk_bytes
    return np.column_stack([cells[order], places]), how


def _looked_up(mover: Mover, info: DatasetInfo, watch: Watch, chunks: tuple[ChunkLookup, list[int]]) -> _Found:
    """As _coded_chunks, where each chunk is looked for when it is read."""
    lookup, grid = chunks
    count = math.prod(grid)
    how = _decoding(mover, info, watch, {"chunks": count, "where": lambda number: lookup(_cell_at(number, grid))})
    if how is None:
        return None
    cells = np.arange(count, dtype=np.int64)
    return np.column_stack([cells, cells * info.chunk_bytes]), how


def _cell_at(number: int, grid: list[int]) -> list[int]:
    cell = []
    for extent in reversed(grid):
        number, at = divmod(number, extent)
        cell.append(at)
    return cell[::-1]


def _decoding(mover: Mover, info: DatasetInfo, watch: Watch, chunks: dict[str, Any]) -> _How | None:
    """`chunks`: how many there are, and a table of int64 [n, 3], the offset, bytes and mask of each; or `where` that
    tells them of the number of one, the same each time, or None of one that is not stored."""
    filters, pipeline, stamp = info.pipeline, mover.pipeline(info), file_stamp(watch.file)
    if isinstance(filters, str) or isinstance(pipeline, str) or info.edge_cut:
        return None
    if stamp is None or stamp[:4] != watch[1:]:
        return None
    coded = {
        "table": None,
        "where": None,
        **chunks,
        "kept": mover.kept.chunks,
        "kind": mover.kept.kind((watch.file, stamp), filters, info.chunk_bytes),
        "settles_ns": settles_ns(stamp, info.chunk_bytes),
        "pipeline": pipeline,
        "decoder": decoder_name(filters),
        "chunk_bytes": info.chunk_bytes,
        "is_staged": not mover.emulated,
    }
    return _How(coded, stamp[4])


def _cells(info: DatasetInfo, table: ChunkTable) -> np.ndarray | None:
    """Numbers of the chunks in the grid; None where they are in no grid, or one is there twice."""
    shape, chunk = np.array(info.shape, np.int64), np.array(info.chunk_shape, np.int64)
    if (table.origin % chunk).any():
        return None
    cells = np.ravel_multi_index(tuple((table.origin // chunk).T), tuple(-(-shape // chunk)))
    return cells.astype(np.int64) if len(distinct(cells)) == len(cells) else None


def may_be_part(wanted: Request) -> bool:
    """Whether it may be one range of a file that is in the order of the caller, and is small."""
    info, selection = wanted.info, wanted.selection
    if info.filters or info.order != "C" or info.dtype.swap_bytes or selection.picks is not None:
        return False
    plain = not info.dtype.host_only and not info.conversion and info.ndim > 0
    return plain and 0 < wanted.bytes <= SMALL_BYTES and all(step == 1 for step in selection.steps)


def read_part(raw: _core.Context, tally: _core.SmallTally, part: FilePart, wanted: Request) -> Any:
    """An Array; None where it is more than one range, or a transfer has to read it."""
    info, selection = wanted.info, wanted.selection
    item = info.dtype.itemsize
    offset, stride, is_whole = 0, item, True
    for first, count, origin, extent in reversed(
        [*zip(selection.first, selection.counts, part.origin, part.shape, strict=True)]
    ):
        if count != 1 and not is_whole:
            return None  # what lies between is of others
        is_whole = is_whole and count == extent
        offset += (first - origin) * stride
        stride *= extent
    shape = selection.shape
    kind = (Array, info.dtype.native, shape, c_strides(shape, item))
    return _core.read_part(raw, tally, (part.file, stride, offset, wanted.bytes), kind)


def read_first(raw: _core.Context, tally: _core.SmallTally, source: Container, asked: tuple[DatasetInfo, Any]) -> Any:
    """A small box of a dataset that lies in one place, or some MiB that are all of it. None: a SmallReader, or a
    transfer, has to read it."""
    info, index = asked
    if not (_is_one_place(info) and may_be_native(info)) or info.dtype.swap_bytes:
        return None
    offset, watch = source.place(info.name), source.watch(info.name)
    if offset is None or watch is None:
        return None
    bytes = math.prod(info.shape) * info.dtype.itemsize
    if index is ... and SMALL_BYTES < bytes <= _MOST_WHOLE:
        parts = [(offset, 0, bytes, info.dtype.native, info.dtype.itemsize, info.shape)]
        arrays = _core.read_parts(raw, tally, watch, (Array, parts))
        return None if arrays is None else arrays[0]
    stored = (info.shape, info.dtype.itemsize, offset, Array, info.dtype.native)
    return _core.read_first(raw, tally, (stored, watch), index)


def read_whole(raw: _core.Context, tally: _core.SmallTally, source: Container, infos: Sequence[DatasetInfo]) -> Any:
    """Arrays of all of small datasets, in one buffer, as a transfer would arrange them; None where one does not simply
    lie in a file that all are in, or a transfer has to read them."""
    stored: list[tuple[Extent, int]] = []
    kinds: list[tuple[DType, int]] = []  # of each: as it is read, and bytes
    watch, kind, word = None, None, 0
    for info in infos:
        if info.dtype is not kind:  # most are of the type of the one before
            kind = info.dtype
            if kind.host_only or kind.swap_bytes:
                return None
            word, known = word_of(kind), (kind.native, kind.itemsize)
        offset = source.place(info.name) if _is_one_place(info) else None
        found = watch if watch is not None and source.in_one_file else source.watch(info.name)
        if offset is None or found is None or (watch is not None and watch != found):
            return None
        watch = found
        kinds.append(known)
        stored.append((Extent(found.file, offset, math.prod(info.shape) * known[1]), word))
    places, size = arrange(stored)
    if watch is None or size > _MOST_WHOLE:
        return None
    parts = [
        (one[0].offset_bytes, place, one[0].bytes, *known, info.shape)
        for info, one, place, known in zip(infos, stored, places, kinds, strict=True)
    ]
    return _core.read_parts(raw, tally, watch, (Array, parts))


def _is_one_place(info: DatasetInfo) -> bool:
    """Whether its bytes are its values, and lie one after the other."""
    if info.refusal or info.conversion or info.filters:
        return False
    return info.order == "C" and info.chunk_shape == info.shape


def lend(mover: Mover, reader: _core.SmallReader, writes: bool = False) -> bool:
    """Opens the file for the reader, which does not keep it open. False: there is no room for it now."""
    lease = mover.files.lease([reader.file], writes)
    if not isinstance(lease, Lease):
        return False
    with lease:
        reader.use(lease.files[0])
    return True
