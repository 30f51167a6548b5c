! Names in calls from Fortran are text as it is: with blanks behind it, and with what lies behind it in memory. A C
! function that got such text itself would read on until a zero comes.
!
! Runs on the emulated device. A failed check counts; the program stops with 1 when any failed.
program names_test
  use penstock_restart
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  character(len=*), parameter :: binary = 'names_test.bin', hdf5 = 'names_test.hdf5', restarts = 'names_test'
  type(c_ptr) :: context
  type(penstock_context_options) :: with
  character(kind=c_char, len=:), allocatable, target :: device
  integer :: failures = 0

  device = penstock_name('host')
  with%device = c_loc(device)
  call check(penstock_context_create(with, context) == penstock_ok, 'a host context is made')
  call a_file_has_its_name()
  call a_snapshot_and_its_datasets_have_their_names()
  call a_restart_has_its_name()
  call execute_command_line('rm '//binary//' '//hdf5//' '//restarts//'.0')
  call penstock_context_destroy(context)
  if (failures > 0) stop 1

contains

  subroutine check(holds, text)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: text
    if (holds) return
    failures = failures + 1
    write (error_unit, '(2a)') 'does not hold: ', text
  end subroutine

  ! Text of a longer variable, as programs read it from their options.
  function padded(text) result(longer)
    character(len=*), intent(in) :: text
    character(len=40) :: longer
    longer = text
  end function

  logical function is_there(name)
    character(len=*), intent(in) :: name
    inquire (file=name, exist=is_there)
  end function

  subroutine a_file_has_its_name()
    type(penstock_open_options) :: create
    type(penstock_error) :: error
    type(c_ptr) :: file
    create%mode = penstock_mode_create
    call check(penstock_file_open(context, binary, create, file, error) == penstock_ok, 'a file is made')
    call check(penstock_file_close(file, error) == penstock_ok .and. is_there(binary), 'by its name')
    call check(penstock_file_open(context, padded(binary), file=file) == penstock_ok, 'blanks are no part of a name')
    call check(penstock_file_close(file) == penstock_ok, 'it closes')
    call check(penstock_file_open(context, penstock_name(binary), file=file) == penstock_ok, 'a name of C is taken too')
    call check(penstock_file_close(file) == penstock_ok, 'it closes again')
  end subroutine

  subroutine a_snapshot_and_its_datasets_have_their_names()
    type(penstock_snapshot_options) :: options
    type(penstock_error) :: error
    type(c_ptr) :: snapshot, datafile, dataset
    real(c_double), target :: x(3, 5)
    x = 1
    options%memory = penstock_system
    call check(penstock_snapshot_open(context, hdf5, options, snapshot, error) == penstock_ok, 'a snapshot opens')
    call check(penstock_snapshot_array(snapshot, 'gas/x', 'float64', [3, 5], error) == penstock_ok, 'x is added')
    call check(penstock_snapshot_add_group(snapshot, padded('stars'), error) == penstock_ok, 'a group is added')
    call check(penstock_snapshot_add_link(snapshot, padded('y'), padded('/gas/x'), error) == penstock_ok, 'a link')
    call check(penstock_snapshot_add_external_link(snapshot, padded('z'), padded(hdf5), padded('/gas/x'), error) &
               == penstock_ok, 'a link into a file')
    call check(penstock_snapshot_text(snapshot, 'stars', 'code', 'a test', error) == penstock_ok, 'the group is there')
    call check(penstock_snapshot_write_all(snapshot, ['gas/x'], [c_loc(x)], [c_sizeof(x)], error=error) &
               == penstock_ok, 'it is written')
    call penstock_snapshot_free(snapshot)
    call check(penstock_datafile_open(context, hdf5, datafile=datafile, error=error) == penstock_ok, 'it is read')
    call check(penstock_dataset_open(datafile, 'gas/x', dataset, error) == penstock_ok, 'x has its name')
    call penstock_dataset_close(dataset)
    call check(penstock_dataset_open(datafile, padded('y'), dataset, error) == penstock_ok, 'and the name of the link')
    call penstock_dataset_close(dataset)
    call penstock_datafile_close(datafile)
  end subroutine

  subroutine a_restart_has_its_name()
    type(penstock_restart_options) :: options
    type(penstock_error) :: error
    type(c_ptr) :: restart
    real(c_double), target :: x(5)
    integer(c_int64_t) :: shape(penstock_most_dimensions), rank
    integer(c_int32_t), target :: step
    integer(c_int32_t) :: found
    x = 1
    options%memory = penstock_system
    call check(penstock_restart_open(context, restarts, options, restart, error) == penstock_ok, 'a restart opens')
    call check(penstock_restart_array(restart, 'x', 'float64', c_loc(x), [5], error=error) == penstock_ok, 'x is set')
    call check(penstock_restart_set_number(restart, 'step', 12, error) == penstock_ok, 'a step is set')
    call check(penstock_restart_write(restart, error=error) == penstock_ok, 'it is written')
    call check(is_there(restarts//'.0'), 'by its name')
    call check(penstock_restart_find(restart, found, error) == penstock_ok .and. found == 1, 'it is found')
    call check(penstock_restart_find(restart, found, error) == penstock_ok .and. found == 1, 'it is found')
    call check(penstock_restart_stored(restart, padded('x'), shape, rank, error=error) == penstock_ok, 'x is stored')
    call check(penstock_restart_get_numbers(restart, padded('step'), padded('int32'), c_loc(step), 4_c_int64_t, error) &
               == penstock_ok .and. step == 12, 'the step is read')
    call check(penstock_restart_get_number(restart, 'stp', step, error) /= penstock_ok, 'there is no such number')
    call check(index(penstock_string(error%message), "'stp'") > 0, 'and the error names it')
    call penstock_restart_free(restart)
  end subroutine
end program
