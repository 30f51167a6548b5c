"""Several processes write one snapshot: what they say to each other, by few collective calls.

What must stay true: each meeting ends in all processes alike, by values or by an error that names the process which
failed; where one fails, no file gets its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from penstock import _core
from penstock._error import Error
from penstock._files.communicator import Communicator
from penstock._files.open_files import with_room
from penstock.snapshot.cells import CellGrid

_T = TypeVar("_T")
_F = TypeVar("_F", bound="tuple[NewField, Any]")


class NewField(NamedTuple):
    """A dataset that a process adds. All but the number of rows is the same in each process."""

    path: str
    dtype: str
    shape: tuple[int, ...]  # of each row, where there are rows
    rows: int | None  # that this process has; None: the array is all of the dataset

    def __str__(self) -> str:
        if self.rows is not None:
            return f"{self.path!r}, rows of {self.dtype} {self.shape or ''}".rstrip()
        return f"{self.path!r}, " + (f"all of {self.dtype} {self.shape}" if self.shape else f"one {self.dtype}")


class SnapshotRanks:
    """The processes of one snapshot; without a communicator it is one. All calls but `alone` are collective."""

    def __init__(self, comm: Communicator | None) -> None:
        self._comm = comm
        self.name = ""  # of the file, once it is known

    @property
    def alone(self) -> bool:
        return self._comm is None or self._comm.size == 1

    def numbers(self) -> dict[str, int]:
        """Options of the core."""
        return {"process": self._comm.rank, "processes": self._comm.size} if self._comm else {}

    def each(self, call: Callable[[], Any], act: str = "writes") -> list[Any]:
        """What the call gave in each process, which is a message. Raises in all of them where it raised in one."""
        return self._met(call, act, lambda value: value)[1]

    def each_own(self, call: Callable[[], _T], act: str = "writes") -> _T:
        """As each, of what is no message: what the call gave here."""
        return self._met(call, act, lambda _: None)[0]

    def fields(self, look: Callable[[], list[_F]], act: str) -> tuple[list[_F], list[list[int]]]:
        """What `look` gave here, and of each dataset the rows of each process; none where its array is all of it.
        Raises Error in all processes where they add other datasets."""
        own, told = self._met(look, act, lambda new: [tuple(field) for field, _ in new])
        if self._comm is None:
            return own, [[] for _ in own]
        kinds = [[NewField(*one) for one in new] for new in told]
        for process, kind in enumerate(kinds):
            self._need_same(process, kinds[0], kind)
        return own, [[one.rows for one in each if one.rows is not None] for each in zip(*kinds, strict=True)]

    def grid(self, look: Callable[[], tuple[CellGrid, _T]], act: str) -> tuple[CellGrid, _T]:
        """What `look` gave here. Raises Error in all processes where they give other grids."""
        own, told = self._met(look, act, lambda given: given[0])
        for process, one in enumerate(told):
            if one != told[0]:
                raise self._differ(f": process 0 gives {told[0]}, and process {process} {one}")
        return own

    def _need_same(self, process: int, first: Sequence[NewField], own: Sequence[NewField]) -> None:
        for at in range(max(len(first), len(own))):
            ours, theirs = (one[at] if at < len(one) else None for one in (first, own))
            if ours is None or theirs is None or not _is_like(ours, theirs):
                none = "no other dataset"
                cause = f"process 0 adds {ours or none}, and process {process} {theirs or none}"
                raise self._differ(f": {cause}")

    def write(self, raw: _core.Snapshot, given: Callable[[], list[tuple[str, Any, int, int]]]) -> dict[str, Any]:
        """What write() of the core tells of this process."""
        if self.alone:
            return with_room(lambda: raw.write(given()))
        try:
            return self._written(raw, given)
        except BaseException:
            raw.abandon()
            raise

    def _written(self, raw: _core.Snapshot, given: Callable[[], list[tuple[str, Any, int, int]]]) -> dict[str, Any]:
        if len(set(self.each(raw.digest))) != 1:
            raise self._differ()
        comm = self._comm
        assert comm is not None
        self.each_own(lambda: with_room(lambda: raw.begin(None)) if comm.rank == 0 else None)
        place = self.each(lambda: raw.place() if comm.rank == 0 else None)[0]
        self.each_own(lambda: with_room(lambda: raw.begin(place or None)) if comm.rank != 0 else None)
        told = self.each_own(lambda: with_room(lambda: raw.write(given())))
        gives_last = not place  # process 0, where each has a file; of one file it alone gives the name, and may fail
        for is_turn in ((comm.rank != 0) == gives_last, (comm.rank == 0) == gives_last):
            self.each_own(raw.commit if is_turn else _nothing)
        return told

    def _met(self, call: Callable[[], _T], act: str, say: Callable[[_T], Any]) -> tuple[_T, list[Any]]:
        """What the call gave here, and what each process says of it. Each raises where one did: its own error, or that
        of the first. `act`: processes that do other things than this one do not wait for each other."""
        if self._comm is None:
            here = call()
            return here, [say(here)]
        value: Any = None
        said: Any = None
        own: BaseException | None = None
        try:
            value = call()
            said = say(value)
        except BaseException as error:  # noqa: BLE001 - raised below, when all have heard of it
            own = error
        failure = "" if own is None else str(own) or type(own).__name__
        told = self._comm.allgather((act, said, failure))
        if own is not None:
            raise own
        for process, (done, _, failure) in enumerate(told):
            if failure:
                raise self._error(f"process {process}: {failure}", "see what failed there")
            if done != act:
                cause = f"process {process} {done}, and process {self._comm.rank} {act}"
                raise self._error(cause, "call the same functions in each process, in one order")
        return value, [one for _, one, _ in told]

    def _differ(self, what: str = "") -> Error:
        advice = "add the same datasets and set the same attributes on each"
        return self._error(f"the processes define different files{what}", advice)

    def _error(self, cause: str, advice: str) -> Error:
        return Error(operation="write snapshot", file=self.name, cause=cause, advice=advice)


def _nothing() -> None:
    """What a process does whose turn it is not: it waits for the others."""


def _is_like(one: NewField, other: NewField) -> bool:
    return one[:3] == other[:3] and (one.rows is None) == (other.rows is None)
