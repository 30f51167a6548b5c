"""The suite `per-process`: what the benchmark of 2019 measured, and what it left out.

As published: open and close are not timed, nothing is made durable, the page cache is as the trial before left it.
Otherwise reads begin with files that are proved cold, where the file system lets go of them, and the fsync of a write
is timed by itself. In both the bytes are checked: those that were read by the programs, those that were written here.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

from penstock import Error
from penstock._files.free_memory import available_bytes
from penstock._text import bytes_text
from penstock.calibration.stage import wrong_bytes
from penstock.calibration.workspace import NotPossible, Scratch
from penstock.cli.run import surroundings
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.engine.run import Run
from penstock_bench.suites.per_process import peers, toolchain
from penstock_bench.suites.per_process.cases import RUN, WAYS, Case, cases
from penstock_bench.suites.per_process.launching import Programs, run as launch
from penstock_bench.suites.per_process.rank_files import SEEDS, RankFiles

PROCESS_BYTES = 32 << 20  # of memory, besides the array: a program, its runtime and MPI's
SPARE_BYTES = 64 << 20


class Bench:
    """Programs, files and room of one run."""

    def __init__(self, run: Run, programs: Programs) -> None:
        self.run = run
        self.programs = programs
        self.as_published = bool(run.settings["as_published"])
        folder = run.workspace.directory / "ranks"
        folder.mkdir()
        self.files = RankFiles(run.context, folder)
        self.memory_bytes = available_bytes()
        self.disk_bytes = shutil.disk_usage(folder).free - SPARE_BYTES

    def why_not(self, case: Case) -> str:
        """What this machine lacks for a case; empty when nothing."""
        memory, disk = (case.file_bytes + PROCESS_BYTES) * case.processes, case.file_bytes * case.processes
        for needed, here, what in ((memory, self.memory_bytes, "memory"), (disk, self.disk_bytes, "disk")):
            if needed > here:
                return f"{case.group} needs {bytes_text(needed)} of {what}, and {bytes_text(here)} are free"
        return ""

    def measure(self, case: Case, _round: int = 0) -> Sample:
        cause = self.why_not(case)
        if cause:
            raise NotPossible(cause)
        files, sync = self.files, case.writes and not self.as_published
        files.make(case, self._seed())
        cache = self.cache(case)
        seed = self._seed() if case.writes else files.seed
        files.seed = 0 if case.writes else seed
        told = launch(self.programs, case, files.folder, seed, sync)
        if case.writes:
            files.seed = seed
            files.check(case)
        for path, wrong in zip(files.paths(case), told.wrong, strict=True):
            if wrong:
                raise wrong_bytes(path, 0, wrong * 8, " of what a process read")
        fields = case.fields() | told.fields(sync) | {"started_by": self.programs.tools.started_by}
        return {"bytes": case.file_bytes * case.processes, "cache": cache, **fields}

    def cache(self, case: Case) -> str:
        """The state of the page cache, which this makes. `as it is` where nothing is proved."""
        if case.writes or self.as_published:
            return "as it is"
        try:
            self.files.cold(case)
        except NotPossible as reason:
            if not self.run.results.has("missing", name="cold files"):
                self.run.results.add("missing", name="cold files", cause=str(reason))
            return "as it is"
        return "cold"

    def _seed(self) -> int:
        return next(self.run.seeds) % SEEDS


def run_suite(run: Run) -> None:
    run.step(0, 0, "building the programs")
    tools = toolchain.found()
    built = run.stack.enter_context(Scratch(Path(tempfile.gettempdir()), ("bench per-process", "TMPDIR")))
    reports = built.directory / "reports"
    reports.mkdir()
    commands = toolchain.build(tools, built.directory, str(run.context.device["name"]))
    programs = Programs(tools, commands, float(run.settings["program_seconds"]), reports)
    bench = Bench(run, programs)
    ways = _ways(programs)
    wanted = cases(run.settings, run.bytes, ways)
    _refuse_if_nothing_fits(bench, wanted)
    _tell_absent(run, tools)
    probes = [Probe(case.name, partial(bench.measure, case), case.group) for case in wanted]
    run_rounds(run, [*probes, *peers.probes(bench, wanted)])


def _ways(programs: Programs) -> tuple[str, ...]:
    """What can be measured here; without the library of `penstock run`, programs as they are."""
    try:
        surroundings("")
    except Error as error:
        programs.tools.absent[f"programs{RUN}"] = error.cause
    built = [way for way in WAYS if way.removesuffix(RUN) in programs.built]
    return tuple(way for way in built if not way.endswith(RUN) or f"programs{RUN}" not in programs.tools.absent)


def _tell_absent(run: Run, tools: toolchain.Toolchain) -> None:
    for name, cause in tools.absent.items():
        if not run.results.has("missing", name=name):
            run.results.add("missing", name=name, cause=cause)


def _refuse_if_nothing_fits(bench: Bench, wanted: list[Case]) -> None:
    causes = [bench.why_not(case) for case in wanted]
    if all(causes):
        raise Error(
            code="no_space",
            operation="bench per-process",
            file=str(bench.run.workspace.directory.parent),
            cause=causes[0],
            advice="use a smaller --file-bytes, fewer processes, or another --dir",
        )
