"""The group Cells of SWIFT of ranks of mpi4py, with each MPI that is here: right ones, in one file and in a file of
each, and wrong ones, which all ranks are told of before they write the snapshot without them. test_cells_of_ranks.py
has the tables, of ranks that are threads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import h5py
import pytest
from c_abi.mpi_rig import environment_of, kinds_of, lines_of_each

pytest.importorskip("mpi4py")
PROGRAM = Path(__file__).parents[1] / "support" / "ranks" / "cells.py"
LIMIT_S = 120
RANKS, PARTICLES = 3, 5


@pytest.fixture(scope="module", params=kinds_of("mpicc"))
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], dict[str, str]]:
    """What starts the program with an MPI, and in which environment."""
    environment = environment_of(request.param, tmp_path_factory.mktemp("mpi"))
    if not environment:
        pytest.skip(f"mpi4py does not work with mpirun{request.param}")
    command = [f"mpirun{request.param}", "-n", str(RANKS), "--", sys.executable, "-m", "mpi4py", str(PROGRAM)]
    return command, {**os.environ, **environment}


def told(started: tuple[list[str], dict[str, str]], name: Path, *words: str) -> list[str]:
    command, environment = started
    lines = lines_of_each([*command, str(name), *words], environment, LIMIT_S)
    assert {f"rank {rank} ends" for rank in range(RANKS)} <= set(lines), lines
    return sorted(line for line in lines if not line.endswith(" ends"))


@pytest.mark.parametrize("how", ["one", "each"])
def test_ranks_have_the_cells_of_all(started: tuple[list[str], dict[str, str]], tmp_path: Path, how: str) -> None:
    assert told(started, tmp_path / "s.hdf5", how, "none") == []
    for name in ["s.hdf5"] + [f"s.{rank}.hdf5" for rank in range(RANKS) if how == "each"]:
        is_part = name != "s.hdf5"
        with h5py.File(tmp_path / name) as file:
            assert list(file["Cells/Counts/PartType1"]) == [PARTICLES] * RANKS
            wanted = [0] * RANKS if is_part else [PARTICLES * rank for rank in range(RANKS)]
            assert list(file["Cells/OffsetsInFile/PartType1"]) == wanted
            assert list(file["Cells/Files/PartType1"]) == (list(range(RANKS)) if is_part else [0] * RANKS)
            assert list(file["Cells/MinPositions/PartType1"][:, 0]) == [10.0 * rank for rank in range(RANKS)]


WRONG = {
    "grid": "cells [3, 2, 1] of a box [30.0, 10.0, 10.0] for the types [1]; add the same datasets",
    "nan": "particle 2 of PartType1 lies at (22.000000, nan, 2.000000); give finite positions",
    "fewer": "PartType1/Coordinates has 5 particles, and the cells are of 4",
    "type": "cells [3, 1, 1] of a box [30.0, 10.0, 10.0] for the types [3]; add the same datasets",
    "shared": "processes 1 and 2 both have particles of PartType1 in cell 1; give all particles of a cell to one",
}


@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_cells_of_one_rank_are_told_to_all(
    started: tuple[list[str], dict[str, str]], tmp_path: Path, mistake: str
) -> None:
    found = told(started, tmp_path / "s.hdf5", "one", mistake)
    assert [line.split(" has: ")[0] for line in found] == [f"rank {rank}" for rank in range(RANKS)], found
    assert all(WRONG[mistake] in line for line in found), found
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert list(file) == ["PartType1"] and file["PartType1/Coordinates"].shape == (RANKS * PARTICLES, 3)
