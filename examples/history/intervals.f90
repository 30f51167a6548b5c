! Two output intervals of one model, from Fortran: two histories, each with its own file and times.
!
!     gfortran $(penstock config --fortran) intervals.f90 $(penstock config --libs) -o intervals-fortran
!     ./intervals-fortran often_fortran.nc mean_fortran.nc
!
! The first file has the field of each step of the model, the second its mean over six steps. The model puts the field
! into both; neither history waits for the other.
program intervals_example
  use penstock_history
  implicit none
  integer, parameter :: nx = 6, ny = 5, steps = 12, of_mean = 6
  real(c_double), target :: field(nx, ny)
  type(c_ptr) :: context, often, mean
  type(penstock_error) :: error
  integer :: i, j, step

  call need(penstock_context_create(context=context, error=error))
  often = opened(1, 'often_fortran.nc', penstock_no_statistic)
  mean = opened(2, 'mean_fortran.nc', penstock_mean)
  do step = 1, steps
    field = reshape([((100d0*step + 10*(j - 1) + i - 1, i=1, nx), j=1, ny)], [nx, ny])
    call need(penstock_history_put(often, 'T', c_loc(field), error))
    call need(penstock_history_put(mean, 'T', c_loc(field), error))
    call need(penstock_history_end_step(often, 60d0*step, error))
    if (mod(step, of_mean) == 0) call need(penstock_history_end_step(mean, 60d0*step, error))
  end do
  call need(penstock_history_close(often, error))
  call need(penstock_history_close(mean, error))
  call penstock_context_destroy(context)

contains

  ! The name is that argument of the program, or `usual`.
  function opened(number, usual, statistic) result(history)
    integer, intent(in) :: number
    character(len=*), intent(in) :: usual
    integer(c_int), intent(in) :: statistic
    type(c_ptr) :: history
    character(len=1024) :: name
    name = usual
    if (command_argument_count() >= number) call get_command_argument(number, name)
    call need(penstock_history_open(context, name, history=history, memory=penstock_system, & ! the field is of the host
              time_units='seconds since 2000-01-01 00:00:00', error=error))
    call need(penstock_history_field(history, 'T', ['x', 'y'], [int(nx, c_int64_t), int(ny, c_int64_t)], &
              source_dtype='float64', statistic=statistic, error=error))
  end function

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
