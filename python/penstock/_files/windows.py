"""Moving a long range through a few device windows, so that memory stays small whatever the size of the file.

Two windows are under way at any time: while one is prepared or consumed (stamped, hashed), the other moves. Whatever
ends the run early, an interrupt included, cancels what is under way; windows that the system still writes into then
are kept by the engine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock._api import Buffer, Context, File, Outcome, Progress, Transfer, leave

HOST_WINDOW_BYTES = 64 << 20
GPU_WINDOW_BYTES = 1 << 30
WINDOWS = 2

OnWindow = Callable[[Buffer, int], None]  # (memory, file offset)


@dataclass(frozen=True)
class Window:
    offset_bytes: int
    bytes: int


@dataclass
class LongMove:
    """What to move and what to do with each window."""

    context: Context
    file: File
    direction: str  # "read" or "write"
    offset_bytes: int
    bytes: int
    options: dict[str, Any] = field(default_factory=dict)
    prepare: OnWindow | None = None  # before a window is written
    consume: OnWindow | None = None  # after a window was read, in file order
    progress: Progress | None = None


@dataclass
class Run:
    """Outcomes in file order. `seconds` is the time in which at least one transfer was under way."""

    outcomes: list[Outcome]
    seconds: float
    windows: int

    @property
    def bytes(self) -> int:
        return sum(outcome.bytes for outcome in self.outcomes)


@dataclass
class _Moving:
    window: Window
    memory: Buffer
    transfer: Transfer
    started: float


def window_bytes(context: Context, total_bytes: int) -> int:
    """The whole request where it fits in 80 % of a GPU's free memory; else windows large enough for full speed."""
    device = context.device
    if device["emulated"]:
        return min(total_bytes, HOST_WINDOW_BYTES)
    if total_bytes <= 0.8 * device["free_bytes"]:
        return total_bytes
    return max(1 << 20, min(GPU_WINDOW_BYTES, int(0.4 * device["free_bytes"]) >> 20 << 20))


def split(offset_bytes: int, total_bytes: int, size: int) -> Iterator[Window]:
    for start in range(0, total_bytes, size):
        yield Window(offset_bytes + start, min(size, total_bytes - start))


def run(job: LongMove) -> Run:
    """Moves all of the job. Raises Error at the first window that failed; a read may end early at the end of file."""
    if job.bytes == 0:
        return Run([], 0.0, 0)
    size = window_bytes(job.context, job.bytes)
    windows = deque(split(job.offset_bytes, job.bytes, size))
    count = len(windows)
    free = [job.context.allocate(size, first_touch="gpu") for _ in range(min(WINDOWS, count))]
    under_way: deque[_Moving] = deque()
    outcomes: list[Outcome] = []
    busy = _BusyTime()
    try:
        while windows or under_way:
            while windows and free:
                under_way.append(_start(job, windows.popleft(), free.pop()))
            slot = under_way[0]
            outcomes.append(_finish(job, slot, under_way, outcomes))
            busy.add(slot.started, outcomes[-1].seconds)
            under_way.popleft()
            if job.consume is not None:
                job.consume(slot.memory.slice(0, outcomes[-1].bytes), slot.window.offset_bytes)
            free.append(slot.memory)
            if outcomes[-1].bytes < slot.window.bytes:
                break  # the file ended here
    finally:
        leave(slot.transfer._raw for slot in under_way)
    return Run(outcomes, busy.seconds, count)


def _start(job: LongMove, window: Window, memory: Buffer) -> _Moving:
    part = memory.slice(0, window.bytes)
    if job.prepare is not None:
        job.prepare(part, window.offset_bytes)
    start = job.file.start_read if job.direction == "read" else job.file.start_write
    began = time.perf_counter()
    return _Moving(window, memory, start(part, window.offset_bytes, **job.options), began)


def _finish(job: LongMove, slot: _Moving, under_way: deque[_Moving], outcomes: list[Outcome]) -> Outcome:
    progress = job.progress
    if progress is None:
        return slot.transfer.result()
    finished = sum(outcome.bytes for outcome in outcomes)

    def tell(_done: int, _total: int) -> None:
        progress(finished + sum(one.transfer.bytes_done for one in under_way), job.bytes)

    slot.transfer.wait(progress=tell)
    return slot.transfer.result()


class _BusyTime:
    """Length of the union of intervals that begin in order."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._end = 0.0

    def add(self, start: float, length: float) -> None:
        end = start + length
        if end > self._end:
            self.seconds += end - max(start, self._end)
            self._end = end
