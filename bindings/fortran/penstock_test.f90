! The Fortran module against the library: sizes of structs, a round trip, errors in words, evidence.
!
! Runs on the emulated device. A failed check counts; the program stops with 1 when any failed.
program penstock_test
  use penstock_history
  use penstock_restart
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer :: failures = 0

  call structs_have_the_size_they_claim()
  call what_was_written_is_read_back()
  call a_missing_file_is_named()
  call a_handle_of_another_kind_is_refused()
  call boxes_have_the_dimensions_of_fortran_arrays()
  call a_history_has_the_dimensions_of_fortran_arrays()
  call fields_of_a_history_are_compressed()
  call a_snapshot_is_written_by_one_call()
  call a_restart_is_written_and_read_in_other_boxes()
  if (failures > 0) stop 1

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
    type(penstock_error) :: error
    character(kind=c_char), save, target :: device(5) = ['h', 'o', 's', 't', c_null_char]
    options%device = c_loc(device)
    call check(penstock_context_create(options, context, error) == penstock_ok, 'a host context is made')
    if (error%code /= penstock_ok) write (error_unit, '(a)') penstock_string(error%message)
  end function

  ! The library refuses a struct_size smaller than the struct in C, so both sides are compared with the number between.
  subroutine structs_have_the_size_they_claim()
    type(penstock_error) :: error
    type(penstock_context_options) :: context
    type(penstock_buffer_options) :: buffer
    type(penstock_open_options) :: open_options
    type(penstock_request) :: request
    type(penstock_result) :: result
    type(penstock_ranges) :: ranges
    type(penstock_pointer) :: pointer
    type(penstock_datafile_options) :: datafile
    type(penstock_dataset_info) :: info
    type(penstock_selection) :: selection
    type(penstock_dataset_result) :: dataset_result
    type(penstock_history_options) :: history
    type(penstock_history_variable) :: variable
    type(penstock_history_constant) :: constant
    type(penstock_attribute) :: attribute
    type(penstock_history_facts) :: facts
    type(penstock_snapshot_options) :: snapshot
    type(penstock_snapshot_dataset) :: dataset_of_snapshot
    type(penstock_snapshot_attribute) :: attribute_of_snapshot
    type(penstock_snapshot_preset) :: preset
    type(penstock_snapshot_facts) :: facts_of_snapshot
    type(penstock_history_preset) :: preset_of_history
    type(penstock_snapshot_cells) :: cells
    type(penstock_snapshot_cell_sums) :: sums
    type(penstock_restart_options) :: restart
    type(penstock_restart_field) :: field_of_restart
    type(penstock_restart_facts) :: facts_of_restart
    call check(c_sizeof(snapshot) == snapshot%struct_size, 'size of penstock_snapshot_options')
    call check(c_sizeof(dataset_of_snapshot) == dataset_of_snapshot%struct_size, 'size of penstock_snapshot_dataset')
    call check(c_sizeof(attribute_of_snapshot) == attribute_of_snapshot%struct_size, 'penstock_snapshot_attribute')
    call check(c_sizeof(preset) == preset%struct_size, 'size of penstock_snapshot_preset')
    call check(c_sizeof(preset_of_history) == preset_of_history%struct_size, 'size of penstock_history_preset')
    call check(c_sizeof(cells) == cells%struct_size .and. c_sizeof(sums) == sums%struct_size, 'size of cells and sums')
    call check(c_sizeof(restart) == restart%struct_size, 'size of penstock_restart_options')
    call check(c_sizeof(field_of_restart) == field_of_restart%struct_size, 'size of penstock_restart_field')
    call check(c_sizeof(facts_of_restart) == facts_of_restart%struct_size, 'size of penstock_restart_facts')
    call check(c_sizeof(facts_of_snapshot) == facts_of_snapshot%struct_size, 'size of penstock_snapshot_facts')
    call check(c_sizeof(history) == history%struct_size, 'size of penstock_history_options')
    call check(c_sizeof(variable) == variable%struct_size, 'size of penstock_history_variable')
    call check(c_sizeof(constant) == constant%struct_size, 'size of penstock_history_constant')
    call check(c_sizeof(attribute) == attribute%struct_size, 'size of penstock_attribute')
    call check(c_sizeof(facts) == facts%struct_size, 'size of penstock_history_facts')
    call check(c_sizeof(datafile) == datafile%struct_size, 'size of penstock_datafile_options')
    call check(c_sizeof(info) == info%struct_size, 'size of penstock_dataset_info')
    call check(c_sizeof(selection) == selection%struct_size, 'size of penstock_selection')
    call check(c_sizeof(dataset_result) == dataset_result%struct_size, 'size of penstock_dataset_result')
    call check(c_sizeof(error) == error%struct_size, 'size of penstock_error')
    call check(c_sizeof(context) == context%struct_size, 'size of penstock_context_options')
    call check(c_sizeof(buffer) == buffer%struct_size, 'size of penstock_buffer_options')
    call check(c_sizeof(open_options) == open_options%struct_size, 'size of penstock_open_options')
    call check(c_sizeof(request) == request%struct_size, 'size of penstock_request')
    call check(c_sizeof(result) == result%struct_size, 'size of penstock_result')
    call check(c_sizeof(ranges) == ranges%struct_size, 'size of penstock_ranges')
    call check(c_sizeof(pointer) == pointer%struct_size, 'size of penstock_pointer')
  end subroutine

  subroutine what_was_written_is_read_back()
    integer, parameter :: count = 300001
    real(c_double), allocatable, target :: wanted(:), got(:)
    integer(c_int64_t) :: bytes, size_bytes
    type(c_ptr) :: context, buffer, file, transfer
    type(penstock_buffer_options) :: room
    type(penstock_open_options) :: create
    type(penstock_request) :: request
    type(penstock_result) :: result
    type(penstock_error) :: error
    integer :: i
    character(len=*), parameter :: name = 'penstock_fortran_test.bin'
    allocate (wanted(count), got(count))
    wanted = [(sqrt(real(i, c_double)), i=1, count)]
    got = 0
    bytes = 8_c_int64_t*count
    context = host_context()
    room%bytes = bytes
    call check(penstock_buffer_allocate(context, room, buffer) == penstock_ok, 'a buffer is allocated')
    call check(penstock_copy_to_device(context, penstock_buffer_pointer(buffer), c_loc(wanted), bytes) == 0, 'copy up')
    call check(penstock_buffer_memory(buffer, request%memory) == penstock_ok, 'a buffer has memory')
    create%mode = penstock_mode_create
    call check(penstock_file_open(context, penstock_name(name), create, file, error) == penstock_ok, 'create')
    call check(penstock_write(file, request, result, error) == penstock_ok, 'write')
    call check(result%bytes == bytes, 'all bytes are written')
    call check(penstock_file_close(file, error) == penstock_ok, 'close')

    call check(penstock_copy_to_device(context, penstock_buffer_pointer(buffer), c_loc(got), bytes) == 0, 'clear')
    call check(penstock_file_open(context, penstock_name(name), file=file) == penstock_ok, 'open')
    call check(penstock_file_size(file, size_bytes) == penstock_ok .and. size_bytes == bytes, 'size')
    call check(penstock_start_read(file, request, transfer) == penstock_ok, 'start')
    call check(penstock_transfer_wait(transfer, penstock_forever) == penstock_ok, 'wait')
    call check(penstock_transfer_result(transfer, result, error) == penstock_ok, 'result')
    call check(result%bytes == bytes .and. len(penstock_string(result%path)) > 0, 'the result tells bytes and path')
    call evidence_is_json(transfer)
    call check(penstock_copy_to_host(context, c_loc(got), penstock_buffer_pointer(buffer), bytes) == 0, 'copy down')
    call check(all(got == wanted), 'the numbers are the same')
    got(7) = -got(7)
    call check(.not. all(got == wanted), 'control: one changed number is noticed')
    call penstock_transfer_free(transfer)
    call check(penstock_file_close(file) == penstock_ok, 'close again')
    call penstock_buffer_free(buffer)
    call penstock_context_destroy(context)
    open (newunit=i, file=name)
    close (i, status='delete')
  end subroutine

  subroutine evidence_is_json(transfer)
    type(c_ptr), intent(in) :: transfer
    character(kind=c_char), allocatable, target :: room(:)
    type(penstock_text) :: text
    call check(penstock_transfer_evidence(transfer, text) == penstock_ok .and. text%needed > 2, 'evidence has a length')
    allocate (room(text%needed))
    text%data = c_loc(room)
    text%capacity = size(room, kind=c_int64_t)
    call check(penstock_transfer_evidence(transfer, text) == penstock_ok, 'evidence')
    call check(room(1) == '{' .and. room(size(room)) == c_null_char, 'evidence is one object, terminated')
  end subroutine

  subroutine a_missing_file_is_named()
    type(c_ptr) :: context, file
    type(penstock_error) :: error
    context = host_context()
    call check(penstock_file_open(context, penstock_name('absent.bin  '), file=file, error=error) == &
               penstock_not_found, 'a missing file is not found')
    call check(index(penstock_string(error%message), 'absent.bin') > 0, 'the message names it')
    call check(.not. c_associated(file), 'no handle comes with a failure')
    call penstock_context_destroy(context)
  end subroutine

  ! A file of NumPy's shape (4, 3): in Fortran an array of shape (3, 4), written by Fortran in its own order.
  subroutine npy_of(name, table)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: table(3, 4)
    character(len=118) :: header
    integer :: unit
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (4, 3), }"
    header(118:118) = new_line('a')
    open (newunit=unit, file=name, access='stream', form='unformatted', status='replace')
    write (unit) char(147)//'NUMPY'//char(1)//char(0)//char(118)//char(0)//header, table
    close (unit)
  end subroutine

  subroutine boxes_have_the_dimensions_of_fortran_arrays()
    character(len=*), parameter :: name = 'penstock_fortran_test.npy'
    integer(c_int32_t), target :: table(3, 4), got(2, 2)
    type(c_ptr) :: context, datafile, dataset
    type(penstock_datafile_options) :: options
    type(penstock_dataset_info) :: info
    type(penstock_dataset_result) :: result
    type(penstock_request) :: request
    type(penstock_error) :: error
    type(penstock_box) :: box
    integer(c_int64_t) :: count
    integer :: i, k
    do k = 1, 4
      table(:, k) = [(10*k + i, i=1, 3)]
    end do
    call npy_of(name, table)
    got = 0
    context = host_context()
    options%writable = 1
    call check(penstock_datafile_open(context, penstock_name(name), options, datafile, error) == penstock_ok, 'open')
    call check(penstock_datafile_count(datafile, count) == penstock_ok .and. count == 1, 'one dataset')
    call check(penstock_dataset_open(datafile, dataset=dataset, error=error) == penstock_ok, 'the only dataset')
    call check(penstock_dataset_describe(dataset, info) == penstock_ok, 'describe')
    call check(all(penstock_shape(info) == [3, 4]), 'the shape is that of the Fortran array')
    call check(penstock_string(info%dtype) == 'int32', 'the type has its name')
    box%start = [2_c_int64_t, 1_c_int64_t]
    box%count = [2_c_int64_t, 2_c_int64_t]
    box%step = [1_c_int64_t, 3_c_int64_t]
    request%memory%data = c_loc(got)
    request%memory%bytes = c_sizeof(got)
    request%memory%kind = penstock_system
    call check(penstock_dataset_read_box(dataset, box, request, result, error) == penstock_ok, 'read a box')
    call check(all(got == table(2:3, 1:4:3)) .and. result%bytes == c_sizeof(got), 'the elements of the section')
    got = -got
    call check(penstock_dataset_write_box(dataset, box, request) == penstock_ok, 'write a box')
    table(2:3, 1:4:3) = -table(2:3, 1:4:3)
    got = 0
    call check(penstock_dataset_read_box(dataset, box, request) == penstock_ok, 'read it again')
    call check(all(got == table(2:3, 1:4:3)), 'what was written')
    box%count = [3_c_int64_t]
    call check(penstock_dataset_read_box(dataset, box, request) == penstock_invalid_argument, 'ranks that differ')
    call penstock_dataset_close(dataset)
    call penstock_datafile_close(datafile)
    call penstock_context_destroy(context)
    open (newunit=i, file=name)
    close (i, status='delete')
  end subroutine

  subroutine a_handle_of_another_kind_is_refused()
    type(c_ptr) :: context
    integer(c_int64_t) :: bytes
    context = host_context()
    call check(penstock_file_size(context, bytes) == penstock_invalid_argument, 'a context is no file')
    call penstock_context_destroy(context)
  end subroutine
  ! Layers of one element along the last dimension are the chunks.
  subroutine fields_of_a_history_are_compressed()
    character(len=*), parameter :: name = 'penstock_test.history.nc'
    type(c_ptr) :: context, history
    type(penstock_history_options) :: options
    type(penstock_history_facts) :: facts
    type(penstock_error) :: error
    real(c_float), target :: field(50, 40)
    character(kind=c_char, len=:), allocatable, target :: format, compression
    context = host_context()
    format = penstock_name('netcdf4')
    compression = penstock_name('gzip')
    options%memory = penstock_system
    options%format = c_loc(format)
    options%compression = c_loc(compression)
    call check(penstock_history_open(context, penstock_name(name), options, history, error) == penstock_ok, 'opens')
    call check(penstock_history_field(history, 'T', ['x', 'y'], [50, 40], &
               chunk_shape=[50, 1], error=error) == penstock_ok, 'T is defined')
    call check(penstock_history_field(history, 'U', ['x', 'y'], [50_c_int64_t, 40_c_int64_t], compression='rar', &
               error=error) == penstock_invalid_argument, 'there is no such compression')
    call check(penstock_history_field(history, 'U', ['x', 'y'], [50_c_int64_t, 40_c_int64_t], compression='gzip', &
               compression_level=9, error=error) == penstock_ok, 'U is defined')
    field = 2.5
    field(1, 1) = 7
    call check(penstock_history_put(history, penstock_name('T'), c_loc(field), error) == penstock_ok, 'T is put')
    call check(penstock_history_put(history, penstock_name('U'), c_loc(field), error) == penstock_ok, 'U is put')
    call check(penstock_history_end_step(history, 0d0, error) == penstock_ok, 'ends')
    call check(penstock_history_wait(history, error) == penstock_ok, 'is written')
    call check(penstock_history_describe(history, facts, error) == penstock_ok, 'is described')
    call check(facts%step_bytes == 8 + 16000 .and. facts%stored_bytes < 4000, 'it is small')
    call check(facts%encode_seconds > 0, 'it was compressed')
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')
    call penstock_context_destroy(context)
  end subroutine
  ! Three steps of a field of 4 by 3 with a halo of 2 and 1, in double precision, which the file has in single.
  subroutine a_history_has_the_dimensions_of_fortran_arrays()
    character(len=*), parameter :: name = 'penstock_test.history.nc'
    type(c_ptr) :: context, history, datafile, dataset
    type(penstock_history_options) :: options
    type(penstock_history_facts) :: facts
    type(penstock_dataset_info) :: info
    type(penstock_request) :: request
    type(penstock_error) :: error
    real(c_double), target :: field(-1:6, 0:4)
    real(c_float), target :: found(4, 3, 3), part(4, 3, 3)
    character(kind=c_char, len=:), allocatable, target :: units
    integer :: i, k, step
    context = host_context()
    units = penstock_name('seconds since 2000-01-01 00:00:00')
    options%memory = penstock_system
    options%time_units = c_loc(units)
    call check(penstock_history_open(context, penstock_name(name), options, history, error) == penstock_ok, 'opens')
    call check(penstock_history_field(history, 'T', ['x', 'y'], [4_c_int64_t, 3_c_int64_t], &
               halo=[2_c_int64_t, 1_c_int64_t], source_dtype='float64', error=error) == penstock_ok, 'is defined')
    if (error%code /= penstock_ok) write (error_unit, '(a)') penstock_string(error%message)
    call check(penstock_history_field(history, 'U', ['x ', 'zz'], [4_c_int64_t], error=error) == &
               penstock_invalid_argument, 'two names and one extent are refused')
    call check(penstock_history_define(history, 'P', ['x', 'y'], [2, 3], halo=[3, 1], source_dtype='float64', &
               global_shape=[4, 3], start=[2, 1], error=error) == penstock_ok, 'a box is defined by default integers')
    call check(penstock_history_axis(history, 'x', [1d0, 2d0, 3d0, 4d0], error) == penstock_ok, 'an axis')
    call check(penstock_history_text(history, 'T', 'units', 'K', error) == penstock_ok, 'units')
    call check(penstock_history_text(history, '', 'title', 'a test', error) == penstock_ok, 'a title')
    call check(penstock_history_text(history, 'V', 'units', 'K', error) == penstock_invalid_argument, 'no V')
    do step = 1, 3
      do k = 0, 4
        field(:, k) = [(100*step + 10*k + i, i=-1, 6)]
      end do
      call check(penstock_history_put(history, penstock_name('T'), c_loc(field), error) == penstock_ok, 'is put')
      call check(penstock_history_put(history, penstock_name('P'), c_loc(field), error) == penstock_ok, 'P is put')
      field = -1
      call check(penstock_history_end_step(history, 60d0*step, error) == penstock_ok, 'ends')
    end do
    call check(penstock_history_wait(history, error) == penstock_ok, 'is written')
    call check(penstock_history_describe(history, facts, error) == penstock_ok, 'is described')
    call check(facts%steps_published == 3 .and. facts%step_bytes == 8 + 2*48, 'facts')
    call check(penstock_history_close(history, error) == penstock_ok, 'closes')

    call check(penstock_datafile_open(context, penstock_name(name), datafile=datafile, error=error) == penstock_ok, &
               'the file opens')
    call check(penstock_dataset_open(datafile, penstock_name('T'), dataset, error) == penstock_ok, 'has T')
    call check(penstock_dataset_describe(dataset, info, error) == penstock_ok, 'T is described')
    call check(all(penstock_shape(info) == [4, 3, 3]), 'T has the shape of the Fortran array, and steps')
    request%memory%data = c_loc(found)
    request%memory%bytes = c_sizeof(found)
    request%memory%kind = penstock_system
    call check(penstock_dataset_read(dataset, request=request, error=error) == penstock_ok, 'T is read')
    do step = 1, 3
      do k = 1, 3
        call check(all(abs(found(:, k, step) - [(100*step + 10*k + i, i=1, 4)]) < 0.5), 'T is what was put')
      end do
    end do
    call penstock_dataset_close(dataset)
    call check(penstock_dataset_open(datafile, penstock_name('P'), dataset, error) == penstock_ok, 'has P')
    request%memory%data = c_loc(part)
    call check(penstock_dataset_read(dataset, request=request, error=error) == penstock_ok, 'P is read')
    call check(all(abs(part(2:3, :, :) - found(2:3, :, :)) < 0.5), 'the box lies where it begins')
    call penstock_dataset_close(dataset)
    call penstock_datafile_close(datafile)
    call penstock_context_destroy(context)
    call execute_command_line('rm -f '//name)
  end subroutine

  ! What h5py reads of such a file is compared in python/tests/snapshot.
  subroutine a_snapshot_is_written_by_one_call()
    character(len=*), parameter :: name = 'penstock_test.snapshot.hdf5'
    character(len=11), parameter :: paths(2) = ['PartType0/x', 'PartType0/m']
    type(c_ptr) :: context, snapshot
    type(penstock_snapshot_options) :: options
    type(penstock_snapshot_preset) :: preset
    type(penstock_snapshot_facts) :: facts
    type(penstock_error) :: error
    real(c_double), target :: x(3, 5)
    real(c_float), target :: m(5)
    character(kind=c_char, len=:), allocatable, target :: layout
    context = host_context()
    x = 1
    m = 2
    options%memory = penstock_system
    layout = penstock_name('swift')
    preset%layout = c_loc(layout)
    call check(penstock_snapshot_open(context, penstock_name(name), options, snapshot, error) == penstock_ok, 'opens')
    call check(penstock_snapshot_array(snapshot, paths(1), 'float64', [3, 5], error) == penstock_ok, 'x is added')
    call check(penstock_snapshot_array(snapshot, paths(1), 'float64', [3_c_int64_t, 5_c_int64_t], error) == &
               penstock_invalid_argument, 'x twice is refused')
    call check(index(penstock_string(error%message), 'added twice') > 0, 'and the error says so')
    call check(penstock_snapshot_array(snapshot, paths(2), 'float32', [5_c_int64_t], error) == penstock_ok, 'm')
    call check(penstock_snapshot_use_preset(snapshot, preset, error) == penstock_ok, 'has a layout')
    call check(penstock_snapshot_number(snapshot, '/', 'n', 5, error) == penstock_ok, 'a number')
    call check(penstock_snapshot_number(snapshot, '/', 'a', [1d0], error) == penstock_ok, 'an array')
    call check(penstock_snapshot_text(snapshot, 'None', 't', 'text', error) == penstock_invalid_argument, 'no group')
    call check(penstock_snapshot_write_all(snapshot, paths, [c_loc(x), c_loc(m)], [c_sizeof(x), 16_c_size_t], &
               facts, error) == penstock_invalid_argument, 'another shape is refused')
    call check(index(penstock_string(error%message), 'is given 16 bytes and takes 20') > 0, 'and the error says so')
    call check(penstock_snapshot_write_all(snapshot, paths, [c_loc(x), c_loc(m)], [c_sizeof(x), c_sizeof(m)], facts, &
               error) == penstock_ok, 'is written')
    call check(facts%data_bytes == 140, 'facts')
    call penstock_snapshot_free(snapshot)
    call penstock_context_destroy(context)
    call execute_command_line('rm '//name)
  end subroutine

  ! What h5py reads of such a file is compared in python/tests/restart.
  subroutine a_restart_is_written_and_read_in_other_boxes()
    character(len=*), parameter :: name = 'penstock_test.restart'
    type(c_ptr) :: context, restart
    type(penstock_restart_options) :: options
    type(penstock_restart_facts) :: facts
    type(penstock_error) :: error
    real(c_double), target :: x(3, 5), part(3, 2)
    real(c_double) :: time
    integer(c_int32_t) :: found
    integer(c_int64_t) :: step, shape(penstock_most_dimensions), rank
    integer :: i
    context = host_context()
    x = reshape([(real(i, c_double), i=1, 15)], [3, 5])
    options%memory = penstock_system
    options%not_durable = 1
    call check(penstock_restart_open(context, penstock_name(name), options, restart, error) == penstock_ok, 'opens')
    call check(penstock_restart_find(restart, found, error) == penstock_ok .and. found == 0, 'there is none')
    call check(penstock_restart_array(restart, 'p/x', 'float64', c_loc(x), [3_c_int64_t, 5_c_int64_t], &
               error=error) == penstock_ok, 'x is set')
    call check(penstock_restart_set_number(restart, 'step', 12_c_int64_t, error) == penstock_ok, 'a step')
    call check(penstock_restart_set_number(restart, 'time', 0.5d0, error) == penstock_ok, 'a time')
    call check(penstock_restart_write(restart, facts, error) == penstock_ok, 'is written')
    call check(facts%generation == 1 .and. facts%data_bytes == 120, 'facts')
    call check(penstock_restart_find(restart, found, error) == penstock_ok .and. found == 1, 'is found')
    call check(penstock_restart_stored(restart, penstock_name('p/x'), shape, rank, error=error) == penstock_ok, 'shape')
    call check(rank == 2 .and. shape(1) == 5 .and. shape(2) == 3, 'in C order')
    call check(penstock_restart_get_number(restart, 'step', step) == penstock_ok .and. step == 12, 'the step')
    call check(penstock_restart_get_number(restart, 'time', time) == penstock_ok .and. time == 0.5d0, 'the time')
    call check(penstock_restart_array(restart, 'p/x', 'float64', c_loc(part), [3, 5], start=[1, 3], count=[3, 2], &
               error=error) == penstock_ok, 'a box, by default integers')
    call check(penstock_restart_read(restart, facts, error) == penstock_ok, 'is read')
    call check(all(part == x(:, 3:4)), 'the third and the fourth column')
    call check(penstock_restart_write(restart, facts, error) == penstock_invalid_argument, 'a part alone is refused')
    call check(index(penstock_string(error%message), 'each element of each field once') > 0, 'and the error says so')
    call penstock_restart_free(restart)
    call penstock_context_destroy(context)
    call execute_command_line('rm '//name//'.0')
  end subroutine
end program
