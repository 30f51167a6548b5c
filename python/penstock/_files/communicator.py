"""Communicator: what files that several processes write together ask of a communicator of mpi4py."""

from __future__ import annotations

from typing import Any, Protocol


class Communicator(Protocol):
    """The members of mpi4py's communicators of the same names: those with small letters, which take any object."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def allgather(self, sendobj: Any) -> list[Any]: ...
    def alltoall(self, sendobj: Any) -> list[Any]: ...
    def bcast(self, obj: Any, root: int = 0) -> Any: ...
