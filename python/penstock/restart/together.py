"""Processes that write and read a restart together: each step ends in all of them alike, by a value or by an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock._error import Error

Value = TypeVar("Value")


class Alone:
    """One process: the same steps without messages."""

    rank, size = 0, 1

    def each(self, work: Callable[[], Value]) -> list[Value]:
        return [work()]

    def each_own(self, work: Callable[[], Value]) -> Value:
        return work()

    def first(self, work: Callable[[], Value]) -> Value:
        return work()

    def others(self, work: Callable[[], Any]) -> None:
        pass

    def same(self, values: list[int], name: str) -> None:
        pass


class Together(Alone):
    """By a communicator of mpi4py: methods with small letters, which take any object. All are collective."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        if missing := [one for one in ("rank", "size", "bcast", "allgather") if not hasattr(comm, one)]:
            kind = type(comm).__name__
            raise TypeError(f"comm= is a communicator as mpi4py has them, and a {kind} has no {missing[0]}")
        self.rank, self.size = comm.rank, comm.size

    def each(self, work: Callable[[], Value]) -> list[Value]:
        """What it gave in each process. Raises in all of them where it raised in one."""
        value, error = _done(work)
        ends = self._comm.allgather((value, None if error is None else str(error)))
        return _all_right(ends, error)

    def each_own(self, work: Callable[[], Value]) -> Value:
        """As each, of values that are no message: what it gave in this process."""
        value, error = _done(work)
        _all_right(self._comm.allgather((None, None if error is None else str(error))), error)
        return value  # type: ignore[return-value]

    def first(self, work: Callable[[], Value]) -> Value:
        """What it gave in process 0, in all of them."""
        value, error = _done(work) if self.rank == 0 else (None, None)
        return _all_right([self._comm.bcast((value, None if error is None else str(error)), root=0)], error)[0]

    def others(self, work: Callable[[], Any]) -> None:
        self.each_own(work if self.rank else lambda: None)

    def same(self, values: list[int], name: str) -> None:
        if len(set(values)) == 1:
            return
        other = next(rank for rank, value in enumerate(values) if value != values[0])
        raise Error(
            operation="restart",
            file=name,
            cause=f"processes 0 and {other} do not agree about fields, attributes or the generation",
            advice="give the same names, types, whole shapes and attributes in each process, in the same order",
        )


def _done(work: Callable[[], Value]) -> tuple[Value | None, Exception | None]:
    try:
        return work(), None
    except Exception as error:
        return None, error


def _all_right(ends: list[tuple[Any, str | None]], own: Exception | None) -> list[Any]:
    if own is not None:
        raise own
    for rank, (_, error) in enumerate(ends):
        if error is not None:
            raise Error(operation=f"agree with process {rank}", cause=error, advice="see what failed there")
    return [value for value, _ in ends]
