! A restart of all ranks of an MPI program, from Fortran: each rank has some of the particles, and another number of
! ranks goes on with them. Compile it with the modules:
!
!     mpifort $(penstock config --mpi-fortran) mpi_restart.f90 $(penstock config --libs) -o mpi_restart
!     mpirun -n 4 ./mpi_restart run_restart
!     mpirun -n 3 ./mpi_restart run_restart
!
! Each run goes on from the newest restart, if there is one, and writes two. A particle knows its number and the step,
! so that the program sees whether it has its own.
program mpi_restart
  use mpi_f08
  use penstock_mpi_restart
  implicit none
  integer(c_int64_t), parameter :: all = 100003
  type(penstock_error) :: error
  type(penstock_context_options) :: with
  type(penstock_restart_options) :: options
  type(penstock_restart_facts) :: facts
  type(penstock_text) :: text
  type(penstock_text), target :: passed_over
  type(c_ptr) :: context, restart
  character(kind=c_char, len=32), target :: device
  character(kind=c_char, len=1024), target :: room
  character(len=1024) :: name
  real(c_double), allocatable, target :: x(:, :)
  integer(c_int64_t) :: first, own, step, i
  integer(c_int32_t) :: found
  integer :: rank, ranks, written

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  text = penstock_text(c_loc(device), len(device))
  call need(penstock_mpi_local_device(MPI_COMM_WORLD, text, error))
  with%device = c_loc(device)
  call need(penstock_context_create(with, context, error))

  call penstock_mpi_restart_number(options, MPI_COMM_WORLD)
  options%memory = penstock_system  ! the particles of this example are of the host
  name = 'run_restart'
  if (command_argument_count() > 0) call get_command_argument(1, name)
  call need(penstock_restart_open(context, name, options, restart, error))
  first = all*rank/ranks + 1
  own = all*(rank + 1)/ranks - first + 1
  allocate (x(3, own))
  call need(penstock_restart_array(restart, 'particles/x', 'float64', c_loc(x), [3_c_int64_t, all], &
                                   [1_c_int64_t, first], [3_c_int64_t, own], error))
  step = 0
  call need(penstock_mpi_restart_find(restart, found, MPI_COMM_WORLD, error))
  if (found /= 0) then
    room = repeat(c_null_char, len(room))
    passed_over = penstock_text(c_loc(room), len(room))
    facts%passed_over = c_loc(passed_over)
    call need(penstock_mpi_restart_read(restart, facts, MPI_COMM_WORLD, error))
    call need(penstock_restart_get_number(restart, 'step', step))
    if (any(x /= particles())) call stop_all('particles are wrong')
    if (rank == 0) print '(i0, a, i0, 2a)', ranks, ' ranks go on from step ', step, '; passed over: ', told(room)
  end if
  do written = 1, 2
    step = step + 1
    x = particles()
    call need(penstock_restart_set_number(restart, 'step', step, error))
    call need(penstock_mpi_restart_write(restart, facts, MPI_COMM_WORLD, error))
  end do
  if (rank == 0) print '(a, i0, a, i0, a)', 'generation ', facts%generation, ' of ', ranks, ' ranks'
  call penstock_restart_free(restart)
  call penstock_context_destroy(context)
  call MPI_Finalize()

contains

  function particles() result(values)
    real(c_double) :: values(3, own)
    do i = 1, own
      values(:, i) = first + i + 0.25d0*step + [0d0, 0.5d0, 0.75d0]
    end do
  end function

  function told(text) result(shown)
    character(len=*), intent(in) :: text
    character(len=:), allocatable :: shown
    shown = text(:index(text, c_null_char) - 1)
    if (shown == '') shown = 'none'
  end function

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code /= penstock_ok) call stop_all(penstock_string(error%message))
  end subroutine

  subroutine stop_all(cause)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(len=*), intent(in) :: cause
    write (error_unit, '(a)') cause
    flush (error_unit) ! MPI_Abort writes no buffer
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
