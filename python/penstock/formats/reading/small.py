"""Small reads of one dataset, without a plan, a job and a transfer.

`dataset[i : i + 1]` in a loop asks for a few KiB a million times. Where the bytes of a dataset are stored as they are
read, the native SmallReader finds the ranges of the file and reads them on the calling thread, as the policy would have
had it done. Where the cores decode chunks, it takes the bytes out of chunks that an earlier read has left decoded. It
answers None to all else: steps, lists, large boxes, missing chunks, a file that changed, errors. Then the way of all
reads is taken, so that no error is told in two ways. What must stay true: bytes, shapes and evidence are those of that
way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._api import Outcome
from penstock._evidence import distinct
from penstock._files.open_files import Lease
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, Watch
from penstock.formats.reading.kept import file_stamp, key_of
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.record import Counts
from penstock.formats.reading.rows import RowTally

_MOST_DIMENSIONS = 16  # of the native reader


def reader_of(
    mover: Mover, container: Container, info: DatasetInfo, tally: _core.SmallTally
) -> _core.SmallReader | None:
    """None where bytes are neither stored as they are read nor decoded by the cores, or only `table` can tell where
    they are."""
    if (
        info.order != "C"
        or info.refusal
        or info.conversion
        or not 0 < info.ndim <= _MOST_DIMENSIONS
        or min(info.shape) == 0
    ):
        return None
    watch = container.watch(info.name)
    if watch is None:
        return None
    table = container.table(info.name, Box((0,) * info.ndim, info.shape))
    if table.files != (watch.file,) or table.missing or not len(table.bytes):
        return None
    found = _kept_chunks(mover, info, table, watch) if info.filters else _plain_chunks(info, table)
    if found is None:
        return None
    chunks, how = found
    stored = {
        "shape": info.shape,
        "chunk_shape": info.chunk_shape,
        "item_bytes": info.dtype.itemsize,
        "swap_bytes": info.dtype.swap_bytes,
        "edge_cut": info.edge_cut,
        "chunks": chunks,
        "find_chunk": how.find,
        "chunk_bytes": info.chunk_bytes,
    }
    return _core.SmallReader(mover.raw, tally, stored, watch._asdict() | {"changed_ns": how.changed_ns})


class _How(NamedTuple):
    """Where the bytes of chunks come from: from the file, or, decoded before, from `find(number)`."""

    find: Callable[[int], Any] | None = None
    changed_ns: int | None = None  # of the file, which must stay


def _plain_chunks(info: DatasetInfo, table: ChunkTable) -> tuple[np.ndarray, _How] | None:
    """Number in the grid and place in the file, a row a chunk; None where a chunk is not simply there."""
    if np.asarray(table.encoded, bool).any():
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
    return np.ascontiguousarray(rows), _How()


def _kept_chunks(mover: Mover, info: DatasetInfo, table: ChunkTable, watch: Watch) -> tuple[np.ndarray, _How] | None:
    """As _plain_chunks, where the cores decode: a chunk that a read has decoded is found by its number."""
    filters, stamp = info.pipeline, file_stamp(watch.file)
    masks = np.zeros(len(table.bytes), np.int64) if table.skipped is None else np.asarray(table.skipped)
    decoded = np.asarray(table.encoded, bool).all() and (masks >= 0).all() and (np.asarray(table.bytes) > 0).all()
    cells = _cells(info, table)
    if isinstance(filters, str) or info.edge_cut or not mover.emulated or not decoded or cells is None:
        return None
    if stamp is None or stamp[:4] != watch[1:]:
        return None
    order = np.argsort(cells, kind="stable")
    columns = [np.asarray(column)[order] for column in (table.offset_bytes, table.bytes, masks)]
    file, kind, kept = (watch.file, stamp), (filters, info.chunk_bytes), mover.kept

    def find(number: int) -> np.ndarray | None:
        return kept.find(key_of(file, kind, [int(column[number]) for column in columns]))

    places = np.arange(len(order), dtype=np.int64) * info.chunk_bytes
    return np.column_stack([cells[order], places]), _How(find, stamp[4])


def _cells(info: DatasetInfo, table: ChunkTable) -> np.ndarray | None:
    """Numbers of the chunks in the grid; None where they are in no grid, or one is there twice."""
    shape, chunk = np.array(info.shape, np.int64), np.array(info.chunk_shape, np.int64)
    if (table.origin % chunk).any():
        return None
    cells = np.ravel_multi_index(tuple((table.origin // chunk).T), tuple(-(-shape // chunk)))
    return cells.astype(np.int64) if len(np.unique(cells)) == len(cells) else None


def lend(mover: Mover, reader: _core.SmallReader) -> bool:
    """Opens the file for the reader, which does not keep it open. False: there is no room for it now."""
    lease = mover.files.lease([reader.file])
    if not isinstance(lease, Lease):
        return False
    with lease:
        reader.use(lease.files[0])
    return True


def outcome_of(tally: _core.SmallTally | RowTally) -> Outcome | None:
    """One outcome for all small reads of a file; None where there were none."""
    if not tally.reads:
        return _kept_outcome(tally) if tally.kept_reads else None
    told = [json.loads(sample.evidence_json) for sample in tally.samples]
    staged = all(one["paths"][0]["host_copies_bytes"] for one in told)
    share = told[0]["paths"][0] | {
        "bytes": tally.bytes,
        "operations": tally.operations,
        "host_copies_bytes": tally.bytes if staged else 0,
    }
    counts = _counts(tally)
    evidence = told[-1] | {
        "paths": [share],
        "plan": "\n".join(distinct(one["plan"] for one in told)),
        "formats": dict(vars(counts)),
    }
    return Outcome(tally.bytes, tally.seconds, False, "buffered", evidence)


def _counts(tally: _core.SmallTally | RowTally) -> Counts:
    counts = Counts(
        tally.bytes + tally.kept_bytes, range_bytes=tally.bytes, ranges=tally.operations, batches=tally.reads
    )
    counts.took_kept(tally.kept_bytes)
    return counts


def _kept_outcome(tally: _core.SmallTally) -> Outcome:
    """Nothing was moved by a path."""
    evidence: Any = {"path": "none", "paths": [], "fallbacks": [], "notes": [], "pinned_peak_bytes": 0, "plan": ""}
    return Outcome(0, 0.0, False, "none", evidence | {"formats": dict(vars(_counts(tally)))})
