! One compressed Zarr store of all ranks of a model whose division is fixed, and divides badly: rank r has the rows from
! ny * r / ranks on, inside a halo of one row and one column. They are exchanged for boxes of which a store is made.
!
!     mpifort $(penstock config --mpi-fortran) fixed_division.f90 $(penstock config --libs) -o fixed_division
!     mpirun -n 7 ./fixed_division run.zarr
program fixed_division
  use mpi_f08
  use penstock_mpi
  use penstock_mpi_exchange
  implicit none
  integer(c_int64_t), parameter :: nx = 60, ny = 1000
  integer, parameter :: steps = 5
  type(penstock_error) :: error
  type(penstock_context_options) :: with
  type(penstock_history_options) :: options
  type(penstock_mpi_division) :: division
  type(penstock_mpi_moves) :: moves
  type(c_ptr) :: context, history
  character(kind=c_char, len=:), allocatable, target :: device
  character(len=1024) :: name
  real(c_float), allocatable, target :: field(:, :), to_write(:, :)
  integer(c_int64_t) :: first, before, rows, own_rows, i, j
  integer :: rank, ranks, step

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, name)
  first = ny*rank/ranks
  own_rows = ny*(rank + 1)/ranks - first
  call need(penstock_history_split(ny, ranks, rank, before, rows, error))
  allocate (field(0:nx + 1, 0:own_rows + 1), to_write(nx, max(rows, 1_c_int64_t)), source=0.0_c_float)

  division%dimensions = 2
  division%item_bytes = 4
  division%has%start(:2) = [1_c_int64_t, first + 1]
  division%has%shape(:2) = [nx, own_rows]
  division%has%memory_shape(:2) = [nx + 2, own_rows + 2]
  division%has%memory_start(:2) = 2
  division%gets%start(:2) = [1_c_int64_t, before + 1]
  division%gets%shape(:2) = [nx, rows]
  call need(penstock_mpi_exchange_open(division, MPI_COMM_WORLD, moves, error))

  device = penstock_name('host')
  with%device = c_loc(device)
  call need(penstock_context_create(with, context, error))
  options%encode_threads = 1
  options%memory = penstock_system
  call penstock_mpi_number(options, MPI_COMM_WORLD)
  call need(penstock_history_open(context, name, options, history, error, format='zarr', compression='zstd'))
  call need(penstock_history_field(history, 'T', ['x', 'y'], [nx, rows], global_shape=[nx, ny], &
            start=[1_c_int64_t, before + 1], error=error))
  call need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, error))
  do step = 1, steps
    do j = 1, own_rows
      field(1:nx, j) = [(real(1000*step + (first + j - 1) + i - 1, c_float), i=1, nx)]
    end do
    call penstock_mpi_exchange_move(moves, c_loc(field), c_loc(to_write))
    call need(penstock_history_put(history, 'T', c_loc(to_write), error))
    call need(penstock_mpi_history_end_step(history, 10d0*step, MPI_COMM_WORLD, error))
  end do
  call need(penstock_mpi_history_close(history, MPI_COMM_WORLD, error))
  call penstock_mpi_exchange_close(moves)
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
