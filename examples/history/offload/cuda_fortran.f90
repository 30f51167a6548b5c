! History output of a model whose fields are device arrays of CUDA Fortran.
!
!     nvfortran -cuda $(penstock config --fortran) cuda_fortran.f90 $(penstock config --libs) -o cuda-fortran
!     ./cuda-fortran cuda_fortran.nc
!
! c_devloc gives the address of a device array as a type(c_devptr), which `transfer` turns into the type(c_ptr) that
! Penstock takes. The loops run on the default stream, and a put waits for them. It needs a GPU.
program cuda_fortran_example
  use cudafor
  use penstock_history
  implicit none
  integer, parameter :: nx = 60, ny = 40, steps = 6
  real(c_double), allocatable, device :: field(:, :), change(:, :)
  type(c_ptr) :: context, history
  type(penstock_error) :: error
  integer :: i, j, step

  allocate (field(0:nx + 1, 0:ny + 1), change(nx, ny))
  field = 280
  change = 0
  call need(penstock_context_create(context=context, error=error))
  call open_history
  do step = 1, steps
    !$cuf kernel do(2) <<<*, *>>>
    do j = 1, ny
      do i = 1, nx
        change(i, j) = 0.125d0*(field(i - 1, j) + field(i + 1, j) + field(i, j - 1) + field(i, j + 1) - 4*field(i, j))
      end do
    end do
    !$cuf kernel do(2) <<<*, *>>>
    do j = 1, ny
      do i = 1, nx
        field(i, j) = field(i, j) + change(i, j) + merge(8, 0, i == nx/2 .and. j == ny/2)
      end do
    end do
    call need(penstock_history_put(history, 'T', transfer(c_devloc(field), c_null_ptr), error))
    call need(penstock_history_put(history, 'change', transfer(c_devloc(change), c_null_ptr), error))
    call need(penstock_history_end_step(history, 10d0*step, error))
  end do
  call need(penstock_history_close(history, error))
  call penstock_context_destroy(context)

contains

  ! The name is the first argument of the program. Fields lie in memory of the device unless `memory` says other.
  subroutine open_history
    character(len=1024) :: name
    name = 'cuda_fortran.nc'
    if (command_argument_count() >= 1) call get_command_argument(1, name)
    call need(penstock_history_open(context, name, history=history, &
              time_units='seconds since 2000-01-01 00:00:00', error=error))
    call need(penstock_history_field(history, 'T', ['x', 'y'], [nx, ny], halo=[1, 1], dtype='float64', &
              source_dtype='float64', error=error))
    call need(penstock_history_field(history, 'change', ['x', 'y'], [nx, ny], dtype='float64', &
              source_dtype='float64', error=error))
  end subroutine

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
