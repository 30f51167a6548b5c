! A compressed Zarr store of all ranks of an MPI program, from Fortran: each rank compresses its rows and writes them to
! files of its own. Compile it with the modules:
!
!     mpifort $(penstock config --mpi-fortran) mpi_history.f90 $(penstock config --libs) -o mpi_history_fortran
!     mpirun -n 4 ./mpi_history_fortran run.zarr
!
! penstock_history_split gives ranks equal numbers of rows, and the last ones what is left, or none.
program mpi_history
  use mpi_f08
  use penstock_mpi
  implicit none
  integer(c_int64_t), parameter :: nx = 60, ny = 23
  integer, parameter :: steps = 5
  type(penstock_error) :: error
  type(penstock_context_options) :: with
  type(penstock_history_options) :: options
  type(penstock_text) :: text
  type(c_ptr) :: context, history
  character(kind=c_char, len=32), target :: device
  character(len=1024) :: name
  real(c_float), allocatable, target :: field(:, :)
  integer(c_int64_t) :: before, rows, i, j
  integer :: rank, ranks, step

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, name)
  text%data = c_loc(device)
  text%capacity = len(device)
  call need(penstock_mpi_local_device(MPI_COMM_WORLD, text, error))
  with%device = c_loc(device)
  call need(penstock_context_create(with, context, error))
  call need(penstock_history_split(ny, ranks, rank, before, rows, error))
  allocate (field(nx, max(rows, 1_c_int64_t)))

  options%encode_threads = 1       ! as it is, each rank takes all cores
  options%memory = penstock_system ! the field of this example is of the host
  call penstock_mpi_number(options, MPI_COMM_WORLD)
  call need(penstock_history_open(context, name, options, history, error, format='zarr', compression='zstd'))
  call need(penstock_history_field(history, 'T', ['x', 'y'], [nx, rows], global_shape=[nx, ny], &
            start=[1_c_int64_t, before + 1], error=error))
  call need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, error))
  do step = 1, steps
    do j = 1, rows
      field(:, j) = [(real(1000*step + 100*(before + j - 1) + i - 1, c_float), i=1, nx)]
    end do
    call need(penstock_history_put(history, 'T', c_loc(field), error))
    call need(penstock_mpi_history_end_step(history, 10d0*step, MPI_COMM_WORLD, error))
  end do
  call need(penstock_mpi_history_close(history, MPI_COMM_WORLD, error))
  if (rank == 0) print '(i0, a, i0, a)', steps, ' steps of ', ranks, ' ranks'
  call penstock_context_destroy(context)
  call MPI_Finalize()

contains

  subroutine need(code)
    use, intrinsic :: iso_fortran_env, only: error_unit
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    write (error_unit, '(a)') penstock_string(error%message)
    flush (error_unit) ! MPI_Abort writes no buffer
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
