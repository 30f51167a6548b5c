"""Work that the host may never end, because a system does not answer: on daemon threads, which are left behind then.

A call of the system that hangs can be neither ended nor interrupted. What must stay true: whoever waits for such work
leaves when it was stopped, and so does the interpreter at its end, which waits for all threads but these. Work that is
left behind touches only memory of its own.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

_LOOK_S = 0.05  # between two looks whether the work was stopped
_PATIENCE_S = 0.2  # for work that was stopped and may be about to end


class Aside:
    """One piece of work on a thread of its own. What it gives or raises is that of `result`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._done = threading.Event()
        self._made: Any = None
        self._error: BaseException | None = None
        try:
            threading.Thread(target=self._run, name="penstock-decode", daemon=True).start()
        except RuntimeError:  # the system has no more threads
            self._run()

    def _run(self) -> None:
        try:
            self._made = self._work()
        except BaseException as error:
            self._error = error
        self._done.set()

    def result(self, need_going: Callable[[], None]) -> Any:
        """Waits. `need_going` raises when the work was stopped; so does this, if the work does not end soon then."""
        stopped: float | None = None
        while not self._done.wait(_LOOK_S):
            try:
                need_going()
            except Exception:
                stopped = stopped or time.monotonic()
                if time.monotonic() - stopped >= _PATIENCE_S:
                    raise
        if self._error is not None:
            raise self._error
        return self._made


class Threads:
    """Daemon threads that share the rows of some work. Closing them waits for none. They also end when this
    object is collected, because a thread holds the queue alone."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name, self._started = count, name, 0
        self._lock = threading.Lock()  # several callers may find that threads are missing
        self._asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def map(self, work: Callable[[int], None], rows: int) -> None:
        """work(row) for each row. Raises the first error, after which no more rows are begun."""
        call = _Rows(work, rows)
        helpers = min(self._count, rows) - 1  # the caller works too
        self._start(helpers)
        for _ in range(helpers):
            self._asked.put(call.run)
        call.run()
        call.finish()

    def close(self) -> None:
        started, self._started = self._started, 0
        for _ in range(started):
            self._asked.put(None)

    __del__ = close

    def _start(self, wanted: int) -> None:
        with self._lock:
            while self._started < wanted:
                try:
                    threading.Thread(target=_serve, args=(self._asked,), name=self._name, daemon=True).start()
                except RuntimeError:  # the system has no more: the caller does what no thread does
                    return
                self._started += 1


def _serve(asked: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while True:
        run = asked.get()
        if run is None:
            return
        run()


class _Rows:
    """The rows of one call, taken by whoever comes next."""

    def __init__(self, work: Callable[[int], None], rows: int) -> None:
        self._work, self._rows = work, rows
        self._changed = threading.Condition()
        self._next = self._busy = 0
        self._error: BaseException | None = None

    def run(self) -> None:
        while True:
            with self._changed:
                if self._next == self._rows:
                    return
                row, self._next, self._busy = self._next, self._next + 1, self._busy + 1
            error = None
            try:
                self._work(row)
            except BaseException as raised:
                error = raised
            with self._changed:
                self._busy -= 1
                if error is not None:
                    self._error, self._next = self._error or error, self._rows
                self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0)
        if self._error is not None:
            raise self._error
