"""Ranks of MPI write a restart from Fortran, and other numbers of ranks go on with it: with each MPI that is here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.mpi_rig import MAY_START, kinds_of, marks_of, says_to
from c_abi.snapshot_rig import LIBRARY

TREE = Path(__file__).parents[3]
LIMIT_S = 120
ROOT_TOO = MAY_START | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
MODULES = ("", "_history", "_mpi", "_snapshot", "_restart", "_mpi_restart")
ALL = 100_003
KINDS = kinds_of("mpifort")
pytestmark = marks_of("mpifort", KINDS, "Fortran")


@pytest.fixture(scope="module", params=KINDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The launcher, and the example that it starts."""
    folder = tmp_path_factory.mktemp("mpi")
    sources = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in MODULES]
    sources.append(TREE / "examples" / "restart" / "mpi_restart.f90")
    command = [f"mpifort{request.param}", *map(str, sources), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*command, "-o", "mpi_restart"], cwd=folder, check=True)
    return f"mpirun{request.param}", folder / "mpi_restart"


def run(
    program: tuple[str, Path], ranks: int, name: Path, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    launcher, binary = program
    command = [launcher, "-n", str(ranks), *before, str(binary), str(name)]
    environment = {**os.environ, **ROOT_TOO}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


def turn_bit(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 16
    file.write_bytes(data)


def test_other_numbers_of_ranks_go_on_and_pass_over_damage_together(program: tuple[str, Path], tmp_path: Path) -> None:
    name = tmp_path / "restart"
    first, second = run(program, 3, name), run(program, 2, name)
    assert first.stdout == "generation 2 of 3 ranks\n", first.stderr
    assert second.stdout == "2 ranks go on from step 2; passed over: none\ngeneration 4 of 2 ranks\n", second.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["restart.0", "restart.1"]
    for file in tmp_path.iterdir():
        with h5py.File(file) as opened:
            wanted = np.arange(2, ALL + 2)[:, None] + 0.25 * opened.attrs["step"] + [0, 0.5, 0.75]
            np.testing.assert_array_equal(opened["particles/x"][...], wanted)

    newest = max(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    turn_bit(newest, newest.stat().st_size - 100_000)  # a particle of the last rank
    third = run(program, 3, name)
    told, after = third.stdout.splitlines()
    assert told.startswith(f"3 ranks go on from step 3; passed over: {newest}: generation 4: field 'particles/x'")
    assert after.startswith("generation ") and after.endswith(" of 3 ranks"), third.stderr


def test_a_failure_is_told_by_its_words(program: tuple[str, Path], tmp_path: Path) -> None:
    ran = run(program, 2, tmp_path / "none" / "restart", says_to(tmp_path / "said"))
    assert ran.returncode != 0 and "there is no folder" in (tmp_path / "said").read_text()
