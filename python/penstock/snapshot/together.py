"""Several processes write one snapshot: what they say to each other, by few collective calls.

What must stay true: where one process fails, all raise an error that names it, and no file gets its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock import _core
from penstock._error import Error
from penstock._files.communicator import Communicator
from penstock._files.open_files import with_room

_T = TypeVar("_T")


def write_together(
    raw: _core.Snapshot, comm: Communicator, fields: list[tuple[str, Any, int, int]], name: str
) -> dict[str, Any]:
    """What write() of the core tells of this process."""
    try:
        return _written(raw, comm, fields, name)
    except BaseException:
        raw.abandon()
        raise


def _written(
    raw: _core.Snapshot, comm: Communicator, fields: list[tuple[str, Any, int, int]], name: str
) -> dict[str, Any]:
    if len(set(_agreed(comm, name, raw.digest)[1])) != 1:
        advice = "add the same datasets and set the same attributes on each"
        raise Error(operation="write snapshot", file=name, cause="the processes define different files", advice=advice)
    _agreed(comm, name, lambda: with_room(lambda: raw.begin(None)) if comm.rank == 0 else None)
    place = comm.bcast(raw.place() if comm.rank == 0 else None, root=0)
    _agreed(comm, name, lambda: with_room(lambda: raw.begin(place or None)) if comm.rank != 0 else None)
    told, _ = _agreed(comm, name, lambda: with_room(lambda: raw.write(fields)))
    _agreed(comm, name, lambda: raw.commit() if comm.rank != 0 else None)
    _agreed(comm, name, lambda: raw.commit() if comm.rank == 0 else None)
    return told


def _agreed(comm: Communicator, name: str, call: Callable[[], _T]) -> tuple[_T, list[Any]]:
    """What the call gave here and on each process. Each raises where one did: its own error, or that of the first."""
    here: Any = None
    own: BaseException | None = None
    try:
        here = call()
    except BaseException as error:  # noqa: BLE001 - raised below, when all have heard of it
        own = error
    failure = "" if own is None else str(own) or type(own).__name__
    told = comm.allgather((None if isinstance(here, dict) else here, failure))
    if own is not None:
        raise own
    for process, (_, failure) in enumerate(told):
        if failure:
            raise Error(operation="write snapshot", file=name, cause=f"process {process}: {failure}")
    return here, [one for one, _ in told]
