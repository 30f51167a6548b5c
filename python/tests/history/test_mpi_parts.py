"""Ranks of MPI write compressed histories, a file or a store each, which open as one: with each MPI that is here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_abi.mpi_rig import MAY_START, kinds_of, marks_of, says_to
from c_abi.snapshot_rig import LIBRARY

import penstock

TREE = Path(__file__).parents[3]
LIMIT_S = 120
NY, NX, STEPS = 23, 60, 5
WHOLE = 1000.0 * np.arange(1, STEPS + 1)[:, None, None] + 100.0 * np.arange(NY)[:, None] + np.arange(NX)
KINDS = kinds_of("mpicc")
pytestmark = marks_of("mpicc", KINDS, "C")


@pytest.fixture(scope="module", params=KINDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The launcher, and the example that it starts with so many ranks."""
    folder = tmp_path_factory.mktemp("mpi")
    source = TREE / "examples" / "history" / "mpi_parts.c"
    command = [f"mpicc{request.param}", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}", str(source)]
    subprocess.run([*command, str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", "parts"], cwd=folder, check=True)
    return [f"mpirun{request.param}", "-n", "{}", str(folder / "parts")]


def run(program: list[str], ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [one.format(ranks) for one in program] + list(arguments)
    environment = {**os.environ, **MAY_START}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.mark.parametrize(("ranks", "format", "suffix"), [(3, "netcdf4", "nc"), (4, "zarr", "zarr")])
def test_their_compressed_files_are_one(
    program: list[str], tmp_path: Path, ranks: int, format: str, suffix: str
) -> None:
    done = run(program, ranks, str(tmp_path / "run"), format)
    assert done.stdout == f"{STEPS} steps of {ranks} ranks, compressed\n", done.stderr
    wanted = [f"run.pe{rank:06}.{suffix}" for rank in range(ranks)]
    assert sorted(one.name for one in tmp_path.iterdir()) == wanted
    with penstock.open(tmp_path / f"run.pe######.{suffix}", device="host") as file:
        assert file["T"].shape == WHOLE.shape
        assert np.array_equal(file["T"].read(), WHOLE.astype("f4"))
        assert np.array_equal(file["T"][2:4, 3:21, ::7], WHOLE.astype("f4")[2:4, 3:21, ::7])
        assert np.array_equal(file["y"].read(), 500.0 * np.arange(NY))
    rows = [NY * (rank + 1) // ranks - NY * rank // ranks for rank in range(ranks)]
    for name, there in zip(wanted, rows, strict=True):
        with penstock.open(tmp_path / name, device="host") as one:
            assert one["T"].shape == (STEPS, there, NX) and one["T"].filters, "each is a whole file of its own"


def test_a_rank_that_fails_says_why(program: list[str], tmp_path: Path) -> None:
    *launcher, binary = program
    done = run([*launcher, *says_to(tmp_path / "said"), binary], 2, str(tmp_path / "none" / "run"))
    said = (tmp_path / "said").read_text()
    assert done.returncode != 0 and "none/run.pe00000" in said and "No such file or directory" in said
