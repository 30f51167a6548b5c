"""What is measured once a round: which file, by how many ranks, and by what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

PENSTOCK, SLOTLESS = "Penstock", "Penstock, no slots"
INDEPENDENT, COLLECTIVE = "parallel HDF5", "parallel HDF5, collective"
OURS = (PENSTOCK, SLOTLESS)
WAYS = (*OURS, INDEPENDENT, COLLECTIVE)
HISTORY, SNAPSHOT, SMALL = "history", "snapshot", "100 small variables"
FILES = (HISTORY, SNAPSHOT, SMALL)
VARIABLES, STEPS, LEVELS = 8, 8, 16
SMALL_VARIABLES, SMALL_SIDE = 100, 32  # of 4 levels: 16 KiB each
ITEM_BYTES = 4


@dataclass(frozen=True)
class SharedFile:
    """`steps` 0: a snapshot. `shape`: of a variable, in z, y and x."""

    file: str
    variables: int
    steps: int
    shape: tuple[int, int, int]

    @property
    def bytes(self) -> int:
        return ITEM_BYTES * self.variables * max(1, self.steps) * math.prod(self.shape)


@dataclass(frozen=True)
class RestartCase:
    """So many ranks write it, and so many read it, which divide z."""

    shape: tuple[int, int, int]
    writers: int
    readers: int

    @property
    def bytes(self) -> int:
        return ITEM_BYTES * VARIABLES * math.prod(self.shape)

    @property
    def name(self) -> str:
        return f"restart of {self.writers} ranks, read by {self.readers}"

    def words(self, verb: str, path: str) -> list[str]:
        """Arguments of the program."""
        ranks = self.writers if verb == "write" else self.readers
        return [verb, path, *map(str, (VARIABLES, ranks, *self.shape))]


@dataclass(frozen=True)
class RanksCase:
    """`ranks` divide y of a history, and z of a snapshot."""

    shared: SharedFile
    ranks: int
    way: str

    @property
    def name(self) -> str:
        return name_of(self.shared.file, self.ranks, self.way)

    def words(self, path: str) -> list[str]:
        """Arguments of the program."""
        one = self.shared
        numbers = (one.variables, one.steps, int(self.way in (SLOTLESS, COLLECTIVE)), self.ranks, *one.shape)
        return [path, *map(str, numbers)]


def name_of(file: str, ranks: int, way: str) -> str:
    return f"{file} of {ranks} {'ranks' if ranks > 1 else 'rank'}, {way}"


def files(bytes: int) -> list[SharedFile]:
    """A snapshot has all of the bytes at once, a history in its steps."""
    side = max(16, round(math.sqrt(bytes / (ITEM_BYTES * VARIABLES * LEVELS))))
    of_step = max(16, round(side / math.sqrt(STEPS)))
    return [
        SharedFile(HISTORY, VARIABLES, STEPS, (LEVELS, of_step, of_step)),
        SharedFile(SNAPSHOT, VARIABLES, 0, (LEVELS, side, side)),
        SharedFile(SMALL, SMALL_VARIABLES, 1, (4, SMALL_SIDE, SMALL_SIDE)),
    ]


def restarts(settings: dict[str, Any], bytes: int) -> list[RestartCase]:
    shape = files(bytes)[1].shape
    return [RestartCase(shape, int(writers), int(readers)) for writers, readers in settings["restarts"]]


def cases(settings: dict[str, Any], bytes: int) -> list[RanksCase]:
    """Collective calls for the most ranks alone: where ranks have cores of their own, they differ little. Slots are of
    histories, and the small one is there for its layout."""
    counts = sorted(int(one) for one in settings["ranks"])
    return [
        RanksCase(shared, ranks, way)
        for shared in files(bytes)
        for ranks in (counts if shared.file != SMALL else sorted({counts[0], counts[-1]}))
        for way in WAYS
        if (way != COLLECTIVE or ranks == counts[-1]) and (way != SLOTLESS or shared.file == HISTORY)
    ]
