"""Ranks of MPI, in C and Fortran, write one snapshot, or a file each and a virtual one: with each MPI that is here, by
one to eight ranks, any of which may have no particles."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START, kinds_of, marks_of, says_to
from c_abi.snapshot_rig import LIBRARY

TREE = Path(__file__).parents[3]
LIMIT_S = 120
ROOT_TOO = MAY_START | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
KINDS = kinds_of("mpicc")
pytestmark = marks_of("mpicc", KINDS, "C")
FORTRAN = """
program particles
  use mpi_f08
  use penstock_mpi_snapshot
  implicit none
  type(penstock_error) :: error
  type(penstock_snapshot_options) :: options
  type(penstock_snapshot_field) :: fields(2)
  type(penstock_snapshot_cells) :: cells
  type(penstock_snapshot_positions) :: own_positions(1)
  character(kind=c_char), target :: double(8) = ['f', 'l', 'o', 'a', 't', '6', '4', c_null_char]
  character(kind=c_char, len=22), target :: paths(2)
  character(kind=c_char, len=256) :: name, empty, files, mistake
  real(c_double), allocatable, target :: positions(:, :)
  integer(c_int64_t), allocatable, target :: ids(:)
  type(c_ptr) :: context, snapshot
  integer(c_int64_t) :: own, i
  integer :: rank, ranks
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, name)
  call get_command_argument(2, empty) ! the ranks without particles, a digit each
  call get_command_argument(3, files)
  call get_command_argument(4, mistake) ! or that particles are sorted
  own = merge(0, 1000 - rank, scan(empty, achar(iachar('0') + rank)) > 0)
  allocate (positions(3, own), ids(own))
  ids = [(int(rank, c_int64_t)*1000 + i, i=0, own - 1)]
  if (mistake == 'sort') ids = ids(own:1:-1)
  do i = 1, own
    positions(:, i) = ids(i) + 0.25d0*[0, 1, 2]
  end do
  call need(penstock_context_create(context=context, error=error))
  call penstock_mpi_snapshot_number(options, MPI_COMM_WORLD)
  options%memory = penstock_system
  options%file_each = merge(1, 0, files == 'each')
  options%virtual_file = options%file_each
  call need(penstock_snapshot_open(context, penstock_name(trim(name)), options, snapshot, error))
  call need(penstock_mpi_snapshot_array(snapshot, 'PartType1/Coordinates', &
                                        merge('float65', 'float64', mistake == 'dtype' .and. rank == 1), &
                                        shape(positions, c_int64_t), MPI_COMM_WORLD, error))
  call need(penstock_mpi_snapshot_array(snapshot, 'PartType1/ParticleIDs', 'uint64', shape(ids, c_int64_t), &
                                        MPI_COMM_WORLD, error))
  cells%cells = [ranks, 1, 1]
  cells%box_size = 1000*ranks
  if (mistake == 'shared') cells%cells(1) = 1
  if (mistake == 'differ') cells%box_size(2) = 1000 + rank
  if (mistake == 'unsorted' .and. rank == 1) positions(1, 5) = 1000*ranks
  if (mistake == 'nan' .and. rank == 1) positions(2, 5) = log(-1d0*rank)
  own_positions(1) = penstock_snapshot_positions(1, c_loc(double), c_loc(positions), own)
  if (mistake == 'fewer' .and. rank == 1) own_positions(1)%particles = own - 1
  if (mistake == 'type' .and. rank == 1) own_positions(1)%type = 4
  if (mistake == 'sort') then
    cells%cells(1) = 4*ranks
    call need(penstock_mpi_snapshot_sort_by_cells(snapshot, cells, own_positions, 1_c_int64_t, MPI_COMM_WORLD, error))
  else
    call need(penstock_mpi_snapshot_add_cells(snapshot, cells, own_positions, 1_c_int64_t, MPI_COMM_WORLD, error))
  end if
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
    flush (6)
    call MPI_Finalize() ! all ranks come here; MPI_Abort would drop what other ranks have said
    stop 1
  end subroutine
