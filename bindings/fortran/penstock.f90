! Penstock from Fortran: the C ABI of penstock.h as a module, with the same names.
!
! Everything penstock.h promises holds here; read its numbered conventions first. What Fortran adds:
!
! 1. Handles are c_ptr. A handle passed where another is wanted is refused.
! 2. Absent optional arguments are null pointers. Names are text as it is, without trailing blanks. Those that end in
!    c_null_char, as penstock_name makes them, mean the same; text of structs, and names in calls that end in
!    _set_attribute, must end so.
! 3. Sizes are c_int64_t, as Fortran has no unsigned integers: none above 2**63 - 1.
! 4. Structs have the right struct_size from their declaration on.
! 5. C says the dimension that is farthest in memory first, Fortran the nearest. penstock_shape gives the shape of a
!    dataset as the Fortran array that holds it has it; penstock_dataset_read_box and penstock_dataset_write_box take
!    boxes in that order, with elements counted from 1. What NumPy or C calls shape (rows, columns) is (columns, rows).
! 6. The request of a read has no intent: the memory that it points to is written, which a compiler that is told
!    intent(in) may take for unchanged.
module penstock
  use, intrinsic :: iso_c_binding
  implicit none
  public
  private :: file_open_by_text, datafile_open_by_text, dataset_open_by_text

  enum, bind(c)
    enumerator :: penstock_ok = 0, penstock_invalid_argument = 1, penstock_not_found = 2
    enumerator :: penstock_permission_denied = 3, penstock_not_a_regular_file = 4, penstock_end_of_file = 5
    enumerator :: penstock_no_space = 6, penstock_out_of_memory = 7, penstock_unsupported = 8
    enumerator :: penstock_timed_out = 9, penstock_cancelled = 10, penstock_io_error = 11
    enumerator :: penstock_device_error = 12, penstock_read_only = 13, penstock_fallback_refused = 14
    enumerator :: penstock_internal = 15
  end enum
  enum, bind(c)
    enumerator :: penstock_device = 0, penstock_pinned = 1, penstock_managed = 2, penstock_system = 3
  end enum
  enum, bind(c)
    enumerator :: penstock_touch_none = 0, penstock_touch_cpu = 1, penstock_touch_gpu = 2
  end enum
  enum, bind(c)
    enumerator :: penstock_mode_read = 0, penstock_mode_read_write = 1, penstock_mode_create = 2
  end enum
  enum, bind(c)
    enumerator :: penstock_to_memory = 0, penstock_to_file = 1
  end enum
  integer(c_int64_t), parameter :: penstock_forever = -1

  type, bind(c) :: penstock_error
    integer(c_int64_t) :: struct_size = 4192
    integer(c_int32_t) :: code = 0, system_code = 0
    integer(c_int64_t) :: offset_bytes = 0, length_bytes = 0
    character(kind=c_char) :: operation(64) = c_null_char
    character(kind=c_char) :: file(1024) = c_null_char
    character(kind=c_char) :: cause(512) = c_null_char
    character(kind=c_char) :: advice(512) = c_null_char
    character(kind=c_char) :: message(2048) = c_null_char
  end type

  type, bind(c) :: penstock_text
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: capacity = 0, needed = 0
  end type

  type, bind(c) :: penstock_memory
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: bytes = 0
    integer(c_int32_t) :: kind = 0, reserved = 0
  end type

  type, bind(c) :: penstock_context_options
    integer(c_int64_t) :: struct_size = 72
    type(c_ptr) :: device = c_null_ptr, path = c_null_ptr
    integer(c_int64_t) :: budget_bytes = 0
    integer(c_int32_t) :: workers = 0, strict = 0
    real(c_double) :: emulated_bandwidth_bytes_per_s = 0
    integer(c_int64_t) :: emulated_latency_ns = 0
    type(c_ptr) :: profile = c_null_ptr
    integer(c_int32_t) :: adaptive = 0, reserved = 0
  end type

  type, bind(c) :: penstock_buffer_options
    integer(c_int64_t) :: struct_size = 24
    integer(c_int64_t) :: bytes = 0
    integer(c_int32_t) :: kind = 0, first_touch = 0
  end type

  type, bind(c) :: penstock_pointer
    integer(c_int64_t) :: struct_size = 32
    type(c_ptr) :: base = c_null_ptr
    integer(c_int64_t) :: bytes = 0
    integer(c_int32_t) :: kind = 0, device_index = 0
  end type

  type, bind(c) :: penstock_copy
    type(c_ptr) :: destination = c_null_ptr, source = c_null_ptr
    integer(c_int64_t) :: bytes = 0
  end type

  type, bind(c) :: penstock_open_options
    integer(c_int64_t) :: struct_size = 32
    integer(c_int64_t) :: size_bytes = 0
    integer(c_int32_t) :: mode = 0, durable = 0, refuse_existing = 0, reserved = 0
  end type

  type, bind(c) :: penstock_request
    integer(c_int64_t) :: struct_size = 104
    type(penstock_memory) :: memory
    integer(c_int64_t) :: offset_bytes = 0
    type(c_ptr) :: path = c_null_ptr
    integer(c_int64_t) :: chunk_bytes = 0
    integer(c_int32_t) :: workers = 0, depth = 0
    integer(c_int32_t) :: strict = 0, durable = 0, full_evidence = 0, reserved = 0
    integer(c_int64_t) :: timeout_ms = 0
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type

  type, bind(c) :: penstock_result
    integer(c_int64_t) :: struct_size = 64
    integer(c_int64_t) :: bytes = 0
    real(c_double) :: seconds = 0
    integer(c_int32_t) :: reached_end = 0, fallbacks = 0
    character(kind=c_char) :: path(32) = c_null_char
  end type

  type, bind(c) :: penstock_range
    type(c_ptr) :: file = c_null_ptr
    integer(c_int64_t) :: offset_bytes = 0
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: bytes = 0
  end type

  type, bind(c) :: penstock_ranges
    integer(c_int64_t) :: struct_size = 32
    type(c_ptr) :: items = c_null_ptr
    integer(c_int64_t) :: count = 0
    integer(c_int32_t) :: direction = 0, kind = 0
  end type

  integer, parameter :: penstock_most_dimensions = 16

  type, bind(c) :: penstock_datafile_options
    integer(c_int64_t) :: struct_size = 48
    type(c_ptr) :: format = c_null_ptr
    integer(c_int32_t) :: writable = 0, rank = 0
    type(c_ptr) :: dtype = c_null_ptr, shape = c_null_ptr
    integer(c_int64_t) :: offset_bytes = 0
  end type

  ! shape and chunk_shape are in C order; penstock_shape turns them.
  type, bind(c) :: penstock_dataset_info
    integer(c_int64_t) :: struct_size = 392
    character(kind=c_char) :: dtype(64) = c_null_char
    character(kind=c_char) :: format(32) = c_null_char
    integer(c_int64_t) :: item_bytes = 0, rank = 0, bytes = 0
    integer(c_int32_t) :: is_encoded = 0, is_swapped = 0
    integer(c_int64_t) :: shape(penstock_most_dimensions) = 0
    integer(c_int64_t) :: chunk_shape(penstock_most_dimensions) = 0
  end type

  ! In C order and from 0 on; penstock_dataset_read_box and penstock_dataset_write_box make it.
  type, bind(c) :: penstock_selection
    integer(c_int64_t) :: struct_size = 48
    integer(c_int64_t) :: rank = 0
    type(c_ptr) :: start = c_null_ptr, count = c_null_ptr, step = c_null_ptr, strides_bytes = c_null_ptr
  end type

  type, bind(c) :: penstock_dataset_result
    integer(c_int64_t) :: struct_size = 88
    integer(c_int64_t) :: bytes = 0
    real(c_double) :: seconds = 0
    integer(c_int64_t) :: decoded_bytes = 0, filled_bytes = 0
    integer(c_int32_t) :: fallbacks = 0, reserved = 0
    character(kind=c_char) :: path(32) = c_null_char
    type(c_ptr) :: evidence = c_null_ptr
  end type

  ! The box of a dataset, given as Fortran counts: dimensions in the order of a Fortran array, elements from 1 on.
  type :: penstock_box
    integer(c_int64_t), allocatable :: start(:), count(:), step(:)
  end type

  interface
    integer(c_int32_t) function penstock_abi_version() bind(c)
      import
    end function
    integer(c_int) function penstock_path_names(names, error) bind(c)
      import
      type(penstock_text), intent(inout) :: names
      type(penstock_error), intent(inout), optional :: error
    end function

    integer(c_int) function penstock_context_create(options, context, error) bind(c)
      import
      type(penstock_context_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: context
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_context_destroy(context) bind(c)
      import
      type(c_ptr), value :: context
    end subroutine
    integer(c_int) function penstock_context_device(context, name, error) bind(c)
      import
      type(c_ptr), value :: context
      type(penstock_text), intent(inout) :: name
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_local_device(local_process, name, error) bind(c)
      import
      integer(c_int32_t), value :: local_process
      type(penstock_text), intent(inout) :: name
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_context_pinned(context, now_bytes, peak_bytes, error) bind(c)
      import
      type(c_ptr), value :: context
      integer(c_int64_t), intent(out), optional :: now_bytes, peak_bytes
      type(penstock_error), intent(inout), optional :: error
    end function

    integer(c_int) function penstock_buffer_allocate(context, options, buffer, error) bind(c)
      import
      type(c_ptr), value :: context
      type(penstock_buffer_options), intent(in) :: options
      type(c_ptr), intent(out) :: buffer
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_buffer_free(buffer) bind(c)
      import
      type(c_ptr), value :: buffer
    end subroutine
    type(c_ptr) function penstock_buffer_pointer(buffer) bind(c)
      import
      type(c_ptr), value :: buffer
    end function
    integer(c_int) function penstock_buffer_memory(buffer, memory, error) bind(c)
      import
      type(c_ptr), value :: buffer
      type(penstock_memory), intent(inout) :: memory
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_wrap(context, memory, error) bind(c)
      import
      type(c_ptr), value :: context
      type(penstock_memory), intent(inout) :: memory
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_memory_kind(context, memory, found, error) bind(c)
      import
      type(c_ptr), value :: context, memory
      type(penstock_pointer), intent(inout) :: found
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_copy_to_host(context, host, device, bytes, error) bind(c)
      import
      type(c_ptr), value :: context, host, device
      integer(c_int64_t), value :: bytes
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_copy_to_device(context, device, host, bytes, error) bind(c)
      import
      type(c_ptr), value :: context, device, host
      integer(c_int64_t), value :: bytes
      type(penstock_error), intent(inout), optional :: error
    end function

    integer(c_int) function penstock_copy_pieces(context, direction, copies, count, error) bind(c)
      import
      type(c_ptr), value :: context
      integer(c_int32_t), value :: direction
      type(penstock_copy), intent(in) :: copies(*)
      integer(c_int64_t), value :: count
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_synchronize_stream(context, stream, error) bind(c)
      import
      type(c_ptr), value :: context, stream
      type(penstock_error), intent(inout), optional :: error
    end function

    integer(c_int) function penstock_file_close(file, error) bind(c)
      import
      type(c_ptr), value :: file
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_file_abandon(file) bind(c)
      import
      type(c_ptr), value :: file
    end subroutine
    integer(c_int) function penstock_file_size(file, bytes, error) bind(c)
      import
      type(c_ptr), value :: file
      integer(c_int64_t), intent(out) :: bytes
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_file_resize(file, bytes, error) bind(c)
      import
      type(c_ptr), value :: file
      integer(c_int64_t), value :: bytes
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_file_sync(file, error) bind(c)
      import
      type(c_ptr), value :: file
      type(penstock_error), intent(inout), optional :: error
    end function

    integer(c_int) function penstock_read(file, request, result, error) bind(c)
      import
      type(c_ptr), value :: file
      type(penstock_request) :: request
      type(penstock_result), intent(inout), optional :: result
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_write(file, request, result, error) bind(c)
      import
      type(c_ptr), value :: file
      type(penstock_request), intent(in) :: request
      type(penstock_result), intent(inout), optional :: result
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_start_read(file, request, transfer, error) bind(c)
      import
      type(c_ptr), value :: file
      type(penstock_request) :: request
      type(c_ptr), intent(out) :: transfer
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_start_write(file, request, transfer, error) bind(c)
      import
      type(c_ptr), value :: file
      type(penstock_request), intent(in) :: request
      type(c_ptr), intent(out) :: transfer
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_start_ranges(context, ranges, request, transfer, error) bind(c)
      import
      type(c_ptr), value :: context
      type(penstock_ranges), intent(in) :: ranges
      type(penstock_request), intent(in) :: request
      type(c_ptr), intent(out) :: transfer
      type(penstock_error), intent(inout), optional :: error
    end function

    integer(c_int) function penstock_transfer_wait(transfer, timeout_ms, error) bind(c)
      import
      type(c_ptr), value :: transfer
      integer(c_int64_t), value :: timeout_ms
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_transfer_result(transfer, result, error) bind(c)
      import
      type(c_ptr), value :: transfer
      type(penstock_result), intent(inout), optional :: result
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_transfer_cancel(transfer, error) bind(c)
      import
      type(c_ptr), value :: transfer
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_transfer_progress(transfer, done_bytes, total_bytes, error) bind(c)
      import
      type(c_ptr), value :: transfer
      integer(c_int64_t), intent(out), optional :: done_bytes, total_bytes
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_transfer_evidence(transfer, json, error) bind(c)
      import
      type(c_ptr), value :: transfer
      type(penstock_text), intent(inout) :: json
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_transfer_plan(transfer, text, error) bind(c)
      import
      type(c_ptr), value :: transfer
      type(penstock_text), intent(inout) :: text
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_transfer_free(transfer) bind(c)
      import
      type(c_ptr), value :: transfer
    end subroutine

    subroutine penstock_datafile_close(datafile) bind(c)
      import
      type(c_ptr), value :: datafile
    end subroutine
    integer(c_int) function penstock_datafile_count(datafile, count, error) bind(c)
      import
      type(c_ptr), value :: datafile
      integer(c_int64_t), intent(out) :: count
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_datafile_name(datafile, index, name, error) bind(c)
      import
      type(c_ptr), value :: datafile
      integer(c_int64_t), value :: index
      type(penstock_text), intent(inout) :: name
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_dataset_close(dataset) bind(c)
      import
      type(c_ptr), value :: dataset
    end subroutine
    integer(c_int) function penstock_dataset_describe(dataset, info, error) bind(c)
      import
      type(c_ptr), value :: dataset
      type(penstock_dataset_info), intent(inout) :: info
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_dataset_read(dataset, selection, request, result, error) bind(c)
      import
      type(c_ptr), value :: dataset
      type(penstock_selection), intent(in), optional :: selection
      type(penstock_request) :: request
      type(penstock_dataset_result), intent(inout), optional :: result
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_dataset_write(dataset, selection, request, result, error) bind(c)
      import
      type(c_ptr), value :: dataset
      type(penstock_selection), intent(in), optional :: selection
      type(penstock_request), intent(in) :: request
      type(penstock_dataset_result), intent(inout), optional :: result
      type(penstock_error), intent(inout), optional :: error
    end function
  end interface

  interface penstock_file_open
    integer(c_int) function penstock_file_open_as_in_c(context, name, options, file, error) &
        bind(c, name='penstock_file_open')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      type(penstock_open_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: file
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure file_open_by_text
  end interface

  interface penstock_datafile_open
    integer(c_int) function penstock_datafile_open_as_in_c(context, name, options, datafile, error) &
        bind(c, name='penstock_datafile_open')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      type(penstock_datafile_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: datafile
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure datafile_open_by_text
  end interface

  interface penstock_dataset_open
    integer(c_int) function penstock_dataset_open_as_in_c(datafile, name, dataset, error) &
        bind(c, name='penstock_dataset_open')
      import
      type(c_ptr), value :: datafile
      character(kind=c_char), intent(in), optional :: name(*)
      type(c_ptr), intent(out) :: dataset
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure dataset_open_by_text
  end interface

contains

  integer(c_int) function file_open_by_text(context, name, options, file, error) result(code)
    type(c_ptr), value :: context
    character(len=*), intent(in) :: name
    type(penstock_open_options), intent(in), optional :: options
    type(c_ptr), intent(out) :: file
    type(penstock_error), intent(inout), optional :: error
    code = penstock_file_open_as_in_c(context, penstock_name(name), options, file, error)
  end function

  integer(c_int) function datafile_open_by_text(context, name, options, datafile, error) result(code)
    type(c_ptr), value :: context
    character(len=*), intent(in) :: name
    type(penstock_datafile_options), intent(in), optional :: options
    type(c_ptr), intent(out) :: datafile
    type(penstock_error), intent(inout), optional :: error
    code = penstock_datafile_open_as_in_c(context, penstock_name(name), options, datafile, error)
  end function

  integer(c_int) function dataset_open_by_text(datafile, name, dataset, error) result(code)
    type(c_ptr), value :: datafile
    character(len=*), intent(in) :: name
    type(c_ptr), intent(out) :: dataset
    type(penstock_error), intent(inout), optional :: error
    code = penstock_dataset_open_as_in_c(datafile, penstock_name(name), dataset, error)
  end function

  ! Text as a struct that C reads points to it: without trailing blanks, ended by c_null_char.
  function penstock_name(name) result(ended)
    character(len=*), intent(in) :: name
    character(kind=c_char, len=:), allocatable :: ended
    ended = trim(name)//c_null_char
  end function

  ! Numbers of a default integer; what is not given is not allocated, which an optional argument takes as not given.
  subroutine penstock_widen(given, wide)
    integer(c_int32_t), intent(in), optional :: given(:)
    integer(c_int64_t), intent(out), allocatable :: wide(:)
    if (present(given)) wide = given
  end subroutine

  ! `place` becomes the address of `own`, which gets the text; both stay as they are where there is none.
  subroutine penstock_point_to(text, own, place)
    character(len=*), intent(in), optional :: text
    character(kind=c_char, len=:), allocatable, target, intent(inout) :: own
    type(c_ptr), intent(inout) :: place
    if (.not. present(text)) return
    own = penstock_name(text)
    place = c_loc(own)
  end subroutine

  ! The shape of a dataset as a Fortran array has it: the first dimension is the nearest in memory.
  function penstock_shape(info) result(shape)
    type(penstock_dataset_info), intent(in) :: info
    integer(c_int64_t), allocatable :: shape(:)
    shape = info%shape(info%rank:1:-1)
  end function

  ! penstock_dataset_read of a box, whose elements lie in memory as in a Fortran array of shape box%count.
  integer(c_int) function penstock_dataset_read_box(dataset, box, request, result, error) result(code)
    type(c_ptr), intent(in) :: dataset
    type(penstock_box), intent(in) :: box
    type(penstock_request) :: request
    type(penstock_dataset_result), intent(inout), optional :: result
    type(penstock_error), intent(inout), optional :: error
    integer(c_int64_t), target :: numbers(penstock_most_dimensions, 3)
    type(penstock_selection) :: selection
    selection = penstock_selection_of(box, numbers)
    code = penstock_dataset_read(dataset, selection, request, result, error)
  end function

  integer(c_int) function penstock_dataset_write_box(dataset, box, request, result, error) result(code)
    type(c_ptr), intent(in) :: dataset
    type(penstock_box), intent(in) :: box
    type(penstock_request), intent(in) :: request
    type(penstock_dataset_result), intent(inout), optional :: result
    type(penstock_error), intent(inout), optional :: error
    integer(c_int64_t), target :: numbers(penstock_most_dimensions, 3)
    type(penstock_selection) :: selection
    selection = penstock_selection_of(box, numbers)
    code = penstock_dataset_write(dataset, selection, request, result, error)
  end function

  ! The box in C order and from 0 on. `numbers` holds it as long as the selection is used. A rank that the dataset does
  ! not have, which is what more than 16 numbers become, is refused by the library.
  function penstock_selection_of(box, numbers) result(selection)
    type(penstock_box), intent(in) :: box
    integer(c_int64_t), intent(out), target, contiguous :: numbers(:, :)
    type(penstock_selection) :: selection
    numbers = 0
    if (allocated(box%start)) call turned(box%start, numbers(:, 1), -1_c_int64_t, selection%start, selection%rank)
    if (allocated(box%count)) call turned(box%count, numbers(:, 2), 0_c_int64_t, selection%count, selection%rank)
    if (allocated(box%step)) call turned(box%step, numbers(:, 3), 0_c_int64_t, selection%step, selection%rank)
  end function

  subroutine turned(given, place, added, pointer, rank)
    integer(c_int64_t), intent(in) :: given(:), added
    integer(c_int64_t), intent(inout), target, contiguous :: place(:)
    type(c_ptr), intent(out) :: pointer
    integer(c_int64_t), intent(inout) :: rank
    integer :: most
    most = min(size(given), size(place))
    place(1:most) = given(most:1:-1) + added
    pointer = c_loc(place)
    if (rank /= 0 .and. rank /= size(given)) then
      rank = -1
    else if (rank == 0) then
      rank = size(given)
    end if
  end subroutine

  ! The text in a field of penstock_error or penstock_result.
  function penstock_string(field) result(text)
    character(kind=c_char), intent(in) :: field(:)
    character(len=:), allocatable :: text
    integer :: i
    text = ''
    do i = 1, size(field)
      if (field(i) == c_null_char) return
      text = text//field(i)
    end do
  end function
end module
