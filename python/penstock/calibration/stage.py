"""Cells: requests of one kind, timed one after the other in a proven state of the page cache, every byte checked.

What `penstock calibrate` and the suite `choice` are made of. Times are taken in compiled code by a caller who waits, so
they are what a blocking call costs, and no ratio depends on the speed of Python.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Error, _core
from penstock._api import Buffer, Context, File
from penstock.calibration.poison import poison
from penstock.calibration.workspace import FILE_SEED, NotPossible, Workspace, make_cold, make_hot, resident

MISSING_CODES = ("unsupported", "fallback_refused")  # of Errors: this machine does not have the way
SAMPLE_BYTES = 16 << 20  # of one sample, if requests are smaller
SAMPLE_REQUESTS = 32
WARM_BYTES = 64 << 20  # of the request before those that are timed, at most
HOT_FRACTION = 0.999
FILL_BYTES = 64 << 20  # of one write that makes a file hot
UNALIGNED_BYTES = 1000  # where unaligned requests begin in their page


def wrong_bytes(file: str | Path, first: int, bad: int, how: str = "") -> Error:
    """What a failed check of the pattern raises: `bad` bytes are wrong, the first of them at file offset `first`."""
    return Error(
        code="io_error",
        operation="verify",
        file=str(file),
        offset_bytes=first,
        length_bytes=bad,
        cause=f"{bad} bytes are wrong{how}",
        advice="do not trust these results",
    )


@dataclass(frozen=True, order=True)
class Cell:
    """A kind of request. Shape fields of 0 are left to the policy."""

    direction: str
    cached: bool
    bytes: int
    path: str
    memory: str = "device"
    first_touch: str = "gpu"
    aligned: bool = True
    workers: int = 0
    depth: int = 0
    chunk_bytes: int = 0

    @property
    def writes(self) -> bool:
        return self.direction == "write"

    @property
    def options(self) -> dict[str, Any]:
        given = {"workers": self.workers, "depth": self.depth, "chunk_bytes": self.chunk_bytes}
        strict = self.path not in ("auto", "buffered") and (self.aligned or not self.writes)
        return {"path": self.path, "strict": strict} | {name: value for name, value in given.items() if value}


@dataclass(frozen=True)
class Sample:
    """What one visit to a cell found. Seconds are of one request: the median of the visit."""

    seconds: float
    synced_seconds: float  # of a write until it is on stable storage; 0 of reads
    requests: int
    took: str  # the path, or "mixed"


# Times the median of the best: up to there a path is visited again after 1, 2, ... visits; after more, as the last.
HOPEFUL = (2.5, 1.5, 1.3, 1.3, 1.15, 1.15, 1.15, 1.08)


HOPEFUL_LARGE = (1.4, 1.25, 1.2, 1.15, 1.15, 1.1)  # the same where a visit takes seconds


def hopeful(seconds: Sequence[float], best: float, margins: Sequence[float] = HOPEFUL) -> bool:
    """Whether what took so long in its visits may be the best of its kind: the more visits, the nearer it must be. Its
    lower quartile is compared, for what disturbs a measurement makes it slower."""
    low = sorted(seconds)[len(seconds) // 4]
    return low <= margins[min(len(seconds), len(margins)) - 1] * best


def group(cell: Cell) -> tuple[Any, ...]:
    """To sort by: requests of one kind beside each other, whatever their path; those of a hot file first, for to change
    the state costs more than most cells. Those of cuFile come last of a kind: to start it may take seconds."""
    return not cell.cached, cell.direction, cell.memory, cell.aligned, cell.bytes, cell.path.startswith("gds")


Mover = Callable[[File, Buffer, Cell, list[int]], tuple[list[float], str]]  # seconds of each request, and the path


def move(file: File, memory: Buffer, cell: Cell, offsets: list[int]) -> tuple[list[float], str]:
    """Times the requests in compiled code."""
    return _core.time_requests(file._raw, memory, cell.direction, offsets, **cell.options)


@dataclass
class Stage:
    """Where cells are measured: a context, two stamped files, and memory that is made once and touched before."""

    context: Context
    workspace: Workspace
    largest: int  # bytes of a request
    span_bytes: int = 0  # of the files that are used, from their beginning; 0: all
    random: random.Random = field(default_factory=lambda: random.Random(17))
    _buffers: dict[tuple[str, str], Buffer] = field(default_factory=dict)
    _missing: dict[tuple[Any, ...], str] = field(default_factory=dict)
    _hot: set[str] = field(default_factory=set)  # files that were read twice since they were dropped
    _seed: int = 5000

    def measure(self, cell: Cell, mover: Mover = move) -> Sample:
        """One visit. Raises NotPossible, with the cause, for what this machine cannot do; such a cell is then not tried
        again. Wrong data raises Error."""
        key = (mover, cell.direction, cell.cached, cell.path, cell.memory, cell.first_touch, cell.aligned)
        if key in self._missing:
            raise NotPossible(self._missing[key])
        try:
            return self._measure(cell, mover)
        except NotPossible as reason:
            self._missing[key] = str(reason)
            raise
        except Error as error:
            if error.code not in MISSING_CODES:
                raise
            self._missing[key] = error.cause
            raise NotPossible(error.cause) from None

    def _measure(self, cell: Cell, mover: Mover) -> Sample:
        name = self.workspace.target if cell.writes else self.workspace.source
        offsets = self._offsets(cell)
        memory = self._memory(cell, len(offsets))
        self._seed += 1
        if cell.writes:
            self._load(memory, cell, offsets)
        self._warm_up(cell, memory)
        if not cell.writes:
            self._poison(memory, cell)
        with self.context.open(name, write=True) as file:
            self._establish(file, cell)
            seconds, took = mover(file, memory, cell, offsets)
            synced = self._sync(file) / len(offsets) if cell.writes else 0.0
            self._check(file, cell, memory, offsets)
        middle = statistics.median(seconds)
        return Sample(middle, middle + synced if cell.writes else 0.0, len(offsets), took)

    @property
    def _span(self) -> int:
        return self.span_bytes or self.workspace.file_bytes

    def _warm_up(self, cell: Cell, memory: Buffer) -> None:
        """One request on another file, so that the path's workers and staging memory are there when it is timed."""
        name = self.workspace.directory / "warm.bin"
        if not name.exists():
            with self.context.create(name, min(WARM_BYTES, self._span)) as file:
                file.write(self._buffer("device", "gpu").slice(0, min(WARM_BYTES, self._span)), path="buffered")
        part = memory.slice(0, min(cell.bytes, WARM_BYTES, self._span))
        with self.context.open(name, write=True) as file:
            move(file, part, cell, [0])

    def _establish(self, file: File, cell: Cell) -> None:
        """The state of the whole file, proved. A file that is hot already is looked at, not read again."""
        if not cell.cached:
            self._hot.discard(file.name)
            make_cold(file, self.workspace.file_bytes)
        elif cell.writes:
            self._fill_by_writing(file)
        elif file.name not in self._hot or resident(file, self._span) < HOT_FRACTION:
            make_hot(file, self._span)
            self._hot.add(file.name)

    def _fill_by_writing(self, file: File) -> None:
        """Pages that reading brought are slower to write to than those that writing left: by a factor of two on ext4 of
        Linux 6.18. Hot, for writes, is one state: all written through the page cache, in large pieces, and synced."""
        memory = self._buffer("device", "gpu")
        filled = False
        for offset in range(0, self._span, FILL_BYTES):
            size = min(FILL_BYTES, self._span - offset)
            if resident(file, size, offset) < HOT_FRACTION or file.name not in self._hot:
                file.drop_cache(offset, size)
                file.write(memory.slice(0, size), offset, path="buffered")
                filled = True
        if filled:
            file.sync()
            self._hot.add(file.name)
        if resident(file, self._span) < HOT_FRACTION:
            raise NotPossible("the file does not stay in the page cache")

    def _offsets(self, cell: Cell) -> list[int]:
        """Distinct places, in random order: no request finds what another brought."""
        shift = 0 if cell.aligned else UNALIGNED_BYTES
        slots = (self._span - shift) // cell.bytes
        if slots == 0:
            raise NotPossible(f"the file of {self._span} bytes is too small for a request")
        count = max(1, min(SAMPLE_REQUESTS, SAMPLE_BYTES // cell.bytes, slots))
        return [slot * cell.bytes + shift for slot in self.random.sample(range(slots), count)]

    def _memory(self, cell: Cell, requests: int) -> Buffer:
        device = self.context.device
        if cell.memory == "device" and cell.first_touch == "cpu":
            raise NotPossible("the CPU cannot touch device memory first")
        if cell.memory == "system" and cell.first_touch == "gpu" and not device["coherent_with_host"]:
            raise NotPossible("this device cannot touch ordinary host memory first")
        return self._buffer(cell.memory, cell.first_touch).slice(0, requests * cell.bytes)

    def _buffer(self, kind: str, first_touch: str) -> Buffer:
        key = (kind, first_touch)
        if key not in self._buffers:
            size = max(self.largest, SAMPLE_BYTES, WARM_BYTES)
            self._buffers[key] = self.context.allocate(size, kind, first_touch=first_touch)
        return self._buffers[key]

    def forget(self, kind: str) -> None:
        """Lets go of the memory of a kind that is not measured any more."""
        for key in [key for key in self._buffers if key[0] == kind]:
            del self._buffers[key]

    def _far(self, memory: Buffer) -> Buffer:
        """Device memory of that size, for stamping and checking what the device cannot reach."""
        return self._buffer("device", "gpu").slice(0, memory.bytes)

    def _load(self, memory: Buffer, cell: Cell, offsets: list[int]) -> None:
        far = self._far(memory)
        for turn, offset in enumerate(offsets):
            self.context.stamp(far.slice(turn * cell.bytes, cell.bytes), offset, self._seed)
        if cell.memory != "device":
            self.context.copy_to_host(memory, far)

    def _poison(self, memory: Buffer, cell: Cell) -> None:
        """So that bytes that never came cannot pass."""
        far = self._far(memory)
        poison(self.context, far)
        if cell.memory != "device":
            self.context.copy_to_host(memory, far)

    @staticmethod
    def _sync(file: File) -> float:
        began = time.perf_counter()
        file.sync()
        return time.perf_counter() - began

    def _check(self, file: File, cell: Cell, memory: Buffer, offsets: list[int]) -> None:
        """On the device: what a read brought, or what a buffered read brings of what was written."""
        far = self._far(memory)
        if cell.writes:
            poison(self.context, far)
            for turn, offset in enumerate(offsets):
                file.read(far.slice(turn * cell.bytes, cell.bytes), offset, path="buffered")
        elif cell.memory != "device":
            self.context.copy_to_device(far, memory)
        seed = self._seed if cell.writes else FILE_SEED
        for turn, offset in enumerate(offsets):
            bad, first = self.context.verify_stamp(far.slice(turn * cell.bytes, cell.bytes), offset, seed)
            if bad:
                raise wrong_bytes(file.name, first, bad, f" after {cell.direction} by {cell.path}")
