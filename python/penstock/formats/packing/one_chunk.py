"""Writes of one small compressed chunk, without a plan and a job.

`dataset[i : i + n] = rows` in a loop writes chunk after chunk. Where a value in host memory is one whole chunk of up to
HERE_BYTES that no reader can see yet, the thread that writes encodes it, asks the writer for its place, and moves it
there by a transfer which the engine makes on this thread. Everything else is left to plans. What must stay true: the
bytes in the file are those that a plan would have made, the transfer and its checks are the same, and closing the file
waits for a write that is under way here.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._api import Outcome
from penstock._arrays.selection import Box, Selection, select
from penstock._error import Error
from penstock._files.open_files import Lease
from penstock.formats.model import DatasetInfo, Filter, Shape, Writer
from penstock.formats.packing.encode import refused_chunk
from penstock.formats.packing.encoding import encoder_name
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.record import Counts, outcome_of
from penstock.formats.reading.source import MetadataSource

HERE_BYTES = 128 << 10  # that whoever writes encodes himself: about 2 ms, and a thread costs 0.1 ms or more
_SAMPLES = 8  # transfers whose whole evidence is kept


class _Known(NamedTuple):
    """What all chunks of a dataset have in common."""

    info: DatasetInfo
    plain: np.dtype
    encoder: _core.Encoder
    filters: tuple[Filter, ...]
    box: np.ndarray  # of a whole chunk, as encode_chunks takes it


class Asked(NamedTuple):
    """A write that can go this way."""

    known: _Known
    origin: Shape
    value: np.ndarray

    @property
    def box(self) -> Box:
        sizes = self.known.info.chunk_shape
        return Box(self.origin, tuple(low + size for low, size in zip(self.origin, sizes, strict=True)))


@dataclass
class ChunkSums:
    """Of transfers by which one path moved all bytes, and which have nothing else to tell. Safe for threads."""

    bytes: int = 0
    operations: int = 0
    host_copies_bytes: int = 0
    seconds: float = 0.0
    counts: Counts = field(default_factory=Counts)
    samples: list[_core.Outcome] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, raw: _core.Outcome, counts: Counts) -> bool:
        """False: it has more to tell."""
        with self._lock:
            return self._add(raw, counts)

    def _add(self, raw: _core.Outcome, counts: Counts) -> bool:
        share = raw.only_share
        if share is None or (self.samples and share[0] != self.samples[0].path):
            return False
        self.bytes += share[1]
        self.operations += share[2]
        self.host_copies_bytes += share[3]
        self.seconds += raw.seconds
        self.counts.add(counts)
        if len(self.samples) < _SAMPLES:
            self.samples.append(raw)
        return True

    def outcome(self) -> Outcome | None:
        """None: there was none."""
        with self._lock:
            return self._outcome() if self.samples else None

    def _outcome(self) -> Outcome:
        sample = outcome_of(self.samples, self.counts, self.seconds)
        sums = {"bytes": self.bytes, "operations": self.operations, "host_copies_bytes": self.host_copies_bytes}
        evidence: Any = sample.evidence | {"paths": [sample.evidence["paths"][0] | sums]}
        return Outcome(self.bytes, self.seconds, False, sample.path, evidence)


class UnderWay:
    """A write on the thread of its caller, as those see it who close the file."""

    writes = True

    def __init__(self) -> None:
        self.stop = _core.Stop()
        self._busy = threading.Lock()
        self._busy.acquire()

    @property
    def is_over(self) -> bool:
        return not self._busy.locked()

    def cancel(self) -> None:
        self.stop.stop()

    def over(self) -> None:
        self._busy.release()

    @contextmanager
    def among(self, pending: set[Any], failed: Callable[[BaseException], None]) -> Iterator[None]:
        """While the caller writes. Requires: it was added to those that are pending."""
        try:
            yield
        except BaseException as error:
            failed(error)
            raise
        finally:
            pending.discard(self)
            self.over()

    def _finish(self) -> None:
        with self._busy:
            pass


class Done(NamedTuple):
    """A chunk that was written."""

    raw: _core.Outcome
    counts: Counts

    @property
    def outcome(self) -> Outcome:
        return outcome_of([self.raw], self.counts, self.raw.seconds)


class ChunkWrites:
    """Those of one open file. `record`: takes what the sums cannot hold."""

    def __init__(
        self, mover: Mover, source: MetadataSource, record: Callable[[Outcome], None], sums: ChunkSums
    ) -> None:
        self._mover, self._source, self._record, self._sums = mover, source, record, sums
        self._known: dict[str, _Known] = {}

    def asked(self, name: str, index: Any, value: Any) -> Asked | None:
        """None: a plan must be made. Raises what that would raise: of the index, and of a file that is closed."""
        if not may_be_one(value):
            return None
        with self._source.writer(changes=False) as writer:
            info = writer.info(name)
            if not info.filters or info.order != "C" or info.chunk_bytes != value.nbytes or info.conversion:
                return None
            origin = _origin_of(info, select(info.shape, index, self._mover.raw), value)
            if origin is None or not writer.takes_one(name, origin):
                return None
            known = self._known.get(name)
            if known is None or known.info is not info:
                known = self._known[name] = self._of_dataset(writer, info, origin)
        return Asked(known, origin, value) if known.plain == value.dtype else None

    def _of_dataset(self, writer: Writer, info: DatasetInfo, origin: Shape) -> _Known:
        box = Box(origin, tuple(at + size for at, size in zip(origin, info.chunk_shape, strict=True)))
        filters, item = writer.packing(info.name, box), info.dtype.itemsize
        table = np.array([[0, 0, info.chunk_bytes // item, item, item]], np.int64)
        return _Known(info, info.dtype.native.dtype, self._mover.encoder(filters, info.chunk_bytes), filters, table)

    def write(self, asked: Asked, under_way: UnderWay) -> Done:
        """Raises Error when it cannot be done. Then, and when an interrupt comes, the chunk is not whole."""
        mover, known, began = self._mover, asked.known, time.perf_counter()
        scratch = mover.take_scratch(known.encoder.most_bytes, "pinned")
        size = self._encode(asked, scratch, under_way)
        with self._source.writer() as writer:
            file, offset = writer.place_one(known.info.name, asked.origin, size)
        raw = self._move(file, np.array([[0, offset, 0, size]], np.int64), scratch)
        mover.give_back(scratch)
        counts = Counts(known.info.chunk_bytes, size, 1, 1, size, scratch.bytes)
        counts.encoded_on_cores(known.info.chunk_bytes, encoder_name(known.filters))
        if not self._sums.add(raw, counts):
            self._record(outcome_of([raw], counts, time.perf_counter() - began))
        return Done(raw, counts)

    def _encode(self, asked: Asked, scratch: _core.Buffer, under_way: UnderWay) -> int:
        """Bytes of the encoded chunk, which begins in scratch."""
        info, encoder, box = asked.known.info, asked.known.encoder, asked.known.box
        source, target = (asked.value, box, info.dtype.itemsize), (scratch, encoder.most_bytes)
        how = (info.dtype.swap_bytes, b"")
        done, _, fault, sizes = _core.encode_chunks(self._mover.raw, encoder, source, target, *how, under_way.stop)
        if fault:
            raise refused_chunk(self._mover.name, info.name, list(asked.origin), fault)
        if not done:
            raise Error(code="cancelled", operation="write", file=self._mover.name, cause="cancelled by the caller")
        return int.from_bytes(sizes, sys.byteorder)

    def _move(self, file: str, table: np.ndarray, scratch: _core.Buffer) -> _core.Outcome:
        files = self._mover.files
        while True:
            lease = files.lease([file], True)
            if isinstance(lease, Lease):
                break
            lease.settle(None)
        with lease:
            transfer = _core.start_table(self._mover.raw, "write", lease.files, scratch, table, caller_waits=True)
            use = lease.began(transfer)
        transfer.settle(None)
        raw = transfer.result()
        if transfer.done:  # else the system does not end its operations: its file stays in use
            use.over()
        raw.or_throw()
        if raw.bytes != table[0, 3]:
            _, offset, _, length = table[0].tolist()
            raise Error.cut_short(file, offset, length, raw.bytes)
        files.settle()
        return raw


def may_be_one(value: Any) -> bool:
    """Whether a value is small enough, and lies in memory as a chunk does."""
    return type(value) is np.ndarray and 0 < value.nbytes <= HERE_BYTES and value.flags.c_contiguous


def _origin_of(info: DatasetInfo, selection: Selection, value: np.ndarray) -> Shape | None:
    """Where the chunk begins that the selection is; None: it is another one, or the value does not fit."""
    if selection.picks is not None or selection.counts != info.chunk_shape or selection.shape != value.shape:
        return None
    first = selection.first
    if any(step != 1 for step in selection.steps) or any(
        at % size for at, size in zip(first, info.chunk_shape, strict=True)
    ):
        return None
    return first
