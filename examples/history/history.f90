! History output of a running model, from Fortran: a file that ncdump and xarray read, also while the model runs.
!
!     gfortran $(penstock config --fortran) history.f90 $(penstock config --libs) -o history-fortran
!
! The field has a halo of one point on each side and is in double precision. The file has the inner points in single.
! On a GPU, leave out `memory` and pass the address of the array on the device: offload/ has programs for OpenACC,
! OpenMP and CUDA Fortran.
program history_example
  use penstock_history
  implicit none
  integer, parameter :: nx = 60, ny = 40, steps = 6
  real(c_double), target :: field(0:nx + 1, 0:ny + 1)
  type(c_ptr) :: context, history
  type(penstock_history_facts) :: facts
  type(penstock_error) :: error
  integer :: i, step

  call need(penstock_context_create(context=context, error=error))
  call need(penstock_history_open(context, 'history_fortran.nc', history=history, memory=penstock_system, &
            time_units='seconds since 2000-01-01 00:00:00', error=error))
  call need(penstock_history_axis(history, 'x', [(500d0*i, i=1, nx)], error))
  call need(penstock_history_text(history, 'x', 'units', 'm', error))
  call need(penstock_history_field(history, 'T', ['x', 'y'], [int(nx, c_int64_t), int(ny, c_int64_t)], &
            halo=[1_c_int64_t, 1_c_int64_t], source_dtype='float64', error=error))
  call need(penstock_history_text(history, 'T', 'units', 'K', error))
  call need(penstock_history_text(history, '', 'title', 'A plate that warms', error))

  field = 280
  do step = 1, steps
    field(nx/2, ny/2) = 300
    field(1:nx, 1:ny) = field(1:nx, 1:ny) + 0.2d0*(field(0:nx - 1, 1:ny) + field(2:nx + 1, 1:ny) &
                        + field(1:nx, 0:ny - 1) + field(1:nx, 2:ny + 1) - 4*field(1:nx, 1:ny))
    call need(penstock_history_put(history, 'T', c_loc(field), error))
    call need(penstock_history_end_step(history, 10d0*step, error))  ! returns at once
  end do
  call need(penstock_history_wait(history, error))
  call need(penstock_history_describe(history, facts, error))
  print '(i0, a, i0, a)', facts%steps_published, ' steps of ', facts%step_bytes, ' bytes'
  call need(penstock_history_close(history, error))
  call penstock_context_destroy(context)

contains

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
