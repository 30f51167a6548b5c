"""What a rank of MPI does wrong with a history, from C and Fortran: all ranks are told in one line each, none waits for
ever, the model comes to its end, and steps that are in the file have the values of all ranks. With each MPI that is
here."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START, kinds_of, lines_of_each, marks_of
from c_abi.snapshot_rig import LIBRARY

import penstock

TREE = Path(__file__).parents[3]
PROGRAMS = TREE / "python" / "tests" / "support" / "ranks"
LIMIT_S = 120
RANKS, ROWS, STEPS = 3, 2, 6
KINDS = kinds_of("mpicc")
pytestmark = marks_of("mpicc", KINDS, "C")


class Program:
    """Of one language and MPI."""

    def __init__(self, language: str, kind: str, folder: Path) -> None:
        self._launcher, self._binary = f"mpirun{kind}", folder / "wrong_history"
        modules = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in ("", "_history", "_mpi")]
        compiler = [f"mpicc{kind}", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}"]
        if language == "Fortran":
            compiler = [f"mpifort{kind}", *map(str, modules)]
        source = PROGRAMS / ("wrong_history.c" if language == "C" else "wrong_history.f90")
        command = [*compiler, str(source), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-lm", "-o", self._binary.name]
        subprocess.run(command, cwd=folder, check=True)

    def told(self, path: Path, mistake: str) -> list[tuple[int, int, str, str]]:
        """Rank, step, call and words of each error."""
        command = [self._launcher, "-n", str(RANKS), "--", str(self._binary), str(path), mistake]
        lines = lines_of_each(command, {**os.environ, **MAY_START}, LIMIT_S)
        fields = [re.fullmatch(r"rank (\d) step (\d) ([a-z ]+): (.*)", one) for one in lines]
        found = [(int(one[1]), int(one[2]), one[3], one[4]) for one in fields if one]
        assert len(found) == len(lines), lines
        ends = [one for one in found if one[2] == "end of the model"]
        assert sorted(rank for rank, *_ in ends) == list(range(RANKS)), lines
        return [one for one in found if one not in ends]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def programs(kind: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    languages = ["C"] + (["Fortran"] if works(f"mpifort{kind}") else [])
    return {one: Program(one, kind, tmp_path_factory.mktemp("mpi")) for one in languages}


def of(programs: dict[str, Program], language: str) -> Program:
    if language not in programs:
        pytest.skip("this MPI has no Fortran compiler")
    return programs[language]


def check_steps(path: Path, steps: list[int]) -> None:
    """These, each with the values that all ranks had in it."""
    row = 10 * np.arange(RANKS * ROWS)
    with penstock.open(path, device="host") as file:
        assert file["time"].read().to_numpy().tolist() == steps
        for name in ("T", "m"):
            found = file[name].read().to_numpy()
            assert np.array_equal(found[:, :, 0], np.array([1000 * step + row for step in steps])), name
            assert (found == found[:, :, :1]).all(), name


# In step 3. The call that the last rank makes wrongly, if it is told of it alone, and what the end of the step says.
IN_A_STEP: dict[str, tuple[str, str]] = {
    "missing": ("", "variable 'T' was not put in this step; put every variable in each step"),
    "null": ("is a null pointer; give the first element of the array", "was not put in this step"),
    "nan": ("", "the time is no number; give a finite time"),
    "early": ("", "the time 1.500000 is not later than 2.000000; times rise from step to step"),
    "times": ("", "the ranks give different times, from 3.* to 3.5.*; give the same time on each"),
    "twice": ("variable 'T' was put already in this step; end the step first", ""),
    "unknown": ("no variable 'U' is defined; defined are: T, m", ""),
}
IN_FORTRAN = ["missing", "null", "nan", "times", "unknown"]


@pytest.mark.parametrize(
    ("language", "mistake"),
    [("C", one) for one in IN_A_STEP] + [("Fortran", one) for one in IN_FORTRAN],
)
def test_a_step_that_one_rank_cannot_end_is_told_to_all_and_left_out(
    programs: dict[str, Program], tmp_path: Path, language: str, mistake: str
) -> None:
    of_one, of_all = IN_A_STEP[mistake]
    told = of(programs, language).told(tmp_path / "run.nc", mistake)
    assert {step for _, step, _, _ in told} == {3}, told
    puts = [(rank, words) for rank, _, call, words in told if call == "put"]
    assert all(rank == RANKS - 1 and of_one in words for rank, words in puts), told
    assert bool(puts) == bool(of_one), told
    ends = {rank: words for rank, _, call, words in told if call == "end"}
    assert sorted(ends) == (list(range(RANKS)) if of_all else []), told
    assert all(re.search(of_all, words) for words in ends.values()), told
    check_steps(tmp_path / "run.nc", [1, 2, 4, 5, 6] if of_all else [1, 2, 3, 4, 5, 6])


# Before the first step: what all ranks are told at the begin.
AT_THE_BEGIN: dict[str, Any] = {
    "variable": "the ranks define different files; define the same dimensions, variables and attributes on each",
    "dimension": "the ranks define different files",
    "shape": "the ranks define different files",
    "overlap": "of 'T' leave gaps, or overlap; let each element of global_shape be in one box",
    "gap": "of 'T' leave gaps, or overlap; let each element of global_shape be in one box",
    "outside": "no variable is defined|the ranks define different files",
    "whole": "the ranks define different files",
    "calendar": "penstock_history is null; pass",
}


@pytest.mark.parametrize(
    ("language", "mistake"),
    [("C", one) for one in ("variable", "overlap", "gap", "outside", "whole", "calendar")]
    + [("Fortran", one) for one in ("variable", "dimension", "shape", "gap")],
)
def test_ranks_that_disagree_are_all_told_and_no_file_comes_although_they_go_on(
    programs: dict[str, Program], tmp_path: Path, language: str, mistake: str
) -> None:
    told = of(programs, language).told(tmp_path / "run.nc", mistake)
    begins = {rank: words for rank, _, call, words in told if call == "begin"}
    assert sorted(begins) == list(range(RANKS)), told
    assert all(re.search(AT_THE_BEGIN[mistake], words) for words in begins.values()), told
    for rank in range(RANKS):
        for step in range(1, STEPS + 1):
            assert (rank, step, "end") in [one[:3] for one in told], told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("language", ["C", "Fortran"])
def test_a_disk_that_is_full_for_one_rank_is_told_to_all_and_the_steps_before_stay(
    programs: dict[str, Program], tmp_path: Path, language: str
) -> None:
    told = of(programs, language).told(tmp_path / "run.nc", "full")
    assert told and min(step for _, step, _, _ in told) >= 5, told
    assert all("step 5, variable 'T': " in words and "File too large" in words for *_, words in told), told
    assert sorted({rank for rank, step, call, _ in told if call == "close"}) == list(range(RANKS)), told
    check_steps(tmp_path / "run.nc", [1, 2, 3, 4])
