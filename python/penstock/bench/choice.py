"""The suite `choice`: is the chosen path the best one? Each request size, direction and state of the page cache is a
cell; in each, path "auto" with a machine profile made in the same run stands beside every path asked for by name.

Rounds are interleaved over all cells and paths. Rules that others use are judged from the same samples: a fixed size
from which the direct path is taken, and one path for everything. KvikIO at its defaults is timed from Python, and so is
"auto, Python", to be compared with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock import Context, Error, _core, parse_bytes, path_names
from penstock._api import Buffer, File
from penstock.bench.calibrate import Calibration, profile_text
from penstock.bench.results import Results, Stopwatch
from penstock.bench.session import Run
from penstock.bench.stage import Cell, Mover, Stage, move
from penstock.bench.workspace import NotPossible, Workspace
from penstock.cli.show import bytes_text

PLANS = 2000  # timed for the cost of choosing
HOPELESS = 2.0  # times the best of a cell: a path is visited once, and in larger cells of the state no more
FAR = 4  # times the size from which on that holds
FAR_BYTES = 16 << 20  # and from this size on: smaller requests are another matter


@dataclass(frozen=True)
class Way:
    """How requests of a cell are moved: a path, by compiled code, by Python, or by a peer."""

    name: str
    path: str
    mover: Mover = move


def run_suite(run: Run) -> None:
    settings = run.suite.settings["choice"]
    sizes = [parse_bytes(str(size)) for size in settings["request_bytes"]]
    sizes = [size for size in sizes if size <= run.suite.file_bytes]
    profile = _calibrate(run, float(settings["calibrate_seconds"]))
    with Context(run.context.device["name"], profile=profile) as context:
        place = _moved(run.workspace, context)
        stage = Stage(context, place, sizes[-1])
        _cost_of_choosing(run.results, context, place, sizes)
        _rounds(run, stage, sizes)


def _calibrate(run: Run, seconds: float) -> Path:
    """A profile made now, beside the files; the results hold its text."""

    def tell(gone: int, allowed: int, what: str) -> None:
        run.step(gone, allowed, f"calibrate: {what}")

    with Context(run.context.device["name"], profile=None) as context:
        place = _moved(run.workspace, context)
        found = Calibration(context, place, seconds, tell).run()
        text = profile_text(context, run.workspace.directory, found)
    path = run.workspace.directory / "profile.csv"
    path.write_text(text)
    run.results.add("profile", text=text, cells=len(found.samples))
    return path


def _moved(workspace: Workspace, context: Context) -> Workspace:
    """The same files for another context."""
    other = Workspace(context, workspace.directory.parent, workspace.file_bytes)
    other.directory = workspace.directory
    return other


def _cost_of_choosing(results: Results, context: Context, place: Workspace, sizes: list[int]) -> None:
    """Mean seconds of a plan, with the profile and without, residency asked as for a real request."""
    for size in sizes:
        asked = {"direction": "read", "offset_bytes": 0, "bytes": size, "kind": "device"}
        for name, profile in (("profile", "own"), ("rules", None)):
            if profile is None:
                with Context(context.device["name"], profile=None) as plain, plain.open(place.source) as file:
                    seconds = _core.plan_seconds(file._raw, asked, PLANS)
            else:
                with context.open(place.source) as file:
                    _core.plan_seconds(file._raw, asked, 1)  # the first may open cuFile
                    seconds = _core.plan_seconds(file._raw, asked, PLANS)
            results.add("choosing", by=name, request_bytes=size, plans=PLANS, seconds=seconds)


def _ways(context: Context, peers: frozenset[str]) -> list[Way]:
    ways = [*(Way(path, path) for path in path_names()), Way("auto, Python", "auto", _by_python)]
    return ways + [Way("KvikIO default", "auto", _KvikIO(context))] * ("kvikio" in peers)


def _cells(sizes: list[int], ways: list[Way]) -> Iterator[tuple[Cell, Way]]:
    for cached in (True, False):
        for direction in ("read", "write"):
            for size in sizes:
                for way in ways:
                    if not (direction == "write" and way.path == "mmap"):
                        yield Cell(direction, cached, size, way.path), way


def _rounds(run: Run, stage: Stage, sizes: list[int]) -> None:
    """Every cell once a round, those with a hot file first and small ones before large ones. What is hopeless in a cell
    is not visited there again; the time goes to what a choice is between."""
    began = time.monotonic()
    cells = list(_cells(sizes, _ways(stage.context, run.peers)))
    field = Field()
    total = len(cells) * run.suite.repeats
    for turn in range(run.suite.repeats):
        stage.random.shuffle(cells)
        for done, (cell, way) in enumerate(sorted(cells, key=lambda pair: (not pair[0].cached, pair[0].bytes))):
            if time.monotonic() - began > run.suite.seconds:
                cause = f"time limit of {run.suite.seconds:g} s"
                run.results.add("stopped", cause=cause, done=turn * len(cells) + done, planned=total)
                return
            run.step(turn * len(cells) + done, total, _name(cell, way))
            if field.wanted(cell, way):
                field.saw(cell, way, _visit(run.results, stage, (cell, way), turn))


class Field:
    """What was seen of each way so far, to know what is missing or hopeless."""

    def __init__(self) -> None:
        self._missing: set[tuple[str, bool, str]] = set()
        self._fastest: dict[tuple[str, bool, int, str], float] = {}

    def saw(self, cell: Cell, way: Way, seconds: float | None) -> None:
        """None: it cannot be measured here."""
        if seconds is None:
            self._missing.add((cell.direction, cell.cached, way.name))
            return
        key = (cell.direction, cell.cached, cell.bytes, way.name)
        self._fastest[key] = min(seconds, self._fastest.get(key, seconds))

    def wanted(self, cell: Cell, way: Way) -> bool:
        if (cell.direction, cell.cached, way.name) in self._missing:
            return False
        if way.name == "auto":
            return True
        smaller = [size for *_, size, _ in self._fastest if size * FAR <= cell.bytes and size >= FAR_BYTES]
        near = max(smaller, default=cell.bytes)
        return not (self._hopeless(cell, cell.bytes, way) or self._hopeless(cell, near, way))

    def _hopeless(self, cell: Cell, size: int, way: Way) -> bool:
        ways = {key[3]: value for key, value in self._fastest.items() if key[:3] == (cell.direction, cell.cached, size)}
        return way.name in ways and ways[way.name] > HOPELESS * min(ways.values())


def _visit(results: Results, stage: Stage, visited: tuple[Cell, Way], turn: int) -> float | None:
    """Adds a row and returns the seconds; or adds one that says why this cannot be measured here."""
    cell, way = visited
    try:
        with Stopwatch() as watch:
            sample = stage.measure(cell, way.mover)
    except NotPossible as reason:
        name = f"{cell.direction} {_state(cell)} {way.name}"
        results.add("missing", name=name, cause=str(reason))
        return None
    results.add(
        "choice",
        name=_name(cell, way),
        round=turn,
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
        cpu_user_s=watch.cpu_user_s,
        cpu_system_s=watch.cpu_system_s,
    )
    return sample.seconds


def _name(cell: Cell, way: Way) -> str:
    return f"{cell.direction} {_state(cell)} {bytes_text(cell.bytes)} {way.name}"


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

    def __init__(self, context: Context) -> None:
        self._emulated = bool(context.device["emulated"])

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
