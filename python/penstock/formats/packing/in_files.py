"""Chunks that are one file each, made by the threads that encode them, or by those that would copy them.

A transfer opens a file twice, looks at it, and asks at its end for late errors: twenty calls of the system for a chunk
that one call writes. Here each thread creates the file of its chunk, writes it and closes it. What must stay true: the
bytes are those of a transfer; what names a path, stable storage or strictness, what a server stores, and what the page
cache has no room for is left to transfers; an error names the file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock import _core
from penstock._api import Outcome
from penstock._error import Error
from penstock._files.open_files import is_out_of_descriptors
from penstock.formats.packing.encode import near, refused_chunk, within_memory
from penstock.formats.packing.encoding import MOST_FILE_BYTES, Encoding
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.record import Counts, outcome_at_once
from penstock.formats.reading.target import Target

_PLAN = "buffered, by the threads that have a chunk ready: files that are written whole"
_LEFT_OPEN = {"timeout_s", "caller_waits"}  # options that say nothing of the way


@dataclass
class Written:
    """What one job wrote in this way."""

    bytes: int = 0
    calls: int = 0
    seconds: float = 0.0

    def outcomes(self) -> list[Outcome]:
        """One, or none."""
        return [outcome_at_once(self.bytes, self.calls, self.seconds, _PLAN)] if self.calls else []


def may_write(mover: Mover, part: Encoding, options: Mapping[str, Any]) -> bool:
    """Whether the way is left to Penstock, and no chunk takes long."""
    return mover.context._is_free and not options.keys() - _LEFT_OPEN and part.chunk_bytes <= MOST_FILE_BYTES


def write(
    mover: Mover, part: Encoding, target: Target, limits: tuple[_core.Stop, float | None], to: tuple[Written, Counts]
) -> bool | None:
    """True: the chunks are in their files. False: transfers have to write them. None: the work was stopped, or took too
    long. `to`: what counts them."""
    files = part.placing.files(part.dataset, part.origin)
    if not files or not _core.takes_files(os.path.split(files[0])[0], part.bytes):
        return False
    began = time.perf_counter()
    encoder, how = mover.encoder(part.filters, part.chunk_bytes), (part.swap_bytes, part.fill)
    try:
        with within_memory(mover, part), near(mover, part, target) as (source, boxes):
            given = (source, boxes, part.item_bytes)
            done, row, fault, sizes, calls = _core.write_chunk_files(mover.raw, encoder, given, files, *how, *limits)
    except Error as error:
        if is_out_of_descriptors(error):  # transfers wait until there is one
            return False
        raise
    if fault:
        raise refused_chunk(mover.name, part.dataset, part.origin[row].tolist(), fault)
    if done < part.count:
        return None
    _count(part, np.frombuffer(sizes, np.int64), to[1])
    written = to[0]
    written.bytes += int(np.frombuffer(sizes, np.int64).sum())
    written.calls += calls
    written.seconds += time.perf_counter() - began
    return True


def _count(part: Encoding, sizes: np.ndarray, counts: Counts) -> None:
    counts.range_bytes += int(sizes.sum())
    counts.ranges += part.count
    counts.batches += 1
    if part.filters:
        counts.encoded_on_cores(part.bytes, part.encoder_name)
