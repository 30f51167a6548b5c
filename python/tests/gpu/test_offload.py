"""Programs whose fields lie on a GPU by OpenMP, OpenACC or CUDA Fortran: compiled, run, and their values compared.

Compilers without a GPU run the directives on the host, where the copy of an array is the array; clang has a device in
memory of the host whose copies are others. The values are sums of powers of two, so every compiler has the same bits.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.snapshot_rig import LIBRARY

import penstock as ps
from penstock import _core

TREE = Path(__file__).parents[3]
EXAMPLES = TREE / "examples" / "history" / "offload"
MODULES = [str(TREE / "bindings" / "fortran" / f"penstock{one}.f90") for one in ("", "_history")]
FORTRAN, C = ["gfortran", "-Wall", "-Wextra", "-Werror"], ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror"]
PLAIN, APART = ["-Wno-unknown-pragmas"], ["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"]
COMMANDS = {  # with directives that are obeyed, and as comments
    ("openmp.f90", "obeyed"): [*FORTRAN, "-fopenmp", *MODULES],
    ("openmp.f90", "passed over"): [*FORTRAN, *MODULES],
    ("openacc.f90", "obeyed"): [*FORTRAN, "-fopenacc", *MODULES],
    ("openacc.f90", "passed over"): [*FORTRAN, *MODULES],
    ("openmp.c", "obeyed"): [*C, "-fopenmp", f"-I{TREE / 'include'}"],
    ("openmp.c", "passed over"): [*C, *PLAIN, f"-I{TREE / 'include'}"],
}
PROBE = """/* Returns 1 where a mapped array has a copy. */
int main(void) {
    int array[1] = {0}, *host = array, is_copy = 0;
#pragma omp target data map(to : host[0 : 1])
#pragma omp target data use_device_ptr(host)
    is_copy = host != array;
    return is_copy;
}
"""
ON_THE_HOST = {  # what makes a program of CUDA Fortran one of the host; its kernels' directives are comments elsewhere
    "  use cudafor\n": "",
    ", device :: field(:, :), change(:, :)": ", target :: field(:, :), change(:, :)",
    "history=history, &": "history=history, memory=penstock_system, &",
    "transfer(c_devloc(field), c_null_ptr)": "c_loc(field)",
    "transfer(c_devloc(change), c_null_ptr)": "c_loc(change)",
}
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")


def compile_and_run(place: Path, command: Sequence[str], source: Path, **more: str) -> Path:
    """The file that the program wrote, with these variables of the environment too."""
    library = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*command, str(source), *library, "-o", "program"], cwd=place, check=True)
    subprocess.run([place / "program", "out.nc"], cwd=place, check=True, timeout=120, env=os.environ | more)
    return place / "out.nc"


def compare(name: Path) -> None:
    field, fields, changes = np.full((42, 62), 280.0), [], []
    for _ in range(6):
        around = field[1:-1, :-2] + field[1:-1, 2:] + field[:-2, 1:-1] + field[2:, 1:-1]
        changes.append(0.125 * (around - 4 * field[1:-1, 1:-1]))
        field[1:-1, 1:-1] += changes[-1]
        field[20, 30] += 8
        fields.append(field[1:-1, 1:-1].copy())
    with ps.open(name, device="host") as file:
        assert file["T"].dtype == file["change"].dtype == np.float64 and file["T"].dims == ("time", "y", "x")
        np.testing.assert_array_equal(file["T"].read(), fields)
        np.testing.assert_array_equal(file["change"].read(), changes)
        np.testing.assert_array_equal(file["time"].read(), 10.0 * np.arange(1, 7))


@pytest.mark.parametrize(("source", "directives"), COMMANDS)
def test_directives_give_the_address_of_what_is_written(tmp_path: Path, source: str, directives: str) -> None:
    command = COMMANDS[source, directives]
    if not works(command[0]):
        pytest.skip(f"there is no {command[0]}")
    compare(compile_and_run(tmp_path, command, EXAMPLES / source))


def test_what_is_written_is_the_copy_on_the_device(tmp_path: Path) -> None:
    (tmp_path / "probe.c").write_text(PROBE)
    if not works("clang") or subprocess.run(["clang", *APART, "probe.c"], cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("there is no clang with a device of OpenMP in memory of the host")
    if subprocess.run(["./a.out"], cwd=tmp_path, timeout=60).returncode != 1:
        pytest.skip("the device of this clang's OpenMP does not start")
    command = ["clang", *C[1:], *APART, f"-I{TREE / 'include'}"]
    compare(compile_and_run(tmp_path, command, EXAMPLES / "openmp.c", OMP_TARGET_OFFLOAD="MANDATORY"))


def test_device_arrays_of_cuda_fortran_are_written(tmp_path: Path) -> None:
    if not works("nvfortran"):
        pytest.skip("no nvfortran: only it compiles CUDA Fortran")
    if _core.cuda_devices()[0] == 0:
        pytest.skip("no GPU: device arrays lie on one")
    compare(compile_and_run(tmp_path, ["nvfortran", "-cuda", *MODULES], EXAMPLES / "cuda_fortran.f90"))


def test_what_is_not_cuda_in_the_program_of_cuda_fortran_runs_on_the_host(tmp_path: Path) -> None:
    if not works("gfortran"):
        pytest.skip("there is no gfortran")
    text = (EXAMPLES / "cuda_fortran.f90").read_text()
    for cuda, host in ON_THE_HOST.items():
        assert text.count(cuda) == 1, f"{cuda!r} is in the program {text.count(cuda)} times"
        text = text.replace(cuda, host)
    (tmp_path / "on_the_host.f90").write_text(text)
    compare(compile_and_run(tmp_path, [*FORTRAN, *MODULES], tmp_path / "on_the_host.f90"))
