! Histories of MPI programs: penstock_mpi.h as a module. Compile it after penstock_history.f90, with mpifort.
!
! What penstock_mpi.h says holds here. Functions named penstock_mpi_ are collective, and all ranks get the same code.
module penstock_mpi
  use penstock_history
  use mpi_f08
  implicit none
  private :: publish_common, cut_common, cover_common, divisor, one_time, tell

contains

  ! The number of this rank and of all ranks, for penstock_history_open.
  subroutine penstock_mpi_number(options, comm)
    type(penstock_history_options), intent(inout) :: options
    type(MPI_Comm), intent(in) :: comm
    integer :: rank, ranks
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    options%process = int(rank, c_int32_t)
    options%processes = int(ranks, c_int32_t)
  end subroutine

  ! The device for this rank, for penstock_context_options: the ranks of a machine take its GPUs in turn. "host"
  ! without a GPU.
  integer(c_int) function penstock_mpi_local_device(comm, name, error) result(code)
    type(MPI_Comm), intent(in) :: comm
    type(penstock_text), intent(inout) :: name
    type(penstock_error), intent(inout), optional :: error
    type(MPI_Comm) :: machine
    integer :: rank
    call MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, machine)
    call MPI_Comm_rank(machine, rank)
    call MPI_Comm_free(machine)
    code = penstock_local_device(int(rank, c_int32_t), name, error)
  end function

  ! Rank 0 makes the file, and the others open it. Refuses definitions that are not the same on all ranks, boxes of
  ! which a store cannot be made, and boxes with gaps between them, or that overlap (may_have_gaps of the options).
  integer(c_int) function penstock_mpi_history_begin(history, comm, error) result(code)
    type(c_ptr), intent(in) :: history
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t) :: digest
    integer :: rank
    digest = 0
    code = penstock_mpi_agreed(penstock_history_digest(history, digest, error), comm, error)
    if (code == penstock_ok) code = penstock_mpi_same(digest, comm, error)
    if (code == penstock_ok) code = cut_common(history, comm, error)
    if (code == penstock_ok) code = cover_common(history, comm, error)
    if (code /= penstock_ok) return
    call MPI_Comm_rank(comm, rank)
    code = penstock_ok
    if (rank == 0) code = penstock_history_begin(history, error)
    code = penstock_mpi_agreed(code, comm, error)
    if (code /= penstock_ok) return
    if (rank /= 0) code = penstock_history_begin(history, error)
    code = penstock_mpi_agreed(code, comm, error)
  end function

  ! Waits for the other ranks, and for no file: steps that are not written everywhere are published later. The time is
  ! the same on all ranks. A step that one of them cannot end is left out on all.
  integer(c_int) function penstock_mpi_history_end_step(history, time, comm, error) result(code)
    type(c_ptr), intent(in) :: history
    real(c_double), intent(in) :: time
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int) :: ignored
    code = penstock_mpi_agreed(penstock_history_check_step(history, time, error), comm, error)
    if (code == penstock_ok) code = one_time(time, comm, error)
    if (code == penstock_ok) then
      code = penstock_history_end_step(history, time, error)
    else
      ignored = penstock_history_drop_step(history)
    end if
    call publish_common(history, code, comm, error)
  end function

  ! Whether all ranks have one time; an error on all of them where they do not.
  integer(c_int) function one_time(time, comm, error) result(code)
    real(c_double), intent(in) :: time
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    real(c_double) :: ends(2)
    character(len=200) :: text
    call MPI_Allreduce([time, -time], ends, 2, MPI_DOUBLE_PRECISION, MPI_MAX, comm)
    code = penstock_ok
    if (ends(1) == -ends(2)) return
    code = penstock_invalid_argument
    error%code = code
    write (text, '(a, g0, a, g0, a)') 'end step: the ranks give different times, from ', -ends(2), ' to ', ends(1), &
      '; give the same time on each'
    call tell(error%message, trim(text))
  end function

  ! The history is gone afterwards on every rank, also on failure.
  integer(c_int) function penstock_mpi_history_close(history, comm, error) result(code)
    type(c_ptr), intent(in) :: history
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    code = penstock_mpi_agreed(penstock_history_wait(history, error), comm, error)
    call publish_common(history, code, comm, error)
    if (code /= penstock_ok) then
      call penstock_history_abandon(history)
      return
    end if
    code = penstock_mpi_agreed(penstock_history_close(history, error), comm, error)
  end function

  ! The ranks of a store agree on its blocks, and that their boxes are made of them.
  integer(c_int) function cut_common(history, comm, error) result(code)
    type(c_ptr), intent(in) :: history
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t), pointer :: cuts(:)
    integer(c_int64_t) :: count, digest
    type(c_ptr) :: first
    type(MPI_Op) :: common
    code = penstock_mpi_agreed(penstock_history_cuts(history, first, count, error), comm, error)
    if (code /= penstock_ok .or. count == 0) return
    call c_f_pointer(first, cuts, [count])
    call MPI_Op_create(divisor, .true., common)
    call MPI_Allreduce(MPI_IN_PLACE, cuts, int(count), MPI_INTEGER8, common, comm)
    call MPI_Op_free(common)
    code = penstock_mpi_agreed(penstock_history_digest(history, digest, error), comm, error)
    if (code == penstock_ok) code = penstock_mpi_same(digest, comm, error)
  end function

  ! What begin needs to know whether the boxes of all ranks have each element once.
  integer(c_int) function cover_common(history, comm, error) result(code)
    type(c_ptr), intent(in) :: history
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t), pointer :: sums(:)
    integer(c_int64_t) :: count
    type(c_ptr) :: first
    code = penstock_mpi_agreed(penstock_history_coverage(history, first, count, error), comm, error)
    if (code /= penstock_ok .or. count == 0) return
    call c_f_pointer(first, sums, [count])
    call MPI_Allreduce(MPI_IN_PLACE, sums, int(count), MPI_UINT64_T, MPI_SUM, comm) ! a sum may overflow
  end function

  ! An operation of MPI: the greatest common divisors.
  subroutine divisor(in, inout, count, kind)
    type(c_ptr), value :: in, inout
    integer :: count
    type(MPI_Datatype) :: kind
    integer(c_int64_t), pointer :: one(:), common(:)
    integer(c_int64_t) :: left, rest
    integer :: i
    if (kind%MPI_VAL /= MPI_INTEGER8%MPI_VAL) return
    call c_f_pointer(in, one, [count])
    call c_f_pointer(inout, common, [count])
    do i = 1, count
      left = one(i)
      do while (left /= 0)
        rest = mod(common(i), left)
        common(i) = left
        left = rest
      end do
    end do
  end subroutine

  ! Publishes what every rank has written, also where one has failed: `code` is that of this rank, and becomes that of
  ! all. A history of one rank does it by itself.
  subroutine publish_common(history, code, comm, error)
    type(c_ptr), intent(in) :: history
    integer(c_int), intent(inout) :: code
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    type(penstock_history_facts) :: facts
    type(penstock_error) :: own
    integer(c_int64_t) :: steps
    integer(c_int) :: told
    integer :: ranks
    call MPI_Comm_size(comm, ranks)
    if (ranks == 1) return
    told = penstock_history_describe(history, facts, own)
    call MPI_Allreduce(facts%steps_written, steps, 1, MPI_INTEGER8, MPI_MIN, comm)
    if (told == penstock_ok .and. steps /= 0) told = penstock_history_publish(history, steps, own)
    if (code == penstock_ok .and. told /= penstock_ok) then
      code = told
      error = own
    end if
    code = penstock_mpi_agreed(code, comm, error)
  end subroutine

  ! Not for programs: whether the digest is that of all ranks.
  integer(c_int) function penstock_mpi_same(digest, comm, error) result(code)
    integer(c_int64_t), intent(in) :: digest
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    code = penstock_mpi_alike(digest, 'begin: the ranks define different files; define the same dimensions, '// &
                              'variables and attributes on each', comm, error)
  end function

  ! Not for programs. Whether all ranks have one number; the message is an error on all of them where they do not.
  integer(c_int) function penstock_mpi_alike(number, message, comm, error) result(code)
    integer(c_int64_t), intent(in) :: number
    character(len=*), intent(in) :: message
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t) :: low, high
    call MPI_Allreduce(number, low, 1, MPI_INTEGER8, MPI_MIN, comm)
    call MPI_Allreduce(number, high, 1, MPI_INTEGER8, MPI_MAX, comm)
    code = penstock_ok
    if (low == high) return
    code = penstock_invalid_argument
    error%code = code
    call tell(error%message, message)
  end function

  ! Not for programs. The first rank that failed gives its code to all, and its message to those that did not fail.
  integer(c_int) function penstock_mpi_agreed(own, comm, error) result(code)
    integer(c_int), intent(in) :: own
    type(MPI_Comm), intent(in) :: comm
    type(penstock_error), intent(inout) :: error
    character(len=2048) :: text
    character(len=16) :: number
    integer :: mine(2), first(2), rank
    call MPI_Comm_rank(comm, rank)
    mine = [merge(1, 0, own /= penstock_ok), rank]
    call MPI_Allreduce(mine, first, 1, MPI_2INTEGER, MPI_MAXLOC, comm)
    code = own
    if (first(1) == 0) return
    text = penstock_string(error%message)
    call MPI_Bcast(code, 1, MPI_INTEGER, first(2), comm)
    call MPI_Bcast(text, len(text), MPI_CHARACTER, first(2), comm)
    if (own /= penstock_ok) return
    write (number, '(i0)') first(2)
    error%code = code
    call tell(error%message, 'rank '//trim(number)//': '//trim(text))
  end function

  subroutine tell(field, text)
    character(kind=c_char), intent(inout) :: field(:)
    character(len=*), intent(in) :: text
    integer :: i
    field = c_null_char
    do i = 1, min(len(text), size(field) - 1)
      field(i) = text(i:i)
    end do
  end subroutine
end module
