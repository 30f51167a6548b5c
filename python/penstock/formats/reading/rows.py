"""Many rows of one dataset out of the page cache, without a plan and a transfer.

`dataset[[7, 3, 9]]` asks for thousands of rows of a few KiB. Where their bytes are stored as they are read, the native
RowReader reads them by small reads, on the cores of the host. All else is left to plans: other dimensions than the
first, steps, missing and encoded chunks, long rows, rows that are not in the page cache, errors. What must stay true:
bytes and shapes are those of that way, the evidence tells the reads that were made, and a dataset is read as its file
is now.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._arrays.array import Array
from penstock._arrays.selection import Box, Selection
from penstock._files.open_files import Lease
from penstock.formats.model import Container, DatasetInfo, Watch
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.request import Request, checked_out, ordered_after
from penstock.formats.reading.small import described, may_be_native, plain_chunks

MOST_CHUNKS = 4096  # that are looked for before a GPU gets its first rows, for which a plan asks for few of them
MOST_BYTES = 1 << 30  # of one call; more is worth all workers


class KnownRows(NamedTuple):
    """What finds rows of one dataset, and what of its file must stay for that."""

    reader: _core.RowReader
    watch: Watch


def known_rows(mover: Mover, container: Container, info: DatasetInfo, tally: _core.SmallTally) -> KnownRows | None:
    """None where rows are not simply there."""
    if info.order != "C" or info.filters or not may_be_native(info):
        return None
    grid = [-(-extent // chunk) for extent, chunk in zip(info.shape, info.chunk_shape, strict=True)]
    if not mover.emulated and math.prod(grid) > MOST_CHUNKS:
        return None
    watch = container.watch(info.name)
    if watch is None:
        return None
    chunks = plain_chunks(info, container.table(info.name, Box((0,) * info.ndim, info.shape)), watch)
    return None if chunks is None else KnownRows(_core.RowReader(mover.raw, tally, described(info, chunks)), watch)


def may_read(selection: Selection) -> bool:
    """Whether rows are asked for: numbers of the first dimension, and boxes of the others."""
    picks = selection.picks
    if picks is None or picks.single or picks.axis != 0 or not selection.size:
        return False
    return all(step == 1 for step in selection.steps)


def read_rows(mover: Mover, known: KnownRows, wanted: Request) -> Any:
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
    is_reached = mover.emulated and isinstance(buffer, _core.Buffer)
    memory = memoryview(buffer) if is_reached else buffer
    box = np.ascontiguousarray(np.array([selection.first, selection.counts], np.int64).T)
    with lease:
        if not known.reader.read(lease.files[0], selection.picks.numbers.reshape(-1, 1), box, memory):
            return None
    return Array(buffer, info.dtype.native, selection.shape) if wanted.out is None else wanted.out


def _buffer_of(mover: Mover, wanted: Request) -> Any:
    """Exactly of the selection's bytes: new, or of `out`, on which a GPU works no more. None: there is no room."""
    if wanted.out is None:
        return _core.allocate(mover.raw, wanted.bytes, "device", "none")
    target = checked_out(wanted, None, mover.device)
    for stream in {target.stream, ordered_after(None, foreign=True)} - {None}:
        _core.synchronize_stream(mover.raw, stream)
    return target.as_bytes()


def _holds(watch: Watch) -> bool:
    try:
        status = os.stat(watch.file)  # noqa: PTH116 - in each read
    except OSError:
        return False
    if (status.st_dev, status.st_ino) != (watch.device, watch.inode):
        return False
    bytes, modified = watch.bytes in (None, status.st_size), watch.modified_ns in (None, status.st_mtime_ns)
    return bytes and modified
