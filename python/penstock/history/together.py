"""Processes that write one history together: what they say to each other, by one collective call, allgather.

What must stay true: each meeting ends in all processes alike, by values or by an error; after an error all know of it,
and none speaks again; a step is published only where every process has written its part, and then also where one has
failed since.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from penstock import _core
from penstock._error import Error
from penstock._files.communicator import Communicator
from penstock._files.open_files import with_room

Value = TypeVar("Value")

_OVERFLOW = 1 << 64  # of sums of coverages

# What a process may do in a meeting, and the operation of its errors.
_ACTS = {
    "opens": "open history",
    "begins": "begin",
    "ends a step": "end step",
    "waits": "wait",
    "closes": "close history",
}


class HistoryRanks:
    """The processes of one history. All but numbers() and keeps() are collective."""

    def __init__(self, comm: Communicator, name: str) -> None:
        self._comm, self._name = comm, name
        self._raw: _core.History | None = None  # once it has begun
        self._known: Exception | None = None  # all processes have heard of it
        self._late: Exception | None = None  # of this process; the others hear of it when they meet next

    def numbers(self) -> dict[str, int]:
        """Options of the core."""
        return {"process": self._comm.rank, "processes": self._comm.size}

    def keeps(self, error: Error) -> bool:
        """Whether it is of a step that this process could not write: all are told by the next meeting."""
        if error.operation != "write history":
            return False
        self._late = error
        return True

    def open(self, opened: Callable[[], None]) -> None:
        self._meet("opens", opened)

    def begin(self, raw: _core.History) -> None:
        """Refuses definitions that differ, boxes of which a store cannot be made, and boxes with gaps between them, or
        that overlap, before process 0 makes the file."""
        act = "begins"
        first = self._meet(act, lambda: (raw.digest(), raw.cuts()))
        self._same(act, [digest for digest, _ in first], "define different files")
        cuts = [math.gcd(*column) for column in zip(*(own for _, own in first), strict=True)]
        if cuts:

            def divided() -> int:
                raw.set_cuts(cuts)
                return raw.digest()

            self._same(act, self._meet(act, divided), "define different blocks")
        parts = self._meet(act, raw.coverage)
        raw.set_coverage([sum(column) % _OVERFLOW for column in zip(*parts, strict=True)])
        self._meet(act, lambda: with_room(raw.begin) if self._comm.rank == 0 else None)
        self._meet(act, lambda: with_room(raw.begin) if self._comm.rank != 0 else None)
        self._raw = raw

    def end_step(self, raw: _core.History, time: Callable[[], float]) -> None:
        """In all processes, or in none: what may fail is done before they meet."""

        def checked() -> tuple[float, int]:
            number = time()
            raw.check_step(number)
            return number, _written(raw)

        told = self._meet("ends a step", checked)
        self._same("ends a step", [number for number, _ in told], "give different times")
        raw.end_step(told[0][0])
        self._publish(raw, [written for _, written in told])

    def wait(self, raw: _core.History) -> None:
        self._publish(raw, self._meet("waits", lambda: _waited(raw)))
        self._meet("waits", lambda: None)

    def close(self, raw: _core.History) -> None:
        """The history is closed afterwards, also where this raises."""
        try:
            self._publish(raw, self._meet("closes", lambda: _waited(raw)))
            self._meet("closes", raw.close)
        except BaseException:
            with contextlib.suppress(Error):
                raw.close()
            raise

    def _meet(self, act: str, work: Callable[[], Value]) -> list[Value]:
        """What the work gave in each process. Raises in all of them where it raised in one."""
        if self._known is not None:
            raise self._known
        value: Value | None = None
        own: BaseException | None = self._late
        if own is None:
            try:
                value = work()
            except BaseException as error:  # noqa: BLE001 - raised below, when all have heard of it
                own = error
        said = self._comm.allgather((act, value, "" if own is None else str(own) or type(own).__name__))
        if any(failure for *_, failure in said):
            self._show_all()
        if own is not None:
            self._known = own if isinstance(own, Exception) else self._error(act, "it was interrupted", "open another")
            raise own
        for process, (done, _, failure) in enumerate(said):
            if failure:
                self._fail(act, f"process {process}: {failure}", "see what failed there")
            if done != act:
                self._show_all()
                cause = f"process {process} {done}, and process {self._comm.rank} {act}"
                self._fail(act, cause, "call the same functions in each process, in one order")
        return [value for _, value, _ in said]

    def _show_all(self) -> None:
        """The last that they say to each other: how many steps all have written, which readers see from now on."""
        if self._raw is not None:
            self._publish(self._raw, self._comm.allgather(_written_at_last(self._raw)))

    def _publish(self, raw: _core.History, written: Sequence[int]) -> None:
        try:
            if min(written) != 0:
                raw.publish(min(written))
        except Error as error:
            self._late = error

    def _same(self, act: str, values: list[Any], what: str) -> None:
        for process, value in enumerate(values):
            if value != values[0]:
                self._show_all()
                advice = "give the same names, types, whole shapes, attributes and times in each"
                self._fail(act, f"processes 0 and {process} {what}", advice)

    def _fail(self, act: str, cause: str, advice: str) -> NoReturn:
        self._known = self._error(act, cause, advice)
        raise self._known

    def _error(self, act: str, cause: str, advice: str) -> Error:
        return Error(operation=_ACTS[act], file=self._name, cause=cause, advice=advice)


def _written(raw: _core.History) -> int:
    return int(raw.facts()["steps_written"])


def _written_at_last(raw: _core.History) -> int:
    """Also of a process that has failed: none speaks again, so steps on their way are published now or never."""
    with contextlib.suppress(Error):
        raw.wait()
    return _written(raw)


def _waited(raw: _core.History) -> int:
    raw.wait()
    return _written(raw)
