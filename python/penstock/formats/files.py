"""Files of a format as the engine opens them: each once, as long as there is room.

A dataset may lie in ten thousand files (Zarr), so only those of the last batches stay open. What must stay true: a file
in use is not closed under a transfer (the transfer holds it); `close` of files that were written raises what the
system only then reports.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from penstock import _core

KEPT_OPEN = 64


class Files:
    """Open files of a context, by name. Safe for threads."""

    def __init__(self, context: _core.Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, bool], _core.File] = OrderedDict()

    def lease(self, names: Sequence[str], writes: bool) -> list[_core.File]:
        """The files, in the order of the names. Raises Error of the first that cannot be opened."""
        with self._lock:
            leased = [self._file(name, writes) for name in names]
            self._trim(KEPT_OPEN)
        return leased

    def _file(self, name: str, writes: bool) -> _core.File:
        file = self._open.get((name, writes))
        if file is None:
            file = _core.open(self._context, name, mode="read_write" if writes else "read")
            self._open[(name, writes)] = file
        self._open.move_to_end((name, writes))
        return file

    def _trim(self, kept: int) -> None:
        while len(self._open) > kept:
            self._forget(next(iter(self._open)))

    def _forget(self, key: tuple[str, bool]) -> None:
        file = self._open.pop(key)
        if key[1]:
            file.close()  # waits for transfers on it, and raises late errors of writes

    def close(self) -> None:
        """Waits for transfers; raises Error of late writes."""
        with self._lock:
            self._trim(0)

    def forget(self) -> None:
        """Lets go of all without a word."""
        with self._lock:
            self._open.clear()
