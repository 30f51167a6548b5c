"""Several ranks as threads of one process, with the calls of mpi4py that a Snapshot makes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

LIMIT_S = 60


class _Meeting:
    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=LIMIT_S)
        self.values: list[Any] = [None] * size


class ThreadComm:
    """A communicator of one rank."""

    def __init__(self, rank: int, meeting: _Meeting) -> None:
        self.rank, self._meeting = rank, meeting

    @property
    def size(self) -> int:
        return len(self._meeting.values)

    def allgather(self, sendobj: Any) -> list[Any]:
        self._meeting.values[self.rank] = sendobj
        self._meeting.barrier.wait()
        told = list(self._meeting.values)
        self._meeting.barrier.wait()
        return told

    def alltoall(self, sendobj: Any) -> list[Any]:
        return [sent[self.rank] for sent in self.allgather(sendobj)]

    def bcast(self, obj: Any, root: int = 0) -> Any:
        return self.allgather(obj)[root]


def on_ranks(size: int, work: Callable[[ThreadComm], Any]) -> list[Any]:
    """What the work gave on each rank: a value, or the exception that it raised."""
    meeting = _Meeting(size)

    def one(rank: int) -> Any:
        try:
            return work(ThreadComm(rank, meeting))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))
