"""Many rows of one dataset out of the page cache, without a plan and a transfer.

`dataset[[7, 3, 9]]` asks for thousands of rows of a few KiB. Where their bytes are stored as they are read, the native
RowReader reads them by small reads on the calling thread. All else is left to plans: other dimensions than the first,
steps, missing and encoded chunks, long rows, rows that are not in the page cache, errors. What must stay true: bytes
and shapes are those of that way, the evidence tells the reads that were made, and a dataset is read as its file is now.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._arrays.array import Array
from penstock._arrays.selection import Box, Selection
from penstock._files.open_files import Lease
from penstock.formats.model import ChunkTable, Container, DatasetInfo, Watch
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.request import Request, checked_out

MOST_BYTES = 1 << 30  # of one call; more is worth all workers
_MOST_DIMENSIONS = 16  # of the native reader


class KnownRows(NamedTuple):
    """What finds rows of one dataset, and what of its file must stay for that."""

    reader: _core.RowReader
    watch: Watch


class RowTally:
    """Sums over the reads of rows of one file: the fields of _core.SmallTally."""

    kept_reads, kept_bytes = 0, 0
    staged_bytes, scratch_peak_bytes, host_copies_bytes = 0, 0, 0  # the host reads to their place
    decoded: Mapping[str, int] = MappingProxyType({})

    def __init__(self) -> None:
        self.reads, self.operations, self.bytes, self.seconds = 0, 0, 0, 0.0
        self._samples: dict[int, _core.SmallRead] = {}
        self._lock = threading.Lock()

    def add(self, operations: int, bytes: int, seconds: float, samples: list[_core.SmallRead]) -> None:
        with self._lock:
            self.reads += 1
            self.operations += operations
            self.bytes += bytes
            self.seconds += seconds
            for sample in samples:
                if len(self._samples) < 64:
                    self._samples.setdefault(sample.bytes, sample)

    @property
    def requested_bytes(self) -> int:
        return self.bytes

    @property
    def samples(self) -> list[_core.SmallRead]:
        return list(self._samples.values())


def known_rows(mover: Mover, container: Container, info: DatasetInfo) -> KnownRows | None:
    """None where rows are not simply there."""
    if not mover.emulated or info.order != "C" or info.refusal or info.filters or info.dtype.host_only:
        return None
    if not 0 < info.ndim <= _MOST_DIMENSIONS or min(info.shape) == 0:
        return None
    watch = container.watch(info.name)
    if watch is None:
        return None
    chunks = _chunks(info, container.table(info.name, Box((0,) * info.ndim, info.shape)), watch)
    if chunks is None:
        return None
    stored = {
        "shape": info.shape,
        "chunk_shape": info.chunk_shape,
        "item_bytes": info.dtype.itemsize,
        "swap_bytes": info.dtype.swap_bytes,
        "edge_cut": info.edge_cut,
        "chunks": chunks,
    }
    return KnownRows(_core.RowReader(mover.raw, stored), watch)


def _chunks(info: DatasetInfo, table: ChunkTable, watch: Watch) -> np.ndarray | None:
    """Number in the grid and place in the file, a row a chunk; None where a chunk is not simply there."""
    if table.files != (watch.file,) or table.missing or not len(table.bytes) or np.asarray(table.encoded, bool).any():
        return None
    shape, chunk = np.array(info.shape, np.int64), np.array(info.chunk_shape, np.int64)
    if (table.origin % chunk).any():
        return None
    held = np.minimum(chunk, shape - table.origin) if info.edge_cut else np.broadcast_to(chunk, table.origin.shape)
    cells = np.ravel_multi_index(tuple((table.origin // chunk).T), tuple(-(-shape // chunk)))
    order = np.argsort(cells, kind="stable")
    whole = (np.asarray(table.bytes) == held.prod(axis=1) * info.dtype.itemsize).all()
    if not whole or (np.diff(cells[order]) == 0).any():
        return None
    return np.ascontiguousarray(np.column_stack([cells, table.offset_bytes]).astype(np.int64)[order])


def may_read(selection: Selection) -> bool:
    """Whether rows are asked for: numbers of the first dimension, and boxes of the others."""
    picks = selection.picks
    if picks is None or picks.single or picks.axis != 0 or not selection.size:
        return False
    return all(step == 1 for step in selection.steps)


def read_rows(mover: Mover, known: KnownRows, wanted: Request, tally: RowTally) -> Any:
    """What was asked for; None: a transfer must be made, and nothing that counts has happened."""
    info, selection = wanted.info, wanted.selection
    assert selection.picks is not None
    if wanted.bytes > MOST_BYTES or not _holds(known.watch):
        return None
    buffer = _buffer_of(mover, wanted)
    lease = mover.files.lease([known.watch.file]) if buffer is not None else None
    if not isinstance(lease, Lease):
        return None
    # The host reaches memory of the emulated device: bytes need not be staged for it.
    memory = memoryview(buffer) if isinstance(buffer, _core.Buffer) else buffer
    box = np.ascontiguousarray(np.array([selection.first, selection.counts], np.int64).T)
    with lease:
        done = known.reader.read(lease.files[0], selection.picks.numbers.reshape(-1, 1), box, memory)
    if done is None:
        return None
    tally.add(*done)
    return Array(buffer, info.dtype.native, selection.shape) if wanted.out is None else wanted.out


def _buffer_of(mover: Mover, wanted: Request) -> Any:
    """Exactly of the selection's bytes: new, or of `out`. None: `out` has no such memory."""
    if wanted.out is None:
        return _core.allocate(mover.raw, wanted.bytes, "device", "none")
    target = checked_out(wanted, None, mover.device)
    if isinstance(target.memory, _core.Buffer):
        return target.memory.slice(target.base, target.nbytes)
    return target.memory if target.base == 0 else None


def _holds(watch: Watch) -> bool:
    try:
        status = os.stat(watch.file)  # noqa: PTH116 - in each read
    except OSError:
        return False
    if (status.st_dev, status.st_ino) != (watch.device, watch.inode):
        return False
    bytes, modified = watch.bytes in (None, status.st_size), watch.modified_ns in (None, status.st_mtime_ns)
    return bytes and modified
