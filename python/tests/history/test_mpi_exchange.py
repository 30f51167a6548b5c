"""penstock_mpi_exchange.h and its module of Fortran, with each MPI that is here: random divisions, every element looked
at, mistakes that all ranks are told of, and the examples as a user compiles them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START, kinds_of, marks_of
from c_abi.snapshot_rig import LIBRARY

import penstock

TREE = Path(__file__).parents[3]
LIMIT_S = 120
KINDS = kinds_of("mpicc")
pytestmark = marks_of("mpicc", KINDS, "C")
EXAMPLES = TREE / "examples" / "history"


class Compiled:
    """Programs of one MPI, in a folder."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind, self._folder = kind, folder

    def program(self, source: Path) -> Path:
        return self._made(source.stem, [f"mpicc{self._kind}", "-Wall", "-Wextra", "-Werror"], [source])

    def fortran_program(self) -> Path:
        if not works(f"mpifort{self._kind}"):
            pytest.skip("this MPI has no Fortran compiler")
        modules = ("penstock", "penstock_history", "penstock_mpi", "penstock_mpi_exchange")
        sources = [TREE / "bindings" / "fortran" / f"{name}.f90" for name in modules]
        return self._made("fortran", [f"mpifort{self._kind}"], [*sources, EXAMPLES / "fixed_division.f90"])

    def _made(self, name: str, compiler: list[str], sources: list[Path]) -> Path:
        made = self._folder / name
        if not made.exists():
            command = [*compiler, f"-I{TREE / 'include'}", *map(str, sources), str(LIBRARY)]
            subprocess.run([*command, f"-Wl,-rpath,{LIBRARY.parent}", "-o", name], cwd=self._folder, check=True)
        return made

    def run(self, ranks: int, program: Path, *words: object) -> subprocess.CompletedProcess[str]:
        command = [f"mpirun{self._kind}", "-n", str(ranks), str(program), *map(str, words)]
        environment = {**os.environ, **MAY_START}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture(scope="module", params=KINDS)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(request.param, tmp_path_factory.mktemp("mpi"))


SOURCE = TREE / "python" / "tests" / "support" / "ranks" / "exchange.c"


@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_each_element_arrives_and_nothing_around_the_boxes_changes(compiled: Compiled, ranks: int) -> None:
    program = compiled.program(SOURCE)
    for seed in range(6):
        done = compiled.run(ranks, program, 10 * ranks + seed)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("0 wrong of "), (seed, done.stdout)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("overlap", "two ranks have the same element"),
        ("gap", "a rank gets elements that no rank has"),
        ("item", "ranks have elements or dimensions that differ"),
        ("room", "rank 1: exchange boxes: a box leaves its memory"),
    ],
)
def test_all_ranks_are_told_of_a_mistake_of_one(compiled: Compiled, mistake: str, words: str) -> None:
    done = compiled.run(3, compiled.program(SOURCE), 5, mistake)
    assert done.returncode != 0
    for rank in range(3):
        assert any(line.startswith(f"rank {rank} has: ") for line in done.stderr.splitlines()), done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("language", ["C", "Fortran"])
def test_a_model_of_any_division_writes_a_compressed_store(compiled: Compiled, tmp_path: Path, language: str) -> None:
    is_c = language == "C"
    program = compiled.program(EXAMPLES / "fixed_division.c") if is_c else compiled.fortran_program()
    done = compiled.run(7, program, tmp_path / "run.zarr")
    assert (done.returncode, done.stdout) == (0, "5 steps of 7 ranks\n"), done.stderr
    step, y, x = np.ogrid[1:6, :1000, :60]
    with penstock.open(tmp_path / "run.zarr", device="host") as file:
        assert np.array_equal(file["T"][...].to_numpy(), 1000 * step + y + x)
