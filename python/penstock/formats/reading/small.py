"""Small reads of one dataset, without a plan, a job and a transfer.

`dataset[i : i + 1]` in a loop asks for a few KiB a million times. Where the bytes of a dataset are stored as they are
read, the native SmallReader finds the ranges of the file and reads them on the calling thread, as the policy would have
had it done. It answers None to all else: steps, lists, large boxes, missing chunks, a file that changed, errors. Then
the way of all reads is taken, so that no error is told in two ways. What must stay true: bytes, shapes and evidence are
those of that way.
"""

from __future__ import annotations

import json

import numpy as np

from penstock import _core
from penstock._api import Outcome
from penstock._evidence import distinct
from penstock._files.open_files import Lease
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.record import Counts

_MOST_DIMENSIONS = 16  # of the native reader


def reader_of(
    mover: Mover, container: Container, info: DatasetInfo, tally: _core.SmallTally
) -> _core.SmallReader | None:
    """None where bytes are not stored as they are read, or only `table` can tell where they are."""
    plain = info.order == "C" and not info.refusal and not info.filters and 0 < info.ndim <= _MOST_DIMENSIONS
    if not plain or min(info.shape) == 0:
        return None
    watch = container.watch(info.name)
    if watch is None:
        return None
    table = container.table(info.name, Box((0,) * info.ndim, info.shape))
    chunks = _chunks(info, table)
    if chunks is None or table.files != (watch.file,):
        return None
    stored = {
        "shape": info.shape,
        "chunk_shape": info.chunk_shape,
        "item_bytes": info.dtype.itemsize,
        "swap_bytes": info.dtype.swap_bytes,
        "edge_cut": info.edge_cut,
        "chunks": chunks,
    }
    watched = dict(watch._asdict())
    return _core.SmallReader(mover.raw, tally, stored, watched)


def _chunks(info: DatasetInfo, table: ChunkTable) -> np.ndarray | None:
    """Number in the grid and place in the file, a row a chunk; None where a chunk is not simply there."""
    if not len(table.bytes) or np.asarray(table.encoded, bool).any() or table.missing:
        return None
    shape, chunk = np.array(info.shape, np.int64), np.array(info.chunk_shape, np.int64)
    held = np.minimum(chunk, shape - table.origin) if info.edge_cut else np.broadcast_to(chunk, table.origin.shape)
    whole = (np.asarray(table.bytes) == held.prod(axis=1) * info.dtype.itemsize).all()
    if not whole or (table.origin % chunk).any():
        return None
    cells = np.ravel_multi_index(tuple((table.origin // chunk).T), tuple(-(-shape // chunk)))
    order = np.argsort(cells, kind="stable")
    rows = np.column_stack([cells, table.offset_bytes]).astype(np.int64)[order]
    return np.ascontiguousarray(rows) if (np.diff(rows[:, 0]) > 0).all() else None


def lend(mover: Mover, reader: _core.SmallReader) -> bool:
    """Opens the file for the reader, which does not keep it open. False: there is no room for it now."""
    lease = mover.files.lease([reader.file])
    if not isinstance(lease, Lease):
        return False
    with lease:
        reader.use(lease.files[0])
    return True


def outcome_of(tally: _core.SmallTally) -> Outcome | None:
    """One outcome for all small reads of a file; None where there were none."""
    if not tally.reads:
        return None
    told = [json.loads(sample.evidence_json) for sample in tally.samples]
    staged = all(one["paths"][0]["host_copies_bytes"] for one in told)
    share = told[0]["paths"][0] | {
        "bytes": tally.bytes,
        "operations": tally.operations,
        "host_copies_bytes": tally.bytes if staged else 0,
    }
    counts = Counts(tally.bytes, range_bytes=tally.bytes, ranges=tally.operations, batches=tally.reads)
    evidence = told[-1] | {
        "paths": [share],
        "plan": "\n".join(distinct(one["plan"] for one in told)),
        "formats": dict(vars(counts)),
    }
    return Outcome(tally.bytes, tally.seconds, False, "buffered", evidence)
