"""Calibration: the cost of each path on this machine and file system, within a time limit, as a machine profile.

Rounds over all kinds of requests; within a round the paths of one kind follow each other in random order, so that what
changes with time hits all of them alike. What is clearly slower than the best of its kind is visited no more, and the
more visits there were, the less slower that is: the time goes to what a choice depends on. When it is up, what was
measured is the profile. Everything measured is verified (see stage.py).
"""

from __future__ import annotations

import datetime
import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import truediv
from pathlib import Path

from penstock import Context, Error, _core, path_names
from penstock.calibration.stage import Cell, Sample, Stage, group, hopeful
from penstock.calibration.workspace import NotPossible, Workspace

KIB, MIB = 1 << 10, 1 << 20
SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
SPAN_BYTES = 512 * MIB  # of the files that are used: larger requests keep the rate of the largest
OTHER_SIZES = (64 * KIB, 4 * MIB, 64 * MIB)  # of other memory and of unaligned requests
OTHER_MEMORY = (("pinned", "cpu"), ("managed", "gpu"), ("managed", "cpu"), ("system", "cpu"), ("system", "gpu"))
SHAPES = ((2, 0), (4, 0), (8, 0), (16, 0), (0, 256 * KIB), (0, MIB), (0, 4 * MIB))  # workers, chunk_bytes
SHAPED_BYTES = 16 * MIB  # from here on a shape of its own is tried
MAIN_SHARE = 0.8  # of the time, for device memory and aligned requests
SHAPE_SHARE = 0.9  # until which the shapes have theirs
ENOUGH = 15  # visits of one cell
FAR, FAR_BYTES = 4, 4 * MIB  # who is FAR_BEHIND at a size from there on is not tried at FAR times that size
FAR_BEHIND = 2.0  # times the best

_PLAIN = {"workers": 0, "depth": 0, "chunk_bytes": 0}

Tell = Callable[[int, int, str], None]  # (seconds gone, seconds allowed, what)


