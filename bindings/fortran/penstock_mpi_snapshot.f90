! Snapshots of MPI programs: what penstock_mpi.h says of them, as a module. Compile it after penstock_snapshot.f90 and
! penstock_mpi.f90, with mpifort.
!
! Functions named penstock_mpi_ are collective, and all ranks get the same code.
module penstock_mpi_snapshot
  use penstock_mpi
  use penstock_snapshot
  use mpi_f08
  implicit none
  integer, parameter, private :: place_bytes = 4096
  private :: place_of_all, added_for_all

contains

  ! The number of this rank and of all ranks, for penstock_snapshot_open.
  subroutine penstock_mpi_snapshot_number(options, comm)
    type(penstock_snapshot_options), intent(inout) :: options
    type(MPI_Comm), intent(in) :: comm
    integer :: rank, ranks
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    options%process = int(rank, c_int32_t)
    options%processes = int(ranks, c_int32_t)
  end subroutine

  ! How many rows each rank has, for process_rows of a dataset: as many numbers as there are ranks.
  subroutine penstock_mpi_rows(rows, all_rows, comm)
    integer(c_int64_t), intent(in) :: rows
    integer(c_int64_t), intent(out) :: all_rows(*)
    type(MPI_Comm), intent(in) :: comm
    call MPI_Allgather(rows, 1, MPI_INTEGER8, all_rows, 1, MPI_INTEGER8, comm)
  end subroutine

  ! penstock_snapshot_array of an array whose last dimension is that of the particles: each rank has some of them.
  integer(c_int) function penstock_mpi_snapshot_array(snapshot, path, dtype, shape, comm, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout), optional :: error
    type(penstock_error) :: own
    type(penstock_snapshot_dataset) :: dataset
    character(kind=c_char, len=:), allocatable, target :: own_path, own_dtype
    integer(c_int64_t), target :: turned_shape(penstock_most_dimensions)
    integer(c_int64_t), allocatable, target :: rows(:)
    integer :: rank, ranks
    call MPI_Comm_size(comm, ranks)
    allocate (rows(ranks))
    rank = min(size(shape), penstock_most_dimensions)
    turned_shape(1) = 0 ! of one value, which has no rows
    turned_shape(1:rank) = shape(rank:1:-1)
    call penstock_mpi_rows(turned_shape(1), rows, comm)
    own_path = penstock_name(path)
    own_dtype = penstock_name(dtype)
    dataset%path = c_loc(own_path)
    dataset%dtype = c_loc(own_dtype)
    dataset%shape = c_loc(turned_shape)
    dataset%rank = size(shape)
    dataset%process_rows = c_loc(rows)
    dataset%process_count = ranks
    if (present(error)) then
      code = penstock_mpi_agreed(penstock_snapshot_add_dataset(snapshot, dataset, error), comm, error)
    else
      code = penstock_mpi_agreed(penstock_snapshot_add_dataset(snapshot, dataset, own), comm, own)
    end if
  end function

  ! The group Cells of SWIFT, of the particles of all ranks: count types, after their datasets. Refuses grids and types
  ! that are not the same on all ranks, particles that do not lie sorted by cell, and a cell of two ranks.
  integer(c_int) function penstock_mpi_snapshot_add_cells(snapshot, cells, positions, count, comm, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    type(penstock_snapshot_cells), intent(in) :: cells
    type(penstock_snapshot_positions), intent(in) :: positions(*)
    integer(c_int64_t), intent(in) :: count
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    type(penstock_snapshot_cell_sums) :: sums
    code = penstock_snapshot_count_cells(snapshot, cells, positions, count, sums, error)
    code = added_for_all(snapshot, code, sums, comm, error)
  end function

  ! In its place where particles of a rank lie in any order: penstock_mpi_snapshot_write puts them into that of cells,
  ! as penstock_snapshot_sort_by_cells says. Each rank calls one of the two.
  integer(c_int) function penstock_mpi_snapshot_sort_by_cells(snapshot, cells, positions, count, comm, error) &
    result(code)
    type(c_ptr), intent(in) :: snapshot
    type(penstock_snapshot_cells), intent(in) :: cells
    type(penstock_snapshot_positions), intent(in) :: positions(*)
    integer(c_int64_t), intent(in) :: count
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    type(penstock_snapshot_cell_sums) :: sums
    code = penstock_snapshot_sort_and_count(snapshot, cells, positions, count, sums, error)
    code = added_for_all(snapshot, code, sums, comm, error)
  end function

  ! What each rank has counted becomes what all have. counted: the code of this rank's count.
  integer(c_int) function added_for_all(snapshot, counted, sums, comm, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    integer(c_int), intent(in) :: counted
    type(penstock_snapshot_cell_sums), intent(in) :: sums
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t), pointer :: totals(:)
    real(c_double), pointer :: extremes(:)
    integer(c_int64_t), parameter :: most = 2_c_int64_t**30 ! MPI takes a default integer
    integer(c_int64_t) :: at
    code = penstock_mpi_agreed(counted, comm, error)
    if (code == penstock_ok) code = penstock_mpi_alike(sums%digest, 'add cells: the ranks give different cells; '// &
                                                       'give the same grid and types on each', comm, error)
    if (code /= penstock_ok) return
    call c_f_pointer(sums%totals, totals, [sums%total_count])
    call c_f_pointer(sums%extremes, extremes, [sums%extreme_count])
    do at = 1, sums%total_count, most
      call MPI_Allreduce(MPI_IN_PLACE, totals(at:), int(min(most, sums%total_count - at + 1)), MPI_INTEGER8, MPI_SUM, &
                         comm)
    end do
    do at = 1, sums%extreme_count, most
      call MPI_Allreduce(MPI_IN_PLACE, extremes(at:), int(min(most, sums%extreme_count - at + 1)), &
                         MPI_DOUBLE_PRECISION, MPI_MAX, comm)
    end do
    code = penstock_mpi_agreed(penstock_snapshot_add_counted_cells(snapshot, error), comm, error)
  end function

  ! Each rank gives its rows. The files get their names when all ranks have written; after a failure those that had the
  ! names stay as they were.
  integer(c_int) function penstock_mpi_snapshot_write(snapshot, fields, count, comm, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    type(penstock_snapshot_field), intent(in) :: fields(*)
    integer(c_int64_t), intent(in) :: count
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    character(kind=c_char, len=place_bytes), target :: place
    integer(c_int64_t) :: digest
    integer :: rank, ranks, turn
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    if (ranks == 1) then
      code = penstock_snapshot_write(snapshot, fields, count, error=error)
      return
    end if
    digest = 0
    code = penstock_mpi_agreed(penstock_snapshot_digest(snapshot, digest, error), comm, error)
    if (code == penstock_ok) code = penstock_mpi_same(digest, comm, error)
    if (code == penstock_ok) code = place_of_all(snapshot, place, comm, error)
    if (code == penstock_ok) then
      if (rank /= 0) code = penstock_snapshot_begin(snapshot, place, error)
      code = penstock_mpi_agreed(code, comm, error)
    end if
    if (code == penstock_ok) then
      code = penstock_mpi_agreed(penstock_snapshot_write(snapshot, fields, count, error=error), comm, error)
    end if
    ! Rank 0 commits last where each has a file; of one file it gives the name, which may fail, and commits first.
    do turn = 1, 2
      if (code /= penstock_ok) exit
      if ((rank == 0) .eqv. ((turn == 1) .eqv. (place(1:1) /= c_null_char))) then
        code = penstock_snapshot_commit(snapshot, error)
      end if
      code = penstock_mpi_agreed(code, comm, error)
    end do
    if (code /= penstock_ok) call penstock_snapshot_abandon(snapshot)
  end function

  ! Where rank 0 has begun, on all ranks.
  integer(c_int) function place_of_all(snapshot, place, comm, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(kind=c_char, len=place_bytes), intent(inout), target :: place
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    type(penstock_text) :: text
    integer :: rank
    call MPI_Comm_rank(comm, rank)
    place = c_null_char
    code = penstock_ok
    if (rank == 0) then
      code = penstock_snapshot_begin(snapshot, place, error)
      text%data = c_loc(place)
      text%capacity = place_bytes
      if (code == penstock_ok) code = penstock_snapshot_place(snapshot, text, error)
    end if
    code = penstock_mpi_agreed(code, comm, error)
    if (code == penstock_ok) call MPI_Bcast(place, place_bytes, MPI_CHARACTER, 0, comm)
  end function
end module
