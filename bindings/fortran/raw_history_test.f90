! Raw files of a history, read by Fortran alone: step n of a field begins behind the bytes of n - 1 steps.
program raw_history_test
  use, intrinsic :: iso_c_binding
  use penstock
  use penstock_history
  implicit none
  character(len=*), parameter :: name = 'raw_history_test.raw'
  type(c_ptr) :: context, history
  type(penstock_context_options) :: host
  type(penstock_error) :: error
  real(c_float), target :: field(4, 3), found(4, 3)
  character(kind=c_char, len=:), allocatable, target :: device
  integer :: unit, step
  device = penstock_name('host')
  host%device = c_loc(device)
  call need(penstock_context_create(host, context, error))
  call need(penstock_history_open(context, name, history=history, format='raw', memory=penstock_system, error=error))
  call need(penstock_history_field(history, 'T', ['x', 'y'], [4_c_int64_t, 3_c_int64_t], error=error))
  do step = 1, 3
    field = real(step)
    field(4, 1) = 100*step
    call need(penstock_history_put(history, 'T', c_loc(field), error))
    call need(penstock_history_end_step(history, 60d0*step, error))
  end do
  call need(penstock_history_close(history, error))
  call penstock_context_destroy(context)
  open (newunit=unit, file=name//'/T.raw', access='stream', form='unformatted', action='read')
  do step = 3, 1, -1
    read (unit, pos=(step - 1)*48 + 1) found
    field = real(step)
    field(4, 1) = 100*step
    if (any(abs(found - field) > 0.5)) error stop 'it is another step'
  end do
  close (unit)
  call execute_command_line('rm -r '//name)

contains

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 'a call failed'
  end subroutine
end program