end program
"""


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def compiled(compiler: str, program: Path, sources: list[Path], *flags: str) -> list[str]:
    """What starts it with so many ranks."""
    command = [compiler, *flags, *map(str, sources), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", str(program)]
    subprocess.run(command, cwd=program.parent, check=True)
    return [compiler.replace("mpicc", "mpirun").replace("mpifort", "mpirun"), "-n", "{}", str(program)]


@pytest.fixture(scope="module")
def c_program(kind: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}"]
    sources = [TREE / "examples" / "particles" / "mpi_particles.c"]
    return compiled(f"mpicc{kind}", tmp_path_factory.mktemp("mpi") / "particles", sources, *flags)


@pytest.fixture(scope="module")
def fortran_program(kind: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    if not works(f"mpifort{kind}"):
        pytest.skip(f"there is no mpifort{kind} that finds its compiler")
    folder = tmp_path_factory.mktemp("mpi")
    (folder / "particles.f90").write_text(FORTRAN)
    names = ("penstock", "penstock_history", "penstock_mpi", "penstock_snapshot", "penstock_mpi_snapshot")
    sources = [TREE / "bindings" / "fortran" / f"{one}.f90" for one in names] + [folder / "particles.f90"]
    return compiled(f"mpifort{kind}", folder / "particles", sources)


def run(program: list[str], ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [one.format(ranks) for one in program] + list(arguments)
    environment = {**os.environ, **ROOT_TOO}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


def check(name: Path, ranks: int, files: str, empty: str = "1", sort: bool = False) -> None:
    """The particles of all ranks in their order, and no file beside those that were asked for. `sort`: each rank had
    its particles the wrong way round, and has four cells, in each of which they stay as they were."""
    rows = [np.arange(0 if str(rank) in empty else 1000 - rank) + 1000 * rank for rank in range(ranks)]
    if sort:
        rows = [one[(one % 1000) // 250 == cell][::-1] for one in rows for cell in range(4)]
    of_rank = len(rows) // ranks
    wanted = np.concatenate(rows)
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["PartType1/ParticleIDs"][...], wanted)
        np.testing.assert_array_equal(file["PartType1/Coordinates"][...], wanted[:, None] + [0, 0.25, 0.5])
        check_cells(file, rows, [0] * len(rows))
    parts = [f"{name.stem}.{rank}.hdf5" for rank in range(ranks)] if files == "each" else []
    assert sorted(one.name for one in name.parent.iterdir()) == sorted([*parts, name.name])
    for rank, part in enumerate(parts):
        with h5py.File(name.with_name(part)) as file:
            own = np.concatenate(rows[rank * of_rank : (rank + 1) * of_rank])
            np.testing.assert_array_equal(file["PartType1/ParticleIDs"][...], own)
            check_cells(file, rows, [cell // of_rank for cell in range(len(rows))])


def check_cells(file: h5py.File, rows: list[np.ndarray], files: list[int]) -> None:
    """`rows`: of each cell. `files`: of each cell."""
    sizes = [len(one) for one in rows]
    some = np.flatnonzero(sizes)
    first = {cell: sum(sizes[one] for one in range(cell) if files[one] == files[cell]) for cell in some}
    assert list(file["Cells/Counts/PartType1"]) == sizes
    assert [file["Cells/OffsetsInFile/PartType1"][cell] for cell in some] == [first[cell] for cell in some]
    assert [file["Cells/Files/PartType1"][cell] for cell in some] == [files[cell] for cell in some]
    assert [file["Cells/MaxPositions/PartType1"][cell, 2] for cell in some] == [max(rows[cell]) + 0.5 for cell in some]


@pytest.mark.parametrize("files", ["one", "each"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_ranks_write_their_particles_from_c(c_program: list[str], tmp_path: Path, ranks: int, files: str) -> None:
    name = tmp_path / "s.hdf5"
    ran = run(c_program, ranks, str(name), files)
    assert ran.returncode == 0, ran.stderr
    check(name, ranks, files, sort=True)


@pytest.mark.parametrize("files", ["one", "each"])
@pytest.mark.parametrize(
    ("ranks", "empty"),
    [(1, "-"), (1, "0"), (2, "1"), (3, "0"), (3, "012"), (8, "-"), (8, "0246"), (8, "01234567")],
)
def test_ranks_write_their_particles_from_fortran(
    fortran_program: list[str], tmp_path: Path, ranks: int, empty: str, files: str
) -> None:
    name = tmp_path / "s.hdf5"
    ran = run(fortran_program, ranks, str(name), empty, files)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    check(name, ranks, files, empty)
    (tmp_path / "sorted").mkdir()
    ran = run(fortran_program, ranks, str(tmp_path / "sorted" / "s.hdf5"), empty, files, "sort")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    check(tmp_path / "sorted" / "s.hdf5", ranks, files, empty, sort=True)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_failure_is_told_by_its_words(c_program: list[str], tmp_path: Path, ranks: int) -> None:
    *launcher, binary = c_program
    said = tmp_path / "said"
    ran = run([*launcher, *says_to(said), binary], ranks, str(tmp_path / "none" / "s.hdf5"))
    assert ran.returncode != 0 and "No such file or directory" in said.read_text()


# Ranks of Fortran wait for each other in the functions that those of C do.
@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("shared", "both have particles of PartType1 in cell 0; give all particles of a cell to one process"),
        ("differ", "the ranks give different cells; give the same grid and types on each"),
        ("unsorted", "particle 5 of PartType1 lies in cell 1, and the one before it in cell 2"),
        ("nan", "particle 4 of PartType1 lies at (1004.000000, "),
        ("fewer", "PartType1/Coordinates has 999 particles, and the cells are of 998; add the dataset first"),
        ("dtype", "dataset 'PartType1/Coordinates' has the type 'float65', which is none; use names"),
        ("type", "PartType4/Coordinates has 0 particles, and the cells are of 999; add the dataset first"),
    ],
)
def test_what_is_wrong_on_a_rank_is_refused_on_all(
    fortran_program: list[str], tmp_path: Path, mistake: str, words: str
) -> None:
    ran = run(fortran_program, 3, str(tmp_path / "s.hdf5"), "-", "one", mistake)
    assert ran.returncode != 0 and (ran.stdout + ran.stderr).count(words) == 3
    assert list(tmp_path.iterdir()) == []
