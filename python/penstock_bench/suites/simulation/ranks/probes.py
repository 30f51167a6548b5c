"""Builds the programs, runs their ranks, and compares each value that they wrote.

What must stay true: all ways write a new file into the page cache, with the same layout and values, and `seconds` end
when all of it is there; an fsync is timed by itself after that.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Error, get_include, get_library_dir, open as open_file
from penstock.calibration.workspace import Scratch
from penstock.cli.options import size
from penstock_bench.engine.rounds import Absent, Probe, Sample
from penstock_bench.engine.run import Run
from penstock_bench.suites import mpi_programs
from penstock_bench.suites.simulation.ranks.cases import OURS, RanksCase, RestartCase, SharedFile, cases, restarts

if TYPE_CHECKING:
    import numpy as np

SOURCES = Path(__file__).resolve().parent / "programs"
PROGRAMS = mpi_programs.BuiltPrograms("bench simulation")
LIMIT_S = 120.0  # of one run of a program
WRAPPER = "h5pcc"  # of parallel HDF5


@dataclass(frozen=True)
class RanksBench:
    """`absent`: why programs by Penstock, and by parallel HDF5, cannot be run; empty where they can."""

    run: Run
    mpirun: str
    folder: Path
    absent: dict[bool, str]

    def program(self, way: str) -> Path:
        return self.folder / ("shared_penstock" if way in OURS else "shared_hdf5")

    def measure(self, case: RanksCase, _round: int = 0) -> Sample:
        if cause := self.absent[case.way in OURS]:
            raise Absent(cause)
        path = self.run.workspace.directory / "ranks.hdf5"
        command = [self.mpirun, "-n", str(case.ranks), str(self.program(case.way)), *case.words(str(path))]
        try:
            text = PROGRAMS.output(command, LIMIT_S, self.folder)
            begun, seconds, fsync_s = parsed(text, 3)
            check(path, case.shared)
        finally:
            path.unlink(missing_ok=True)
        shared = case.shared
        moved = {"bytes": shared.bytes, "seconds": seconds, "steps": max(1, shared.steps)}
        told = {"part": "ranks", "file_kind": shared.file, "by": case.way, "ranks": case.ranks, "fsync_s": fsync_s}
        layout = {"layout_ms": begun * 1e3} if shared.steps or case.way not in OURS else {}
        return moved | {"step_bytes": shared.bytes // max(1, shared.steps)} | told | layout

    def restart(self, case: RestartCase, _round: int = 0) -> Sample:
        """The readers compare each value, and end the run where one differs."""
        if cause := self.absent[True]:
            raise Absent(cause)
        place = self.run.workspace.directory / "restart"
        place.mkdir()
        try:
            write_s, seconds = (self._seconds(case, verb, place / "run") for verb in ("write", "read"))
        finally:
            shutil.rmtree(place)
        counts = {"steps": 1, "step_bytes": case.bytes, "ranks": case.readers, "writers": case.writers}
        return {"part": "restarts", "bytes": case.bytes, "seconds": seconds, "write_s": write_s, **counts}

    def _seconds(self, case: RestartCase, verb: str, path: Path) -> float:
        ranks = case.writers if verb == "write" else case.readers
        command = [self.mpirun, "-n", str(ranks), str(self.folder / "restart"), *case.words(verb, str(path))]
        return parsed(PROGRAMS.output(command, LIMIT_S, self.folder), 1)[0]


def probes(run: Run) -> Iterator[Probe]:
    bytes = size("bench simulation", "shared_bytes", str(run.settings["shared_bytes"]))
    built = run.stack.enter_context(Scratch(Path(tempfile.gettempdir()), ("bench simulation", "TMPDIR")))
    mpirun, cause = mpi_programs.starter()
    absent = {True: cause, False: cause}
    if mpirun:
        absent = {True: _built_penstock(built.directory), False: _built_hdf5(built.directory)}
    bench = RanksBench(run, mpirun, built.directory, absent)
    for case in cases(run.settings, bytes):
        yield Probe(case.name, partial(bench.measure, case))
    for one in restarts(run.settings, bytes):
        yield Probe(one.name, partial(bench.restart, one))


def parsed(text: str, count: int) -> list[float]:
    """So many numbers that a program told. Raises Error where it told other things."""
    try:
        found = [float(word) for word in text.split()]
    except ValueError:
        found = []
    if len(found) != count:
        raise PROGRAMS.failed(f"it told what is not understood: {text[:200]!r}")
    return found


def check(path: Path, shared: SharedFile) -> None:
    """Raises Error at the first variable that is not what the ranks had."""
    import numpy as np

    grid = (np.arange(np.prod(shared.shape)) & 0xFFFFF).astype(np.float32).reshape(shared.shape)
    with open_file(path, device="host") as file:
        for variable in range(shared.variables):
            stored = file[f"V{variable:03}"]
            for step in range(max(1, shared.steps)):
                found = stored[step] if shared.steps else stored.read().to_numpy()
                tag = np.float32((variable + 3 * step) % 16 << 20)
                _compare(path, f"V{variable:03} of step {step}", found, grid + tag)


def _compare(path: Path, what: str, found: Any, expected: np.ndarray) -> None:
    import numpy as np

    values = np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)
    if values.dtype != expected.dtype or not np.array_equal(values, expected):
        cause = f"{what} is not what the ranks had"
        raise Error(operation="bench simulation", file=str(path), cause=cause, advice="report it: the file is wrong")


def _built_penstock(folder: Path) -> str:
    """Why not; empty where it is built. So of the other."""
    try:
        library = get_library_dir()
        flags = [f"-I{get_include()}", f"-L{library}", f"-Wl,-rpath,{library}", "-lpenstock"]
        for program, sources in {"shared_penstock": ("main.c", "penstock.c"), "restart": ("restart.c",)}.items():
            paths = [str(SOURCES / one) for one in (*sources, "grid.c")]
            PROGRAMS.compile(["mpicc", "-O2", *paths, *flags, "-o", str(folder / program)])
    except Error as error:
        return error.cause
    return ""


def _built_hdf5(folder: Path) -> str:
    wrapper = shutil.which(WRAPPER)
    if wrapper is None:
        return f"there is no {WRAPPER}, the compiler of parallel HDF5"
    objects = {name: str(folder / f"{name}.o") for name in ("main", "hdf5", "grid")}
    try:
        for name, made in objects.items():
            PROGRAMS.compile([wrapper, "-O2", "-c", str(SOURCES / f"{name}.c"), "-o", made])
        PROGRAMS.compile([wrapper, *objects.values(), "-o", str(folder / "shared_hdf5")])
    except Error as error:
        return error.cause
    return ""
