! Ranks that write a history together and go on whatever they are told: what wrong_history.c does, with fewer mistakes.
program wrong_history
  use, intrinsic :: iso_fortran_env, only: error_unit
  use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
  use mpi_f08
  use penstock_mpi
  implicit none
  integer, parameter :: few = 5000, many = 200000, rows = 2, steps = 6
  type(penstock_error) :: error
  type(penstock_history_options) :: options
  type(penstock_context_options) :: with
  type(c_ptr) :: context, history
  character(len=1024) :: name, mistake
  character(kind=c_char, len=5), target :: device
  real(c_float), allocatable, target :: field(:, :)
  integer :: rank, ranks, step, row, columns

  interface ! of POSIX, as Linux has it
    integer(c_int) function setrlimit(resource, limits) bind(c)
      import :: c_int, c_long
      integer(c_int), value :: resource
      integer(c_long), intent(in) :: limits(2)
    end function
    type(c_ptr) function set_signal(number, handler) bind(c, name='signal')
      import :: c_int, c_intptr_t, c_ptr
      integer(c_int), value :: number
      integer(c_intptr_t), value :: handler
    end function
  end interface

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, name)
  call get_command_argument(2, mistake)
  columns = merge(many, few, mistake == 'full')
  allocate (field(columns, rows))
  step = 0
  device = 'host'//c_null_char
  with%device = c_loc(device)
  call look('context', penstock_context_create(with, context, error))
  options%memory = penstock_system
  call penstock_mpi_number(options, MPI_COMM_WORLD)
  if (does('full')) call fill_disk()
  options%durable = merge(1, 0, mistake == 'full') ! slower than the model, which does not wait
  options%slots = 8
  call look('open', penstock_history_open(context, name, options, history, error))
  call define()
  call look('begin', penstock_mpi_history_begin(history, MPI_COMM_WORLD, error))
  do step = 1, steps
    do row = 1, rows
      field(:, row) = real(1000*step + 10*(rows*rank + row - 1), c_float)
    end do
    if (.not. does('missing')) call look('put', penstock_history_put(history, 'T', c_loc(field), error))
    if (does('unknown')) call look('put', penstock_history_put(history, 'U', c_loc(field), error))
    if (does('null')) call look('put', penstock_history_put(history, 'm', c_null_ptr, error))
    if (.not. does('null')) call look('put', penstock_history_put(history, 'm', c_loc(field), error))
    call look('end', penstock_mpi_history_end_step(history, time_of(step), MPI_COMM_WORLD, error))
  end do
  call look('close', penstock_mpi_history_close(history, MPI_COMM_WORLD, error))
  call penstock_context_destroy(context)
  call tell('end of the model', 'reached')
  call MPI_Finalize()

contains

  ! Whether the last rank makes it now.
  logical function does(what)
    character(len=*), intent(in) :: what
    does = rank == ranks - 1 .and. (step == 0 .or. step == 3) .and. mistake == what
  end function

  subroutine tell(what, text)
    character(len=*), intent(in) :: what, text
    write (error_unit, '(a, i0, a, i0, 4a)') 'rank ', rank, ' step ', step, ' ', what, ': ', text
  end subroutine

  subroutine look(what, code)
    character(len=*), intent(in) :: what
    integer(c_int), intent(in) :: code
    if (code /= penstock_ok) call tell(what, penstock_string(error%message))
  end subroutine

  real(c_double) function time_of(number)
    integer, intent(in) :: number
    time_of = number
    if (does('nan')) time_of = ieee_value(1d0, ieee_quiet_nan)
    if (does('times')) time_of = 3.5d0
  end function

  subroutine define()
    character(len=1) :: names(2)
    integer(c_int64_t) :: whole(2), shape(2)
    names = ['x', 'y']
    whole = [columns, rows*ranks]
    shape = [columns, rows]
    if (does('dimension')) names(1) = 'z'
    if (does('shape')) whole(1) = columns + 1
    if (does('gap')) shape(2) = rows - 1
    call look('define', penstock_history_field(history, 'T', names, shape, global_shape=whole, &
              start=[1_c_int64_t, int(rows*rank + 1, c_int64_t)], error=error))
    call look('define', penstock_history_field(history, 'm', names, shape, global_shape=whole, &
              start=[1_c_int64_t, int(rows*rank + 1, c_int64_t)], statistic=penstock_mean, error=error))
    if (.not. does('variable')) return
    call look('define', penstock_history_field(history, 'more', ['n'], [3_c_int64_t], error=error))
  end subroutine

  ! Four steps of time and two fields fit behind the header, and a part of the fifth.
  subroutine fill_disk()
    integer(c_int), parameter :: file_size = 1, of_file_size = 25
    integer(c_intptr_t), parameter :: ignore = 1
    integer(c_long) :: step_bytes
    type(c_ptr) :: before
    integer(c_int) :: code
    before = set_signal(of_file_size, ignore)
    step_bytes = 8 + 2*4*ranks*rows*columns
    code = setrlimit(file_size, [4096 + 4*step_bytes + step_bytes/4, -1_c_long])
    if (code /= 0) call tell('setrlimit', 'failed')
  end subroutine
end program
