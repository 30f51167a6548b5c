"""The files of the processes: made before anything is timed, made cold, and compared byte by byte after a write.

Element i of process r is ((seed * 1024 + r) << 27) + i, as programs/array/main.c has it. What must stay true: a write
has a seed that no write before it had, so that no byte that was there passes for one that was written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import Context
from penstock.calibration.stage import wrong_bytes
from penstock.calibration.workspace import make_cold
from penstock_bench.suites.per_process.cases import Case

if TYPE_CHECKING:
    import numpy as np

PIECE = 1 << 20  # elements
SEEDS = 1 << 16  # all elements stay below 2^53


class RankFiles:
    """The files of one group of cases at a time, in a folder."""

    def __init__(self, context: Context, folder: Path) -> None:
        self.context = context
        self.folder = folder
        self.seed = 0  # of what the files hold; 0: not known
        self._group = ""

    def make(self, case: Case, seed: int) -> None:
        """Makes the files of a case on stable storage, unless they are there."""
        if self.seed and self._group == case.group:
            for path in self.paths(case):
                _synced(path)
            return
        self.seed = 0
        self.remove()
        for rank, path in enumerate(self.paths(case)):
            with path.open("wb") as stream:
                for start in range(0, case.file_bytes // 8, PIECE):
                    expected(seed, rank, start, min(PIECE, case.file_bytes // 8 - start)).tofile(stream)
            _synced(path)
        self.seed, self._group = seed, case.group

    def paths(self, case: Case) -> list[Path]:
        return [self.folder / f"{rank}.bin" for rank in range(case.processes)]

    def remove(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()

    def cold(self, case: Case) -> None:
        """Drops the files from the page cache and proves it. Raises NotPossible."""
        self.drop(self.paths(case), case.file_bytes)

    def drop(self, paths: list[Path], bytes: int) -> None:
        """Drops other files so, each of as many bytes."""
        for path in paths:
            _synced(path)
            with self.context.open(path) as file:
                make_cold(file, bytes)

    def check(self, case: Case) -> None:
        """Raises Error at the first byte that is not what the programs were to write."""
        import numpy as np

        for rank, path in enumerate(self.paths(case)):
            elements = case.file_bytes // 8
            if path.stat().st_size != case.file_bytes:
                raise wrong_bytes(path, path.stat().st_size, abs(case.file_bytes - path.stat().st_size), " (its size)")
            for start in range(0, elements, PIECE):
                found = np.fromfile(path, np.float64, PIECE, offset=start * 8)
                wrong = np.flatnonzero(found != expected(self.seed, rank, start, len(found)))
                if wrong.size:
                    raise wrong_bytes(path, (start + int(wrong[0])) * 8, int(wrong.size) * 8)


def expected(seed: int, rank: int, start: int, count: int) -> np.ndarray:
    import numpy as np

    first = ((seed * 1024 + rank) << 27) + start
    return np.arange(first, first + count, dtype=np.int64).astype(np.float64)


def _synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