@dataclass
class Found:
    """What was measured, and what could not be, with the cause."""

    samples: dict[Cell, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[str, str] = field(default_factory=dict)

    def seconds(self, cell: Cell) -> float:
        """What the cell takes beside its rivals of all rounds. One that was dropped early is compared with the rival
        that stayed longest in the rounds that both were in, for the machine may have been faster or slower then."""
        own = [sample.seconds for sample in self.samples[cell]]
        stayed = max(self._rivals(cell), key=lambda rival: len(self.samples[rival]))
        other = [sample.seconds for sample in self.samples[stayed]]
        if len(own) == len(other):
            return statistics.median(own)
        return statistics.median(map(truediv, own, other)) * statistics.median(other)

    def synced_seconds(self, cell: Cell) -> float:
        return statistics.median(sample.synced_seconds for sample in self.samples[cell])

    def best(self, like: Cell) -> float:
        """Seconds of the fastest path for such requests, of any shape; infinity when none was measured."""
        rivals = (cell for cell in self.samples if replace(cell, **_PLAIN, path=like.path) == replace(like, **_PLAIN))
        return min(map(self.seconds, rivals), default=float("inf"))

    def _rivals(self, cell: Cell) -> list[Cell]:
        """Those visited in the same rounds: shapes have rounds of their own, each path and size there."""
        rivals = (replace(cell, path=path) for path in path_names()) if _plain(cell) else self._shapes_of(cell)
        return [rival for rival in rivals if self.samples.get(rival)]

    def _shapes_of(self, cell: Cell) -> Iterator[Cell]:
        return (replace(cell, workers=workers, chunk_bytes=chunk_bytes) for workers, chunk_bytes in SHAPES)


class Calibration:
    """One calibration under way. `seconds` bound it but for the making of the files, one last visit, and what comes
    before the first path that can be measured."""

    def __init__(self, context: Context, workspace: Workspace, seconds: float, tell: Tell) -> None:
        self.found = Found()
        self._context = context
        self._sizes = [size for size in SIZES if size <= workspace.file_bytes]
        self._stage = Stage(context, workspace, self._sizes[-1], min(SPAN_BYTES, workspace.file_bytes))
        self._seconds, self._tell = seconds, tell

    def run(self) -> Found:
        self._began = time.monotonic()
        self._rounds(list(self._main()), MAIN_SHARE)
        self._rounds(list(self._shaped()), SHAPE_SHARE)
        self._rounds(list(self._others()), 1.0)
        return self.found

    def _main(self) -> Iterator[Cell]:
        paths = [name for name in path_names() if name != "auto"]
        for direction, cached, bytes, path in itertools.product(("read", "write"), (True, False), self._sizes, paths):
            if not (direction == "write" and path == "mmap"):  # never chosen
                yield Cell(direction, cached, bytes, path)

    def _shaped(self) -> Iterator[Cell]:
        """Other shapes of each state's best path, at its largest sizes."""
        for direction, cached in itertools.product(("read", "write"), (True, False)):
            measured = [c for c in self.found.samples if (c.direction, c.cached) == (direction, cached)]
            for bytes in sorted({cell.bytes for cell in measured if cell.bytes >= SHAPED_BYTES}):
                best = min((c for c in measured if c.bytes == bytes), key=self.found.seconds)
                if best.path.startswith("gds"):
                    continue
                for workers, chunk_bytes in SHAPES:
                    yield replace(best, workers=workers, chunk_bytes=chunk_bytes)

    def _others(self) -> Iterator[Cell]:
        """Unaligned requests, and memory of other kinds, by every path that was measured."""
        sizes = [size for size in OTHER_SIZES if size < self._stage.workspace.file_bytes]
        plain = list(dict.fromkeys(replace(cell, bytes=0) for cell in self.found.samples if not cell.workers))
        plain = [cell for cell in plain if not cell.chunk_bytes and cell.memory == "device"]
        for bytes, cell in itertools.product(sizes, plain):
            yield replace(cell, bytes=bytes, aligned=False)
        for (memory, touch), bytes, cell in itertools.product(OTHER_MEMORY, sizes, plain):
            if not cell.path.startswith("gds"):
                yield replace(cell, bytes=bytes, memory=memory, first_touch=touch)

    def _rounds(self, cells: list[Cell], share: float) -> None:
        """Visits the cells round by round until each was visited often enough or the share of the time is gone. The
        first round has all the time there is: a path that was not measured cannot be chosen."""
        for turn in itertools.count():
            if not cells:
                return
            self._stage.random.shuffle(cells)
            for cell in sorted(cells, key=group):
                if not turn and self._hopeless_before(cell):
                    continue
                gone = time.monotonic() - self._began
                if gone > self._seconds * (share if turn else 1.0) and self.found.samples:
                    return
                self._tell(int(gone), int(self._seconds), f"{cell.direction} {cell.path} {_state(cell)}")
                self._visit(cell)
            cells = [cell for cell in cells if self._wanted(cell)]

    def _visit(self, cell: Cell) -> None:
        try:
            self.found.samples[cell].append(self._stage.measure(cell))
        except NotPossible as reason:
            self.found.samples.pop(cell, None)
            self.found.missing.setdefault(f"{cell.direction} {cell.path} {cell.memory} {_state(cell)}", str(reason))

    def _hopeless_before(self, cell: Cell) -> bool:
        """At the largest size of its kind that is much smaller."""
        smaller = [replace(cell, bytes=size) for size in self._sizes if FAR_BYTES <= size <= cell.bytes // FAR]
        known = [one for one in smaller if one in self.found.samples]
        if not known or not _plain(cell):
            return False
        return self.found.seconds(known[-1]) > FAR_BEHIND * self.found.best(known[-1])

    def _wanted(self, cell: Cell) -> bool:
        visits = len(self.found.samples.get(cell, ()))
        if visits == 0 or visits >= ENOUGH:
            return False
        return hopeful([sample.seconds for sample in self.found.samples[cell]], self.found.best(cell))


def _plain(cell: Cell) -> bool:
    return replace(cell, **_PLAIN) == cell


def _state(cell: Cell) -> str:
    return "hot" if cell.cached else "cold"


def profile_text(context: Context, directory: Path, found: Found) -> str:
    """The profile, as the core reads it. Error (timed_out) when the time was up before anything was measured: a profile
    of nothing would be refused by every Context that finds it."""
    if not found.samples:
        cause, advice = "the time was up before any path was measured", "give it more seconds"
        raise Error(code="timed_out", operation="calibrate", file=str(directory), cause=cause, advice=advice)
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    head = _core.profile_head(context._raw, directory, today).splitlines()
    notes = [f"# not measured: {what}: {cause}" for what, cause in sorted(found.missing.items())]
    rows = [_row(cell, found) for cell in sorted(found.samples)]
    return "\n".join([*head[:-1], *notes, head[-1], *rows]) + "\n"


def _row(cell: Cell, found: Found) -> str:
    words = {True: "yes", False: "no"}
    place = (cell.direction, words[cell.cached], cell.path, cell.memory, cell.first_touch, words[cell.aligned])
    shape = (cell.workers, cell.depth, cell.chunk_bytes, cell.bytes)
    times = (f"{found.seconds(cell):.6g}", f"{found.synced_seconds(cell):.6g}", len(found.samples[cell]))
    return ",".join(map(str, (*place, *shape, *times)))
