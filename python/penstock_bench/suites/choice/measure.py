"""The suite `choice`: is the chosen path the best one? Each request size, direction and state of the page cache is a
cell; in each, path "auto" with a machine profile made in the same run stands beside every path asked for by name.

Rounds go over all cells, and within a cell over its ways in random order, so that what changes with time hits all of
them alike. The more visits, the nearer to its cell's best a path must be to be visited again: the time goes to what is
hard to tell apart. Rules that others use are judged from the same samples: a fixed size
from which the direct path is taken, and one path for everything. KvikIO at its defaults is timed from Python, and so is
"auto, Python", to be compared with it.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock import Context, Error, parse_bytes, path_names
from penstock._api import Buffer, File
from penstock._text import bytes_text
from penstock.calibration.profile import Calibration, profile_text
from penstock.calibration.stage import HOPEFUL, HOPEFUL_LARGE, Cell, Mover, Sample, Stage, group, hopeful, move
from penstock.calibration.workspace import NotPossible, Workspace
from penstock_bench import _measure
from penstock_bench.engine.results import Results, Stopwatch
from penstock_bench.engine.run import Run

CellKey = tuple[str, bool, int]  # direction, cached, bytes
AUTO = "auto"
PLANS = 2000  # timed for the cost of choosing
HOPELESS = 2.0  # times the best of a cell: a path is visited in no larger cell of the state
LARGE_HOPELESS = 1.35  # the same for the largest requests, of which a visit takes seconds
SMALL_SHARE = 0.5  # of the time, for all others
FAR = 4  # times the size from which on that holds
FAR_BYTES = 16 << 20  # and from this size on: smaller requests are another matter
ENOUGH = 5  # visits of a peer, and of a choice that nothing is near
LARGE_BYTES, LARGE_ENOUGH = 1 << 30, 7  # from this size on; so many visits of each path
LARGE_PEERS = 1
SPAN_BYTES = 512 << 20  # of the files, that smaller requests use: to make more of them hot or cold takes longer


@dataclass(frozen=True)
class ChoiceWay:
    """How requests of a cell are moved: a path, by compiled code, by Python, or by a peer."""

    name: str
    path: str
    mover: Mover = move


def run_suite(run: Run) -> None:
    sizes = [parse_bytes(str(size)) for size in run.settings["request_bytes"]]
    sizes = [size for size in sizes if size <= run.bytes]
    with Context(run.context.device["name"], profile=_profile(run)) as context:
        profiled = replace(run, context=context, workspace=_moved(run.workspace, context))
        _cost_of_choosing(profiled, sizes)
        _rounds(profiled, sizes)


def _profile(run: Run) -> Path:
    """Beside the files; the results hold its text. A run that is continued goes on with the one it began with."""
    known = [row["text"] for row in run.results.rows if row["kind"] == "profile"]
    path = run.workspace.directory / "profile.csv"
    path.write_text(known[0] if known else _calibrate(run))
    return path


def _calibrate(run: Run) -> str:
    def tell(gone: int, allowed: int, what: str) -> None:
        run.step(gone, allowed, f"calibrate: {what}")

    with Context(run.context.device["name"], profile=None) as context:
        place = _moved(run.workspace, context)
        found = Calibration(context, place, float(run.settings["calibrate_seconds"]), tell).run()
        text = profile_text(context, run.workspace.directory, found)
    run.results.add("profile", text=text, cells=len(found.samples))
    return text


def _moved(workspace: Workspace, context: Context) -> Workspace:
    """The same files for another context."""
    other = Workspace(context, workspace.directory.parent, workspace.file_bytes)
    other.directory = workspace.directory
    return other


def _cost_of_choosing(run: Run, sizes: list[int]) -> None:
    """Mean seconds of a plan, with the profile and without, residency asked as for a real request."""
    source = run.workspace.source
    for size in sizes:
        asked = {"direction": "read", "offset_bytes": 0, "bytes": size, "kind": "device"}
        for name, profile in (("profile", "own"), ("rules", None)):
            if run.results.has("choosing", by=name, request_bytes=size):
                continue
            if profile is None:
                with Context(run.context.device["name"], profile=None) as plain, plain.open(source) as file:
                    seconds = _measure.plan_seconds(file._raw, asked, PLANS)
            else:
                with run.context.open(source) as file:
                    _measure.plan_seconds(file._raw, asked, 1)  # the first may open cuFile
                    seconds = _measure.plan_seconds(file._raw, asked, PLANS)
            run.results.add("choosing", by=name, request_bytes=size, plans=PLANS, seconds=seconds)


def _ways(run: Run) -> list[ChoiceWay]:
    ways = [*(ChoiceWay(path, path) for path in path_names()), ChoiceWay("auto, Python", "auto", _by_python)]
    return ways + [ChoiceWay("KvikIO default", "auto", _KvikIO(run.emulated))] * ("kvikio" in run.peers)


def _cells(sizes: list[int], ways: list[ChoiceWay]) -> Iterator[tuple[Cell, ChoiceWay]]:
    for cached in (True, False):
        for direction in ("read", "write"):
            for size in sizes:
                for way in ways:
                    if not (direction == "write" and way.path == "mmap"):
                        yield Cell(direction, cached, size, way.path), way


def _rounds(run: Run, sizes: list[int]) -> None:
    """Small requests first: they find what larger ones need not try."""
    began = time.monotonic()
    field = Field(run.definition.repeats)
    ways = _ways(run)
    for cell, way in _cells(sizes, ways):
        field.recall(cell, way, run.results.rows)
    small, large = ([size for size in sizes if (size >= LARGE_BYTES) == of_large] for of_large in (False, True))
    for chosen, share in ((small, SMALL_SHARE if large else 1.0), (large, 1.0)):
        if not chosen:
            continue
        span = SPAN_BYTES if chosen is small and run.bytes >= SPAN_BYTES else 0
        stage = Stage(run.context, run.workspace, chosen[-1], span)
        visits = Visits(run, stage, field, began + share * run.definition.seconds)
        visits.make(list(_cells(chosen, ways)))


@dataclass
class Visits:
    """Rounds over some cells until none has anything that is worth another visit, or the time is gone."""

    run: Run
    stage: Stage
    field: Field
    deadline: float  # of time.monotonic

    def make(self, pairs: list[tuple[Cell, ChoiceWay]]) -> None:
        made, began = 0, time.monotonic()
        for _ in range(self.run.definition.repeats):
            wanted = [pair for pair in pairs if self.field.wanted(*pair)]
            self.stage.random.shuffle(wanted)
            for cell, way in sorted(wanted, key=lambda pair: group(pair[0])):
                gone, allowed = time.monotonic() - began, self.deadline - began
                if gone > allowed:
                    cause = f"time limit of {allowed:.0f} s"
                    self.run.results.add("stopped", cause=cause, done=made, planned=made + len(wanted))
                    return
                self.run.step(int(gone), int(allowed), _name(cell, way))
                if self.field.wanted(cell, way):
                    made += 1
                    visit = self.field.visits(cell, way)
                    self.field.saw(cell, way, _visit(self.run.results, self.stage, (cell, way), visit))


class Field:
    """What was seen of each way so far, to know what is missing, hopeless or decided."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._missing: set[tuple[str, bool, str]] = set()
        self._seen: dict[CellKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._taken: dict[CellKey, str] = {}

    def saw(self, cell: Cell, way: ChoiceWay, sample: Sample | None) -> None:
        """None: it cannot be measured here."""
        if sample is None:
            self._missing.add((cell.direction, cell.cached, way.name))
            return
        key = _key(cell)
        self._seen[key][way.name].append(sample.seconds)
        if way.name == AUTO:
            self._taken[key] = sample.took

    def recall(self, cell: Cell, way: ChoiceWay, rows: list[dict[str, Any]]) -> None:
        """What an earlier run, which this one continues, saw."""
        for row in rows:
            if row["kind"] == "missing" and row["name"] == _missing_name(cell, way):
                self.saw(cell, way, None)
            if row["kind"] == "choice" and row["name"] == _name(cell, way):
                self.saw(cell, way, Sample(row["seconds"], row["synced_seconds"], row["requests"], row["took"]))

    def visits(self, cell: Cell, way: ChoiceWay) -> int:
        return len(self._seen[_key(cell)][way.name])

    def wanted(self, cell: Cell, way: ChoiceWay) -> bool:
        if (cell.direction, cell.cached, way.name) in self._missing:
            return False
        key = _key(cell)
        visits = self.visits(cell, way)
        if visits == 0:
            return way.name == AUTO or not self._hopeless_before(cell, way)
        if visits >= (LARGE_ENOUGH if cell.bytes >= LARGE_BYTES else self._repeats):
            return False
        if way.path == AUTO and way.name != AUTO:
            return visits < (LARGE_PEERS if cell.bytes >= LARGE_BYTES else ENOUGH)
        if way.name in (AUTO, self._taken.get(key)):
            return visits < ENOUGH or self._contested(key)
        return self._near(key, way.name)

    def _medians(self, key: CellKey) -> dict[str, float]:
        """Medians of the paths asked for by name."""
        return {
            name: statistics.median(seen) for name, seen in self._seen[key].items() if seen and name in path_names()[1:]
        }

    def _near(self, key: CellKey, name: str) -> bool:
        medians = self._medians(key)
        margins = HOPEFUL_LARGE if key[2] >= LARGE_BYTES else HOPEFUL
        return hopeful(self._seen[key][name], min(medians.values()), margins)

    def _contested(self, key: CellKey) -> bool:
        """Whether a path other than the chosen one may be the best."""
        return any(name != self._taken.get(key) and self._near(key, name) for name in self._medians(key))

    def _hopeless_before(self, cell: Cell, way: ChoiceWay) -> bool:
        """In the largest cell of the state that is much smaller."""
        state = (cell.direction, cell.cached)
        smaller = [key[2] for key in self._seen if key[:2] == state and FAR_BYTES <= key[2] <= cell.bytes // FAR]
        medians = self._medians((*state, max(smaller))) if smaller else {}
        behind = LARGE_HOPELESS if cell.bytes >= LARGE_BYTES else HOPELESS
        return way.name in medians and medians[way.name] > behind * min(medians.values())


def _key(cell: Cell) -> CellKey:
    return cell.direction, cell.cached, cell.bytes


def _visit(results: Results, stage: Stage, visited: tuple[Cell, ChoiceWay], visit: int) -> Sample | None:
    """Adds a row and returns what it found; or adds one that says why this cannot be measured here."""
    cell, way = visited
    try:
        with Stopwatch() as watch:
            sample = stage.measure(cell, way.mover)
    except NotPossible as reason:
        results.add("missing", name=_missing_name(cell, way), cause=str(reason))
        return None
    results.add(
        "choice",
        name=_name(cell, way),
        round=visit,
        way=way.name,
        direction=cell.direction,
        cache=_state(cell),
        request_bytes=cell.bytes,
        requests=sample.requests,
        bytes=cell.bytes,
        seconds=sample.seconds,
        synced_seconds=sample.synced_seconds,
        bytes_per_second=cell.bytes / sample.seconds,
        took=sample.took,
        **watch.cpu(),
    )
    return sample


def _name(cell: Cell, way: ChoiceWay) -> str:
    return f"{cell.direction} {_state(cell)} {bytes_text(cell.bytes)} {way.name}"


def _missing_name(cell: Cell, way: ChoiceWay) -> str:
    return f"{cell.direction} {_state(cell)} {way.name}"


def _state(cell: Cell) -> str:
    return "hot" if cell.cached else "cold"


def _by_python(file: File, memory: Buffer, cell: Cell, offsets: list[int]) -> tuple[list[float], str]:
    """As Penstock's Python users call it."""
    seconds, took = [], set()
    for turn, offset in enumerate(offsets):
        part = memory.slice(turn * cell.bytes, cell.bytes)
        began = time.perf_counter()
        outcome = file.write(part, offset) if cell.writes else file.read(part, offset)
        seconds.append(time.perf_counter() - began)
        took.add(outcome.path)
    return seconds, took.pop() if len(took) == 1 else "mixed"


class _KvikIO:
    """KvikIO as installed, its settings untouched."""

    def __init__(self, emulated: bool) -> None:
        self._emulated = emulated

    def __call__(self, file: File, memory: Buffer, cell: Cell, offsets: list[int]) -> tuple[list[float], str]:
        if self._emulated:
            raise NotPossible("KvikIO needs a GPU")
        if find_spec("kvikio") is None:
            raise NotPossible("KvikIO is not installed")
        import kvikio

        seconds = []
        try:
            with kvikio.CuFile(file.name, "r+" if cell.writes else "r") as other:
                for turn, offset in enumerate(offsets):
                    part = memory.slice(turn * cell.bytes, cell.bytes)
                    move = other.pwrite if cell.writes else other.pread
                    began = time.perf_counter()
                    moved = move(part, cell.bytes, offset).get()
                    seconds.append(time.perf_counter() - began)
                    if moved != cell.bytes:
                        raise Error(operation=cell.direction, file=file.name, cause=f"KvikIO moved {moved} bytes")
        except (RuntimeError, OSError, ValueError) as failure:
            raise NotPossible(f"KvikIO failed: {failure}") from failure
        return seconds, "KvikIO"
