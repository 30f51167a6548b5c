! A history whose names and options are plain text. The first bytes of the file tell that the format is the one that was
! said, whatever the options say. Names that end in c_null_char, and arrays of characters, mean the same.
program plain_history_test
  use, intrinsic :: iso_fortran_env, only: error_unit
  use penstock_history
  implicit none
  integer :: failures = 0

  call the_format_is_the_one_that_was_said()
  call what_is_said_goes_before_the_options()
  call slots_and_compression_reach_the_library()
  call without_slots_a_put_is_written_when_it_returns()
  call old_forms_mean_the_same()
  call what_a_model_does_wrong_is_told_in_one_line()
  call shapes_that_do_not_go_together_are_refused()
  call null_handles_are_refused()
  call a_disk_full_at_step_7_leaves_six_steps()
  if (failures > 0) error stop 1

contains

  subroutine check(holds, text)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: text
    if (holds) return
    failures = failures + 1
    write (error_unit, '(2a)') 'does not hold: ', text
  end subroutine

  type(c_ptr) function host_context() result(context)
    type(penstock_context_options) :: options
    character(kind=c_char, len=5), target :: device
    device = 'host'//c_null_char
    options%device = c_loc(device)
    call check(penstock_context_create(options, context) == penstock_ok, 'a host context is made')
  end function

  ! Of so many bytes of a file, which goes then.
  function first_bytes(name, count) result(text)
    character(len=*), intent(in) :: name
    integer, intent(in) :: count
    character(len=count) :: text
    integer :: unit, failed, bytes
    text = ''
    open (newunit=unit, file=name, access='stream', form='unformatted', action='read', status='old', iostat=failed)
    call check(failed == 0, 'there is '//name)
    if (failed /= 0) return
    inquire (unit=unit, size=bytes)
    read (unit, iostat=failed) text(:min(bytes, count))
    close (unit, status='delete')
  end function

  ! Two steps of one field, which closes the history too.
  subroutine write_steps(history)
    type(c_ptr), intent(in) :: history
    type(penstock_error) :: error
    real(c_double), target :: field(4, 3)
    integer :: step
    call check(penstock_history_define(history, 'T', ['x', 'y'], [4_c_int64_t, 3_c_int64_t], source_dtype='float64', &
               error=error) == penstock_ok, 'T is defined')
    do step = 1, 2
      field = step
      call check(penstock_history_put(history, 'T', c_loc(field), error) == penstock_ok, 'T is put')
      call check(penstock_history_end_step(history, 60d0*step, error) == penstock_ok, 'a step ends')
    end do
    call check(penstock_history_put(history, 'U', c_loc(field), error) == penstock_invalid_argument, 'there is no U')
    call check(penstock_history_close(history, error) == penstock_ok, 'the history closes')
  end subroutine

  subroutine the_format_is_the_one_that_was_said()
    character(len=*), parameter :: formats(3) = [character(len=7) :: 'cdf5', 'cdf2', 'netcdf4']
    character(len=*), parameter :: marks(3) = ['CDF'//achar(5), 'CDF'//achar(2), char(137)//'HDF']
    type(c_ptr) :: context, history
    type(penstock_error) :: error
    integer :: i
    context = host_context()
    do i = 1, 3
      call check(penstock_history_open(context, 'plain_history_test.nc', history=history, format=formats(i), &
                 memory=penstock_system, error=error) == penstock_ok, 'a history of '//formats(i)//' opens')
      call write_steps(history)
      call check(first_bytes('plain_history_test.nc', 4) == marks(i), 'it is '//formats(i))
    end do
    call check(penstock_history_open(context, 'plain_history_test.nc', history=history, format='rar', error=error) == &
               penstock_invalid_argument, 'there is no such format')
    call check(index(penstock_string(error%message), 'rar') > 0, 'the message names it')
    call penstock_context_destroy(context)
  end subroutine

  subroutine what_is_said_goes_before_the_options()
    type(c_ptr) :: context, history
    type(penstock_history_options) :: options
    type(penstock_error) :: error
    character(kind=c_char, len=8), target :: form
    integer :: i
    context = host_context()
    form = 'netcdf4'//c_null_char
    options%format = c_loc(form)
    options%memory = penstock_system
    do i = 1, 2
      if (i == 1) then
        call check(penstock_history_open(context, 'plain_history_test.nc', options, history, error, format='cdf5') == &
                   penstock_ok, 'opens with both')
      else
        call check(penstock_history_open(context, 'plain_history_test.nc', options, history, error) == penstock_ok, &
                   'opens with options')
      end if
      call write_steps(history)
      call check((first_bytes('plain_history_test.nc', 3) == 'CDF') .eqv. i == 1, 'what is said, else the options')
    end do
    call penstock_context_destroy(context)
  end subroutine

  subroutine slots_and_compression_reach_the_library()
    type(c_ptr) :: context, history
    type(penstock_history_facts) :: facts
    type(penstock_error) :: error
    real(c_float), target :: field(64, 64)
    context = host_context()
    call check(penstock_history_open(context, 'plain_history_test.nc', history=history, format='netcdf4', slots=3, &
               memory=penstock_system, time_units='days since 2000-01-01', calendar='noleap', compression='gzip', &
               error=error) == penstock_ok, 'opens')
    call check(penstock_history_define(history, 'T', ['x', 'y'], [64_c_int64_t, 64_c_int64_t], error=error) == &
               penstock_ok, 'T is defined')
    field = 1
    call check(penstock_history_put(history, 'T', c_loc(field), error) == penstock_ok, 'T is put')
    call check(penstock_history_end_step(history, 1d0, error) == penstock_ok, 'the step ends')
    call check(penstock_history_wait(history, error) == penstock_ok, 'it is written')
    call check(penstock_history_describe(history, facts, error) == penstock_ok, 'it is described')
    call check(facts%slot_bytes >= 3*16384 .and. facts%slot_bytes < 4*16384, 'memory of three steps')
    call check(facts%stored_bytes < facts%step_bytes/4, 'it is compressed')
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')
    call check(index(first_bytes('plain_history_test.nc', 65536), 'noleap') > 0, 'the file has the calendar')
    call penstock_context_destroy(context)
  end subroutine

  subroutine without_slots_a_put_is_written_when_it_returns()
    type(c_ptr) :: context, history
    type(penstock_history_facts) :: facts
    type(penstock_error) :: error
    real(c_float), target :: field(64, 64)
    context = host_context()
    call check(penstock_history_open(context, 'plain_history_test.nc', history=history, format='netcdf4', &
               slots=penstock_no_slots, memory=penstock_system, error=error) == penstock_ok, 'opens')
    call check(penstock_history_define(history, 'T', ['x', 'y'], [64_c_int64_t, 64_c_int64_t], error=error) == &
               penstock_ok, 'T is defined')
    field = 1
    call check(penstock_history_put(history, 'T', c_loc(field), error) == penstock_ok, 'T is put')
    field = 2
    call check(penstock_history_end_step(history, 1d0, error) == penstock_ok, 'the step ends')
    call check(penstock_history_describe(history, facts, error) == penstock_ok, 'it is described')
    call check(facts%steps_published == 1 .and. facts%slot_bytes == 0, 'it is written, and took no memory')
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')
    call penstock_context_destroy(context)
  end subroutine

  subroutine old_forms_mean_the_same()
    character(kind=c_char), parameter :: name(*) = ['a', '.', 'n', 'c', c_null_char], t(*) = ['T', c_null_char]
    type(c_ptr) :: context, history
    type(penstock_history_options) :: options
    type(penstock_history_variable) :: variable
    type(penstock_error) :: error
    real(c_float), target :: field(4)
    character(kind=c_char, len=2), target :: text
    type(c_ptr), target :: dimensions(1)
    integer(c_int64_t), target :: shape(1)
    context = host_context()
    options%memory = penstock_system
    text = 'T'//c_null_char
    dimensions = c_loc(text)
    shape = 4
    variable%name = c_loc(text)
    variable%dimensions = c_loc(dimensions)
    variable%shape = c_loc(shape)
    variable%rank = 1
    field = 1
    call check(penstock_history_open(context, name, options, history, error) == penstock_ok, 'opens')
    call check(penstock_history_define(history, variable, error) == penstock_ok, 'T is defined')
    call check(penstock_history_put(history, t, c_loc(field), error) == penstock_ok, 'T is put')
    call check(penstock_history_put(history, penstock_name('T'), c_loc(field), error) == penstock_invalid_argument, &
               'and not again')
    call check(penstock_history_end_step(history, 1d0, error) == penstock_ok, 'the step ends')
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')
    call check(first_bytes('a.nc', 3) == 'CDF', 'it has its name')
    call penstock_context_destroy(context)
  end subroutine
  ! Whether the call was refused in one line that has these words.
  subroutine refused(code, error, words)
    integer(c_int), intent(in) :: code
    type(penstock_error), intent(in) :: error
    character(len=*), intent(in) :: words
    character(len=:), allocatable :: message
    message = penstock_string(error%message)
    call check(code == penstock_invalid_argument .and. index(message, words) > 0 .and. &
               index(message, new_line('a')) == 0, words//', and not: '//message)
  end subroutine

  subroutine what_a_model_does_wrong_is_told_in_one_line()
    use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
    type(c_ptr) :: context, history, second, none
    type(penstock_error) :: error
    real(c_double), target :: field(4)
    integer(c_int) :: code
    context = host_context()
    field = 1
    code = penstock_history_open(context, 'plain_history_test.nc', history=none, calendar='maya', error=error)
    call refused(code, error, "there is no calendar 'maya'")
    code = penstock_history_open(context, 'plain_history_test.nc', history=none, time_units='moons', error=error)
    call refused(code, error, "give them as 'seconds since")
    call check(penstock_history_open(context, 'plain_history_test.nc', history=history, memory=penstock_system, &
               error=error) == penstock_ok, 'opens')
    call check(penstock_history_open(context, 'plain_history_test.nc', history=second, error=error) == penstock_ok, &
               'one for memory of the device opens')
    code = penstock_history_field(history, 'T', ['x', 'y'], [4_c_int64_t], source_dtype='float64', error=error)
    call refused(code, error, 'have different lengths')
    call check(penstock_history_field(history, 'T', ['x'], [4_c_int64_t], source_dtype='float64', error=error) == &
               penstock_ok, 'T is defined')
    call check(penstock_history_field(second, 'T', ['x'], [4_c_int64_t], source_dtype='float64', error=error) == &
               penstock_ok, 'T of the second is defined')
    code = penstock_history_put(history, 'U', c_loc(field), error)
    call refused(code, error, "no variable 'U' is defined; defined are: T")
    call check(penstock_history_put(history, 'T', c_loc(field), error) == penstock_ok, 'T is put')
    code = penstock_history_begin(second, error)
    call refused(code, error, 'another history, of this process or another one, writes it')
    code = penstock_history_put(history, 'T', c_loc(field), error)
    call refused(code, error, "variable 'T' was put already in this step")
    code = penstock_history_end_step(history, ieee_value(1d0, ieee_quiet_nan), error)
    call refused(code, error, 'the time is no number')
    call check(penstock_history_end_step(history, 1d0, error) == penstock_ok, 'the step ends all the same')
    code = penstock_history_end_step(history, 2d0, error)
    call refused(code, error, "variable 'T' was not put in this step")
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')
    code = penstock_history_put(second, 'T', c_loc(field), error)
    call refused(code, error, 'not device memory; this history takes memory of the device')
    call penstock_history_abandon(second)
    call check(first_bytes('plain_history_test.nc', 3) == 'CDF', 'a file is there')
    call penstock_context_destroy(context)
  end subroutine

  subroutine shapes_that_do_not_go_together_are_refused()
    type(c_ptr) :: context, history
    type(penstock_error) :: error
    integer(c_int64_t), parameter :: n = 4, whole(2) = [4, 6]
    integer(c_int) :: code
    context = host_context()
    call check(penstock_history_open(context, 'plain_history_test.nc', history=history, memory=penstock_system, &
               error=error) == penstock_ok, 'opens')
    call check(penstock_history_field(history, 'T', ['x'], [n], error=error) == penstock_ok, 'T is defined')
    code = penstock_history_field(history, 'U', ['x'], [n + 1], error=error)
    call refused(code, error, "variable 'U' has 5 elements along 'x', others have 4; give dimensions of another length")
    code = penstock_history_field(history, 'U', ['x', 'y'], [n, n, n], error=error)
    call refused(code, error, 'have different lengths; give one for each')
    code = penstock_history_field(history, 'U', ['x', 'y'], [n, n], halo=[1_c_int64_t], error=error)
    call refused(code, error, 'have different lengths; give one for each')
    code = penstock_history_field(history, 'U', ['x', 'y'], [n, n], global_shape=whole, start=[1_c_int64_t, n], &
                                  error=error)
    call refused(code, error, "'U'")
    code = penstock_history_field(history, 'U', ['x', 'y'], [n, n], global_shape=whole, start=[0_c_int64_t, n], &
                                  error=error)
    call refused(code, error, "'U'")
    code = penstock_history_begin(history, error)
    call check(code == penstock_ok, 'T alone is defined, and the history begins')
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')
    call check(index(first_bytes('plain_history_test.nc', 4096), 'U') == 0, 'there is no U in the file')
    call penstock_context_destroy(context)
  end subroutine

  subroutine null_handles_are_refused()
    type(penstock_error) :: error
    type(penstock_history_facts) :: facts
    real(c_float), target :: field(4)
    integer(c_int) :: code
    code = penstock_history_field(c_null_ptr, 'T', ['x'], [4_c_int64_t], error=error)
    call refused(code, error, 'penstock_history is null; pass a valid pointer')
    code = penstock_history_put(c_null_ptr, 'T', c_loc(field), error)
    call refused(code, error, 'penstock_history is null; pass a valid pointer')
    code = penstock_history_end_step(c_null_ptr, 1d0, error)
    call refused(code, error, 'penstock_history is null; pass a valid pointer')
    code = penstock_history_describe(c_null_ptr, facts, error)
    call refused(code, error, 'penstock_history is null; pass a valid pointer')
    code = penstock_history_close(c_null_ptr, error)
    call refused(code, error, 'penstock_history is null; pass a valid pointer')
    call penstock_history_abandon(c_null_ptr)
  end subroutine

  ! Bytes that a file of this process may have: it stands for a disk that is full, or a quota.
  subroutine limit_files(bytes)
    integer(c_long), intent(in) :: bytes
    integer(c_int), parameter :: file_size = 1, too_large = 25
    integer(c_intptr_t), parameter :: ignore = 1
    type(c_ptr) :: before
    interface ! of POSIX, with the numbers of Linux
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
    before = set_signal(too_large, ignore)
    call check(setrlimit(file_size, [bytes, -1_c_long]) == 0, 'files are limited')
  end subroutine

  ! The model ignores every error, and goes on without output.
  subroutine a_disk_full_at_step_7_leaves_six_steps()
    integer, parameter :: n = 50000, steps = 10
    integer(c_long), parameter :: room = 4096 + 6*(4*n + 8) + 2*n, any_size = -1
    type(c_ptr) :: context, history
    type(penstock_history_facts) :: facts
    type(penstock_error) :: error
    real(c_double), target, save :: field(n)
    character(len=12) :: first
    integer(c_int) :: code
    integer :: step
    context = host_context()
    call check(penstock_history_open(context, 'plain_history_test.nc', history=history, memory=penstock_system, &
               error=error) == penstock_ok, 'opens')
    call check(penstock_history_field(history, 'T', ['x'], [int(n, c_int64_t)], source_dtype='float64', &
               error=error) == penstock_ok, 'T is defined')
    call limit_files(room)
    do step = 1, steps
      field = step
      code = penstock_history_put(history, 'T', c_loc(field), error)
      if (code == penstock_ok) code = penstock_history_end_step(history, real(step, c_double), error)
      if (code == penstock_ok) code = penstock_history_wait(history, error)
      call check((code == penstock_ok) .eqv. (step < 7), 'six steps are written, and no other one')
      if (step >= 7) call told_of_step_7(code, error)
    end do
    call check(penstock_history_describe(history, facts, error) == penstock_ok .and. facts%steps_published == 6, &
               'six steps are seen')
    code = penstock_history_close(history, error)
    call told_of_step_7(code, error)
    call limit_files(any_size)
    first = first_bytes('plain_history_test.nc', 12)
    call check(iachar(first(12:12)) == 6, 'the file has six steps') ! of CDF-5 the 8 bytes behind its mark
    call penstock_context_destroy(context)
  end subroutine

  subroutine told_of_step_7(code, error)
    integer(c_int), intent(in) :: code
    type(penstock_error), intent(in) :: error
    character(len=:), allocatable :: message
    message = penstock_string(error%message)
    call check(code == penstock_no_space .and. index(message, 'history plain_history_test.nc ') > 0 .and. &
               index(message, "step 7, variable 'T': File too large") > 0 .and. index(message, new_line('a')) == 0, &
               message)
  end subroutine
end program
