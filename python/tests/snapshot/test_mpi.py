"""Ranks of MPI, in C and Fortran, write one snapshot, or a file each and a virtual one. One rank has no particles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.snapshot_rig import LIBRARY

TREE = Path(__file__).parents[3]
LIMIT_S = 120
RANKS = 3
ROOT_TOO = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
ROOT_TOO |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
ROOT_TOO |= {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no MPI"),
]
FORTRAN = """
program particles
  use mpi_f08
  use penstock_mpi_snapshot
  implicit none
  type(penstock_error) :: error
  type(penstock_snapshot_options) :: options
  type(penstock_snapshot_field) :: fields(2)
  character(kind=c_char, len=22), target :: paths(2)
  character(kind=c_char, len=256) :: name
  real(c_double), allocatable, target :: positions(:, :)
  integer(c_int64_t), allocatable, target :: ids(:)
  type(c_ptr) :: context, snapshot
  integer(c_int64_t) :: own, i
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  own = merge(0, 1000 - rank, rank == 1)
  allocate (positions(3, own), ids(own))
  ids = [(int(rank, c_int64_t)*1000 + i, i=0, own - 1)]
  do i = 1, own
    positions(:, i) = ids(i) + 0.25d0*[0, 1, 2]
  end do
  call get_command_argument(1, name)
  call need(penstock_context_create(context=context, error=error))
  call penstock_mpi_snapshot_number(options, MPI_COMM_WORLD)
  options%memory = penstock_system
  call need(penstock_snapshot_open(context, penstock_name(trim(name)), options, snapshot, error))
  call need(penstock_mpi_snapshot_array(snapshot, 'PartType1/Coordinates', 'float64', shape(positions, c_int64_t), &
                                        MPI_COMM_WORLD, error))
  call need(penstock_mpi_snapshot_array(snapshot, 'PartType1/ParticleIDs', 'uint64', shape(ids, c_int64_t), &
                                        MPI_COMM_WORLD, error))
  paths = ['PartType1/Coordinates'//c_null_char, 'PartType1/ParticleIDs'//c_null_char]
  fields(1) = penstock_snapshot_field(c_loc(paths(1)), c_loc(positions), 24*own)
  fields(2) = penstock_snapshot_field(c_loc(paths(2)), c_loc(ids), 8*own)
  call need(penstock_mpi_snapshot_write(snapshot, fields, 2_c_int64_t, MPI_COMM_WORLD, error))
  call penstock_snapshot_free(snapshot)
  call penstock_context_destroy(context)
  call MPI_Finalize()
contains
  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print *, penstock_string(error%message)
    flush (6) ! MPI_Abort writes no buffer
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
"""


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["mpirun", "-n", str(RANKS), str(program), *arguments]
    environment = {**os.environ, **ROOT_TOO}
    return subprocess.run(command, cwd=program.parent, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


def compiled(compiler: str, program: Path, sources: list[Path], *flags: str) -> Path:
    if not works(compiler):
        pytest.skip(f"there is no {compiler} that finds its compiler")
    command = [compiler, *flags, *map(str, sources), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", str(program)]
    subprocess.run(command, cwd=program.parent, check=True)
    return program


def check(name: Path) -> None:
    with h5py.File(name) as file:
        wanted = np.concatenate([np.arange(1000), 2000 + np.arange(998)])
        np.testing.assert_array_equal(file["PartType1/ParticleIDs"][...], wanted)
        np.testing.assert_array_equal(file["PartType1/Coordinates"][...], wanted[:, None] + [0, 0.25, 0.5])


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = [TREE / "examples" / "particles" / "mpi_particles.c"]
    return compiled("mpicc", tmp_path_factory.mktemp("mpi") / "particles", sources, f"-I{TREE / 'include'}")


def test_ranks_write_one_file_from_c(c_program: Path, tmp_path: Path) -> None:
    name = tmp_path / "s.hdf5"
    ran = run(c_program, str(name))
    assert ran.returncode == 0, ran.stderr
    check(name)
    assert list(tmp_path.iterdir()) == [name]


def test_ranks_write_a_file_each_from_c(c_program: Path, tmp_path: Path) -> None:
    name = tmp_path / "s.hdf5"
    assert run(c_program, str(name), "each").returncode == 0
    check(name)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["s.0.hdf5", "s.1.hdf5", "s.2.hdf5", "s.hdf5"]


def test_a_failure_is_told_by_the_rank_that_has_it(c_program: Path, tmp_path: Path) -> None:
    ran = run(c_program, str(tmp_path / "none" / "s.hdf5"))
    assert ran.returncode != 0 and "No such file or directory" in ran.stderr


def test_ranks_write_one_file_from_fortran(tmp_path: Path) -> None:
    (tmp_path / "particles.f90").write_text(FORTRAN)
    names = ("penstock", "penstock_history", "penstock_mpi", "penstock_snapshot", "penstock_mpi_snapshot")
    sources = [TREE / "bindings" / "fortran" / f"{one}.f90" for one in names] + [tmp_path / "particles.f90"]
    program = compiled("mpifort", tmp_path / "particles", sources)
    (tmp_path / "out").mkdir()
    ran = run(program, str(tmp_path / "out" / "s.hdf5"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    check(tmp_path / "out" / "s.hdf5")
