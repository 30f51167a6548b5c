! Restarts of MPI programs: what penstock_mpi.h says of them, as a module. Compile it after penstock_restart.f90 and
! penstock_mpi.f90, with mpifort.
!
! Functions named penstock_mpi_ are collective, and all ranks get the same code. A restart is read by any number of
! ranks, whatever number wrote it.
module penstock_mpi_restart
  use penstock_mpi
  use penstock_restart
  use mpi_f08
  implicit none
  integer, parameter, private :: name_bytes = 4096, fault_bytes = 1024, sums_at_once = 1048576
  private :: begin_all, join_sums

contains

  ! The number of this rank and of all ranks, for penstock_restart_open.
  subroutine penstock_mpi_restart_number(options, comm)
    type(penstock_restart_options), intent(inout) :: options
    type(MPI_Comm), intent(in) :: comm
    integer :: rank, ranks
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    options%process = int(rank, c_int32_t)
    options%processes = int(ranks, c_int32_t)
  end subroutine

  ! The next generation. Refuses fields and attributes that are not the same on all ranks. The facts of rank 0 tell the
  ! generation. After an error both generations are as they were.
  integer(c_int) function penstock_mpi_restart_write(restart, facts, comm, error) result(code)
    type(c_ptr), intent(in) :: restart
    type(penstock_restart_facts), intent(inout) :: facts
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t) :: digest
    integer(c_int) :: ignored
    digest = 0
    code = penstock_mpi_agreed(penstock_restart_digest(restart, digest, error), comm, error)
    if (code == penstock_ok) then
      code = penstock_mpi_alike(digest, 'agree: the ranks write different fields or attributes; give the same '// &
                                'names, types, shapes and attributes on each', comm, error)
    end if
    if (code /= penstock_ok) return
    code = begin_all(restart, comm, error)
    if (code == penstock_ok) code = join_sums(restart, facts, comm, error)
    ignored = penstock_restart_abandon(restart)  ! what has ended stays as it is
  end function

  ! found is 0 where there is none. Refuses ranks that see different files.
  integer(c_int) function penstock_mpi_restart_find(restart, found, comm, error) result(code)
    type(c_ptr), intent(in) :: restart
    integer(c_int32_t), intent(out) :: found
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t) :: generation
    generation = 0
    found = 0
    code = penstock_restart_find(restart, found, error)
    if (code == penstock_ok .and. found /= 0) code = penstock_restart_generation(restart, generation, error)
    code = penstock_mpi_agreed(code, comm, error)
    if (code /= penstock_ok) return
    code = penstock_mpi_alike(generation, 'agree: the ranks find different generations; give each the same file '// &
                              'system and name', comm, error)
  end function

  ! Reads what was found. Where a rank finds it damaged, all pass over it: facts tell the generation that was read.
  integer(c_int) function penstock_mpi_restart_read(restart, facts, comm, error) result(code)
    type(c_ptr), intent(in) :: restart
    type(penstock_restart_facts), intent(inout) :: facts
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    character(kind=c_char, len=fault_bytes), target :: room
    type(penstock_text) :: fault
    integer :: mine(2), first(2), rank
    call MPI_Comm_rank(comm, rank)
    do
      room = repeat(c_null_char, fault_bytes)
      fault%data = c_loc(room)
      fault%capacity = fault_bytes
      code = penstock_mpi_agreed(penstock_restart_read_found(restart, fault, facts, error), comm, error)
      if (code /= penstock_ok) return
      mine = [merge(1, 0, room(1:1) /= c_null_char), rank]
      call MPI_Allreduce(mine, first, 1, MPI_2INTEGER, MPI_MAXLOC, comm)
      if (first(1) == 0) return
      call MPI_Bcast(room, fault_bytes, MPI_CHARACTER, first(2), comm)
      code = penstock_mpi_agreed(penstock_restart_pass_over(restart, room, error), comm, error)
      if (code /= penstock_ok) return
    end do
  end function

  ! Rank 0 makes the file, and the others open it by the name that it has for now.
  integer(c_int) function begin_all(restart, comm, error) result(code)
    type(c_ptr), intent(in) :: restart
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    character(kind=c_char, len=name_bytes), target :: part
    type(penstock_text) :: name
    integer :: rank
    call MPI_Comm_rank(comm, rank)
    part = repeat(c_null_char, name_bytes)
    name%data = c_loc(part)
    name%capacity = name_bytes
    code = penstock_ok
    if (rank == 0) code = penstock_restart_begin(restart, c_null_ptr, name, error)
    code = penstock_mpi_agreed(code, comm, error)
    if (code /= penstock_ok) return
    call MPI_Bcast(part, name_bytes, MPI_CHARACTER, 0, comm)
    if (rank /= 0) code = penstock_restart_begin(restart, c_loc(part), error=error)
    code = penstock_mpi_agreed(code, comm, error)
  end function

  ! Each rank writes its boxes. Rank 0 joins the checksums of all and gives the file its name.
  integer(c_int) function join_sums(restart, facts, comm, error) result(code)
    type(c_ptr), intent(in) :: restart
    type(penstock_restart_facts), intent(inout) :: facts
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int32_t), pointer :: sums(:)
    integer(c_int32_t) :: unused(1)
    type(c_ptr) :: first_sum
    integer(c_int64_t) :: count, coverage, whole, at
    integer :: rank, part
    call MPI_Comm_rank(comm, rank)
    code = penstock_mpi_agreed(penstock_restart_move(restart, first_sum, count, coverage, error), comm, error)
    if (code /= penstock_ok) return
    whole = 0
    call MPI_Reduce(coverage, whole, 1, MPI_UINT64_T, MPI_SUM, 0, comm)  ! numbers without a sign: a sum may overflow
    call c_f_pointer(first_sum, sums, [count])
    do at = 1, count, sums_at_once
      part = int(min(count - at + 1, int(sums_at_once, c_int64_t)))
      if (rank == 0) then
        call MPI_Reduce(MPI_IN_PLACE, sums(at:at + part - 1), part, MPI_INTEGER4, MPI_BXOR, 0, comm)
      else
        call MPI_Reduce(sums(at:at + part - 1), unused, part, MPI_INTEGER4, MPI_BXOR, 0, comm)
      end if
    end do
    if (rank == 0) code = penstock_restart_commit(restart, first_sum, count, whole, facts, error)
    code = penstock_mpi_agreed(code, comm, error)
  end function
end module
