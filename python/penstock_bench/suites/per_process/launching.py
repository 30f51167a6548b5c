"""One run of a program with all its processes, and what each of them tells.

What must stay true: when this process leaves, by an error or a signal as well, all processes have ended (children.py).
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.cli.run import surroundings
from penstock_bench.suites.per_process.cases import FORTRAN, RUN, Case
from penstock_bench.suites.per_process.toolchain import PROGRAMS, Toolchain

NUMBERS = 6  # that each process tells, before its path


@dataclass(frozen=True)
class Programs:
    """What is run: programs by way, and what starts their processes."""

    tools: Toolchain
    built: dict[str, Path]
    limit_s: float
    reports: Path  # a folder for those of the preload library


@dataclass(frozen=True)
class Told:
    """What the processes told, each in its place. `seconds` are from barrier to barrier."""

    seconds: list[float]
    own_s: list[float]
    open_s: list[float]
    fsync_s: list[float]
    close_s: list[float]
    wrong: list[int]  # elements that a process read
    path: str
    reports: list[dict[str, Any]] = field(default_factory=list)

    def fields(self, sync: bool) -> dict[str, Any]:
        """As fields of a row. The slowest process counts; of what lies between the barriers, the mean, as published."""
        found: dict[str, Any] = {"seconds": statistics.mean(self.seconds), "took": self.path}
        found |= {"slowest_s": max(self.own_s), "fastest_s": min(self.own_s)}
        found |= {"open_s": max(self.open_s), "close_s": max(self.close_s)}
        return found | ({"fsync_s": max(self.fsync_s)} if sync else {}) | self._preload()

    def _preload(self) -> dict[str, Any]:
        """What the library asked the kernel for, and why not more."""
        if not self.reports:
            return {}
        ways = [
            one[way] for report in self.reports for one in report["files"] for way in ("written", "read") if way in one
        ]
        early = sum(one.get("early_writeback_bytes", 0) + one.get("read_ahead_bytes", 0) for one in ways)
        small = sum(report["small_files"]["closed"] for report in self.reports)
        whys = dict.fromkeys(one["why"] for one in ways if "why" in one)
        return {
            "early_bytes": early,
            "why": "; ".join(whys) or ("the file is small" if small else "no file was looked at"),
        }


def run(programs: Programs, case: Case, folder: Path, seed: int, sync: bool) -> Told:
    """Raises Error that says what a process said, and NotPossible after the time limit."""
    kind = case.way.removesuffix(RUN)
    words = [case.direction, str(folder), str(case.file_bytes // 8), str(case.buffer_bytes), str(seed)]
    words += [str(case.processes), str(int(sync))]
    given = {"GFORTRAN_UNFORMATTED_BUFFER_SIZE": str(case.buffer_bytes)} if kind == FORTRAN else {}
    if case.way.endswith(RUN):
        given |= surroundings(report=str(programs.reports / "report")) | {"PENSTOCK_RUN_PROCESS": "1"}  # no process
    command = [*programs.tools.started(case.processes), "env", *(f"{name}={value}" for name, value in given.items())]
    try:
        text = PROGRAMS.output([*command, str(programs.built[kind]), *words], programs.limit_s, programs.reports.parent)
        reports = [json.loads(path.read_text()) for path in sorted(programs.reports.iterdir())]
    finally:
        for path in programs.reports.iterdir():
            path.unlink()
    told = parsed(text, case.processes)
    return replace(told, reports=reports)


def parsed(text: str, processes: int) -> Told:
    """What the lines of a program say, one for each process."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) != processes or any(len(line) != NUMBERS + 1 for line in lines):
        raise PROGRAMS.failed(f"{processes} processes told what is not understood: {text[:200]!r}")
    between, own, opened, synced, closed, wrong = ([float(line[place]) for line in lines] for place in range(NUMBERS))
    return Told(between, own, opened, synced, closed, [int(one) for one in wrong], lines[0][NUMBERS])
