"""Pending: a read or write under way, that may take several transfers with work between them.

The work is a generator: it yields each transfer it has to wait for, and goes on when that is done; before each part
that the host works on for long it yields HostWork. Work that is one transfer runs without a thread of its own; other
work gets one when it was started in the background, and when the host has much to do while a caller waits. What must
stay true: only callers that asked for it wait for host work; waits can be interrupted, also those for host work; when
one raises an interrupt, or work fails, nothing touches the memory any more but operations that the system does not end,
for which the core keeps it; one thread at a time, the one that holds the lock, goes on with the work."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from penstock import _core
from penstock._api import Outcome, Progress, leave
from penstock._error import Error
from penstock._files.open_files import Full
from penstock._told import Evidence

INLINE_BYTES = 1 << 20  # that whoever waits may make himself: about 10 ms, and a thread takes 0.1 ms to begin


@dataclass(frozen=True)
class HostWork:
    """What comes next keeps the host busy, for as many bytes as there are left to make."""

    bytes: int

    def settle(self, timeout: float | None) -> bool:
        """There is nothing to wait for."""
        return True


def leave_through_interrupts(transfers: list[_core.Transfer]) -> None:
    """As leave(), which an interrupt of its own does not end."""
    while True:
        try:
            leave(transfers)
            return
        except KeyboardInterrupt:
            continue


Steps = Iterator[_core.Transfer | HostWork | Full]


class PendingWork(Protocol):
    """What a Pending drives."""

    writes: bool
    bytes_total: int
    is_one_transfer: bool  # known after the first step: nothing is left but to wait

    @property
    def bytes_done(self) -> int: ...

    def steps(self) -> Steps: ...

    def cancel(self) -> None:
        """Transfers under way finish early; the next step raises Error `cancelled`."""

    def outcome(self, seconds: float) -> Outcome: ...


Result = TypeVar("Result")


class Pending(Generic[Result]):
    """A read or write under way. Dropping it does not cancel it."""

    def __init__(
        self,
        work: PendingWork,
        result: Callable[[Outcome], Result],
        ended: Callable[[Pending[Result]], None] = lambda _: None,
    ) -> None:
        self._work, self._result, self._ended = work, result, ended
        self._began = time.perf_counter()
        self._steps = work.steps()
        self._waits_for: _core.Transfer | HostWork | Full | None = None
        self._begun, self._made_by = False, threading.get_ident()  # who makes it begins it
        self._lock = threading.RLock()  # that letting go of it can be tried
        self._finished = threading.Event()
        self._error: BaseException | None = None
        self._outcome: Outcome | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def begin(self, background: bool) -> Pending[Result]:
        """Starts the work; in the background it goes on without anybody waiting."""
        with self._lock:  # another thread may close the file, and then waits here
            self._begun = True
            self._advance()
            if background and not self._finished.is_set() and not self._work.is_one_transfer:
                self._start_thread()
        return self

    def _start_thread(self) -> None:
        """The lock is held. An interrupt in here leaves open whether there is a thread: then the lock decides who goes
        on, it or the next to wait."""
        thread = threading.Thread(target=self._run_in_thread, name="penstock-pending")
        try:
            thread.start()
        except RuntimeError:  # the system has no more: whoever waits goes on with the work himself
            return
        self._thread = thread

    def _advance(self) -> None:
        """Up to the next transfer to wait for, or to the end."""
        try:
            self._waits_for = next(self._steps, None)
            if self._waits_for is None:
                self._outcome = self._work.outcome(time.perf_counter() - self._began)
        except BaseException as error:
            self._waits_for, self._error = None, error
        if self._waits_for is None:
            self._finished.set()
            self._ended(self)

    def _break_off(self) -> None:
        """The lock is held. An interrupt came before the first step, or between two lines of the last: nothing is left
        to wait for, and no caller was told how it ended."""
        self._steps.close()  # type: ignore[attr-defined]
        if self._error is None:
            kind = "write" if self.writes else "read"
            self._outcome, self._error = None, Error(code="cancelled", operation=kind, cause="it was interrupted")
        self._finished.set()
        self._ended(self)

    def _run_in_thread(self) -> None:
        with self._lock:
            while self._waits_for is not None:
                self._waits_for.settle(None)
                self._advance()

    @property
    def failure(self) -> BaseException | None:
        """What result() raises, when it is done and did not succeed."""
        return self._error

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._finished.is_set()

    @property
    def writes(self) -> bool:
        """Whether it writes to a file."""
        return self._work.writes

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not; does not wait."""
        return self._finished.is_set() or (self._thread is None and self._wait_once(0))

    @property
    def bytes_done(self) -> int:
        """So far."""
        return self.bytes_total if self._outcome is not None else min(self._work.bytes_done, self.bytes_total)

    @property
    def bytes_total(self) -> int:
        """Of file ranges and bytes decoded on the host."""
        return self._work.bytes_total

    def wait(self, timeout: float | None = None, progress: Progress | None = None) -> bool:
        """True when done; False after `timeout` seconds. `progress(done_bytes, total_bytes)` is called about 10 times
        a second and once at the end. Errors are raised by result(); an interrupt cancels, and leaves when nothing
        touches the memory any more (or, where the system does not end an operation, 0.2 s later: then the memory is
        kept until it does). ValueError of a timeout below 0."""
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is {timeout}; 0 only asks, None waits as long as it takes")
        try:
            return self._wait(timeout, progress)
        except BaseException:
            self.cancel()
            self._finish()
            raise

    def _wait(self, timeout: float | None, progress: Progress | None) -> bool:
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while not self._finished.is_set():
            left = max(0.0, deadline - time.monotonic())
            slice_s = left if progress is None else min(0.1, left)
            done = self._wait_once(None if slice_s == float("inf") else slice_s)
            if not done and left == 0:
                return False
            if progress is not None and not done:
                progress(self.bytes_done, self.bytes_total)
        if progress is not None:
            progress(self.bytes_done, self.bytes_total)
        return True

    def _wait_once(self, timeout: float | None) -> bool:
        self._need_own_process()
        if self._thread is None:
            try:
                if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
                    return False
                self._step(timeout)
            finally:  # an interrupt may come just as the lock is ours
                with suppress(RuntimeError):
                    self._lock.release()
        return self._finished.is_set() if self._thread is None else self._finished.wait(timeout)

    def _step(self, timeout: float | None) -> None:
        """The lock is held. Much work on the host is left to a thread, so that waiting for it can be interrupted."""
        if self._thread is not None or self._finished.is_set():
            return
        if self._waits_for is None:
            if self._begun or threading.get_ident() == self._made_by:
                self._break_off()
            return
        if isinstance(self._waits_for, HostWork) and self._waits_for.bytes > INLINE_BYTES:
            self._start_thread()
        if self._thread is None and self._waits_for.settle(timeout):
            self._advance()

    def _need_own_process(self) -> None:
        """A forked child has neither the thread nor the transfers, and may have a lock that no thread will let go."""
        if os.getpid() != self._process:
            raise Error(
                code="unsupported",
                operation="wait for a write" if self.writes else "wait for a read",
                cause="it was started before fork(), in the parent process",
                advice="open the file in the child, and start it there",
            )

    def result(self) -> Result:
        """Waits. What a read gives: the array, `out`, or a dict of arrays; of a write, its Outcome. Raises Error when
        not all was done; an interrupt cancels, and leaves as that of wait() does."""
        return self._result(self.outcome)

    def _settle(self, progress: Progress | None = None) -> None:
        self.wait(progress=progress)
        if self._error is not None:
            raise self._error

    def _finish(self) -> None:
        """Waits through interrupts, also for the end of the thread."""
        while not self._finished.is_set() or (self._thread is not None and self._thread.is_alive()):
            try:
                self._wait_once(None)
                if self._thread is not None:
                    self._thread.join()
            except KeyboardInterrupt:
                continue

    @property
    def outcome(self) -> Outcome:
        """Waits. Bytes, seconds, path and evidence of the whole work."""
        self._settle()
        assert self._outcome is not None
        return self._outcome

    @property
    def evidence(self) -> Evidence:
        """Waits. How the bytes went, summed over transfers, and which of them the host decoded."""
        return self.outcome.evidence

    def cancel(self) -> None:
        """Started operations finish, the rest does not start; result() then raises Error with code "cancelled"."""
        self._work.cancel()

    def __repr__(self) -> str:
        state = "done" if self._finished.is_set() else "under way"
        return f"<penstock.Pending {state}, {self.bytes_done} of {self.bytes_total} bytes>"


def deadline_after(timeout_s: Any) -> float:
    """What transfers accept, for work that may have none."""
    if timeout_s is None:
        return float("inf")
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)):
        raise TypeError(f"timeout_s must be a float or None, not {type(timeout_s).__name__}")
    if not timeout_s >= 0:
        raise ValueError(f"timeout_s is {timeout_s}; it must be 0 seconds or more, or None for no limit")
    return time.monotonic() + timeout_s
