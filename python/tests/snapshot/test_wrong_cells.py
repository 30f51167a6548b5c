"""Wrong cells of ranks of MPI, from C: all ranks are told in one line each, none waits for ever, and the snapshot is
written without the cells. With each MPI that is here; Fortran's ranks are in test_mpi.py, those of mpi4py in
test_cells_of_mpi4py.py."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.mpi_rig import MAY_START, kinds_of, lines_of_each, marks_of
from c_abi.snapshot_rig import LIBRARY

TREE = Path(__file__).parents[3]
LIMIT_S = 120
RANKS, PARTICLES = 3, 5
KINDS = kinds_of("mpicc")
pytestmark = marks_of("mpicc", KINDS, "C")


@pytest.fixture(scope="module", params=KINDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The launcher, and what it starts."""
    folder = tmp_path_factory.mktemp("mpi")
    source = TREE / "python" / "tests" / "support" / "ranks" / "wrong_cells.c"
    command = [f"mpicc{request.param}", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}", str(source)]
    subprocess.run([*command, str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", "cells"], cwd=folder, check=True)
    return [f"mpirun{request.param}", "-n", str(RANKS), "--", str(folder / "cells")]


def told(program: list[str], name: Path, mistake: str) -> list[tuple[int, str, str]]:
    """Rank, call and words of each error."""
    lines = lines_of_each([*program, str(name), mistake], {**os.environ, **MAY_START}, LIMIT_S)
    fields = [re.fullmatch(r"rank (\d) ([a-z ]+): (.*)", one) for one in lines]
    found = [(int(one[1]), one[2], one[3]) for one in fields if one]
    assert len(found) == len(lines), lines
    ends = [one for one in found if one[1] == "end of the model"]
    assert sorted(rank for rank, *_ in ends) == list(range(RANKS)), lines
    return [one for one in found if one not in ends]


def check_particles(name: Path) -> None:
    """All but the last rank's, which may be wrong."""
    rank, particle = np.divmod(np.arange(PARTICLES * (RANKS - 1)), PARTICLES)
    with h5py.File(name) as file:
        found = file["PartType1/Coordinates"][: PARTICLES * (RANKS - 1)]
    assert np.array_equal(found, np.stack([10.0 * rank + particle, 0 * rank + 1, 0 * rank + 2], axis=1))


WRONG = {
    "fewer": "PartType1/Coordinates has 5 particles, and the cells are of 4; add the dataset first",
    "more": "PartType1/Coordinates has 5 particles, and the cells are of 6; add the dataset first",
    "type": "PartType3/Coordinates has 0 particles, and the cells are of 5; add the dataset first",
    "large type": "PartType4294967295/Coordinates has 0 particles, and the cells are of 5; add the dataset",
    "types": "the ranks give different cells; give the same grid and types on each",
    "grid": "the ranks give different cells; give the same grid and types on each",
    "box": "the ranks give different cells; give the same grid and types on each",
    "no box": "the box has a length of nan; give numbers above 0",
    "no cells": "there are 0 cells along a dimension; give 1 to 4096",
    "many cells": "there are 68719476736 cells; give 2147483647 at most",
    "no grid": "penstock_snapshot_cells is null; pass a valid pointer",
    "handle": "penstock_snapshot is null; pass a valid pointer",
    "null": "the positions are a null pointer; give the first of them",
    "dtype": "positions have the type 'int32'; give float64 or float32",
    "nan": r"particle 2 of PartType1 lies at \(22.*, nan, 2.*\); give finite positions",
    "infinite": r"particle 4 of PartType1 lies at \(inf, 1.*, 2.*\); give finite positions",
    "shared": "processes 1 and 2 both have particles of PartType1 in cell 1; give all particles of a cell to one",
    "unsorted": "particle 1 of PartType1 lies in cell 0, and the one before it in cell 2; put the particles",
    "twice": "PartType1 is given twice; give the positions of each type once",
}


@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_cells_are_told_to_all_and_the_snapshot_is_written_without_them(
    program: list[str], tmp_path: Path, mistake: str
) -> None:
    found = told(program, tmp_path / "s.hdf5", mistake)
    assert sorted(rank for rank, *_ in found) == list(range(RANKS)), found
    for _, call, words in found:
        assert call == "cells" and re.search(WRONG[mistake], words), found
    check_particles(tmp_path / "s.hdf5")
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert list(file) == ["PartType1"]


def test_cells_that_are_there_already_are_told_and_stay(program: list[str], tmp_path: Path) -> None:
    found = told(program, tmp_path / "s.hdf5", "again")
    assert sorted(rank for rank, *_ in found) == list(range(RANKS)), found
    assert all(call == "cells" and "Cells" in words for _, call, words in found), found
    check_particles(tmp_path / "s.hdf5")
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert list(file["Cells/Counts/PartType1"]) == [PARTICLES] * RANKS


def test_positions_outside_of_the_box_are_of_the_nearest_cell(program: list[str], tmp_path: Path) -> None:
    assert told(program, tmp_path / "s.hdf5", "outside") == []
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert list(file["Cells/Counts/PartType1"]) == [PARTICLES] * RANKS
        assert list(file["Cells/MaxPositions/PartType1"][RANKS - 1]) == [1e6, 1, 2]
        assert list(file["Cells/MinPositions/PartType1"][RANKS - 1]) == [10.0 * (RANKS - 1), -3, 2]


def test_a_rank_may_sort_its_particles_where_others_have_them_sorted(program: list[str], tmp_path: Path) -> None:
    assert told(program, tmp_path / "s.hdf5", "sorts") == []
    check_particles(tmp_path / "s.hdf5")
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert list(file["Cells/Counts/PartType1"]) == [PARTICLES] * RANKS
        assert list(file["PartType1/Coordinates"][-PARTICLES:, 0]) == [
            10.0 * (RANKS - 1) + one for one in range(PARTICLES)
        ]


def test_a_second_write_follows_one_whose_name_was_taken_at_last(program: list[str], tmp_path: Path) -> None:
    """Ranks other than 0, which gives the file its name, have not ended before it has it."""
    found = told(program, tmp_path / "s.hdf5", "taken")
    assert sorted(rank for rank, *_ in found) == list(range(RANKS)), found
    assert all(call == "write" and "File exists" in words for _, call, words in found), found
    check_particles(tmp_path / "s.hdf5")
