"""Ranks of MPI write a restart from C and Fortran, and other numbers of ranks go on with it, some of them without a
particle: with each MPI that is here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START, kinds_of, marks_of, says_to
from c_abi.snapshot_rig import LIBRARY

import penstock

TREE = Path(__file__).parents[3]
LIMIT_S = 120
ROOT_TOO = MAY_START | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
MODULES = ("", "_history", "_mpi", "_snapshot", "_restart", "_mpi_restart")
ALL, FEW = 100003, 5
KINDS = kinds_of("mpifort")
pytestmark = marks_of("mpifort", KINDS, "Fortran")


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def compiled(kind: str, language: str, particles: int, folder: Path) -> tuple[str, Path]:
    """The launcher, and the example of so many particles that it starts."""
    example = TREE / "examples" / "restart" / f"mpi_restart.{'c' if language == 'c' else 'f90'}"
    text = example.read_text()
    assert text.count(str(ALL)) == 1
    (folder / example.name).write_text(text.replace(str(ALL), str(particles)))
    sources = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in MODULES]
    command = [f"mpicc{kind}", f"-I{TREE / 'include'}"] if language == "c" else [f"mpifort{kind}", *map(str, sources)]
    command += [example.name, str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", "mpi_restart"]
    subprocess.run(command, cwd=folder, check=True)
    return f"mpirun{kind}", folder / "mpi_restart"


@pytest.fixture(scope="module")
def program(kind: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return compiled(kind, "fortran", ALL, tmp_path_factory.mktemp("mpi"))


@pytest.fixture(scope="module", params=["c", "fortran"])
def programs(
    request: pytest.FixtureRequest, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, tuple[str, Path]]:
    """By how many particles they have: some for each rank, and fewer than ranks."""
    if request.param == "c" and not works(f"mpicc{kind}"):
        pytest.skip(f"there is no mpicc{kind}")
    return {one: compiled(kind, request.param, one, tmp_path_factory.mktemp("mpi")) for one in (ALL, FEW)}


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


def check(file: Path, particles: int) -> None:
    """C has numbers from 0 on in one row, Fortran positions from 2 on."""
    with h5py.File(file) as opened:
        found, step = opened["particles/x"][...], 0.25 * opened.attrs["step"]
    row = np.arange(particles)
    wanted = row + step if found.ndim == 1 else row[:, None] + 2 + step + [0, 0.5, 0.75]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("particles", "wrote", "read"),
    [(ALL, 1, 8), (ALL, 8, 3), (ALL, 2, 1), (FEW, 8, 1), (FEW, 2, 8), (FEW, 8, 3), (FEW, 8, 8)],
)
def test_what_some_ranks_wrote_others_read(
    programs: dict[int, tuple[str, Path]], tmp_path: Path, particles: int, wrote: int, read: int
) -> None:
    name = tmp_path / "restart"
    first, second = (run(programs[particles], ranks, name) for ranks in (wrote, read))
    assert first.stdout == f"generation 2 of {wrote} ranks\n", first.stderr
    assert second.returncode == 0, second.stdout + second.stderr
    told, after = second.stdout.splitlines()
    assert told.startswith(f"{read} ranks go on from step 2"), told  # each has looked at its particles
    assert after == f"generation 4 of {read} ranks" and str(tmp_path) not in told
    assert sorted(one.name for one in tmp_path.iterdir()) == ["restart.0", "restart.1"]
    for file in tmp_path.iterdir():
        check(file, particles)


def test_a_failure_is_told_by_its_words(program: tuple[str, Path], tmp_path: Path) -> None:
    ran = run(program, 2, tmp_path / "none" / "restart", says_to(tmp_path / "said"))
    assert ran.returncode != 0 and "there is no folder" in (tmp_path / "said").read_text()


def test_all_ranks_are_refused_while_another_program_writes_the_name(
    programs: dict[int, tuple[str, Path]], tmp_path: Path
) -> None:
    name, said = tmp_path / "run" / "restart", tmp_path / "said"
    name.parent.mkdir()
    with penstock.Restart(name, device="host") as other:
        other.write({"particles/x": np.zeros(3)})
        (name.parent / "restart.0").unlink()  # so that the ranks begin from the start
        before = sorted(one.name for one in name.parent.iterdir())
        ran = run(programs[FEW], 3, name, says_to(said))
        cause = "another writer, of this program or another one, has this name; end that one, or give another name"
        assert ran.returncode != 0 and f"write restart {name}: {cause}" in said.read_text()
        assert sorted(one.name for one in name.parent.iterdir()) == before
    assert run(programs[FEW], 3, name).stdout == "generation 2 of 3 ranks\n"
