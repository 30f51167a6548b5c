! Histories from Fortran: penstock_history.h as a module, with the same names. Compile it after penstock.f90.
!
! Everything penstock_history.h promises holds here, and what penstock.f90 says of its conventions. Fields are defined
! as their Fortran arrays are declared: penstock_history_field takes the nearest dimension first, and ncdump shows it
! last.
module penstock_history
  use penstock
  implicit none
  private :: open_by_text, put_by_text, field_of_int64, field_of_int32

  enum, bind(c)
    enumerator :: penstock_no_statistic = 0, penstock_mean = 1, penstock_minimum = 2, penstock_maximum = 3
  end enum
  integer(c_int32_t), parameter :: penstock_no_slots = -1
  type, bind(c) :: penstock_history_options
    integer(c_int64_t) :: struct_size = 96
    type(c_ptr) :: format = c_null_ptr, time_units = c_null_ptr, calendar = c_null_ptr, path = c_null_ptr
    real(c_double) :: start_time = 0
    integer(c_int32_t) :: slots = 0, memory = 0, durable = 0, refuse_existing = 0, process = 0, processes = 0
    type(c_ptr) :: compression = c_null_ptr
    integer(c_int32_t) :: compression_level = 0, no_shuffle = 0, encode_threads = 0, may_have_gaps = 0
  end type

  type, bind(c) :: penstock_history_variable
    integer(c_int64_t) :: struct_size = 136
    type(c_ptr) :: name = c_null_ptr, dtype = c_null_ptr, source_dtype = c_null_ptr, dimensions = c_null_ptr
    type(c_ptr) :: shape = c_null_ptr, halo_low = c_null_ptr, halo_high = c_null_ptr, strides_bytes = c_null_ptr
    type(c_ptr) :: file_dimensions = c_null_ptr, global_shape = c_null_ptr, start = c_null_ptr
    integer(c_int32_t) :: rank = 0, statistic = 0, keep_bits = 0, reserved = 0
    type(c_ptr) :: compression = c_null_ptr, chunk_shape = c_null_ptr
    integer(c_int32_t) :: compression_level = 0, no_shuffle = 0
  end type

  type, bind(c) :: penstock_history_constant
    integer(c_int64_t) :: struct_size = 64
    type(c_ptr) :: name = c_null_ptr, dtype = c_null_ptr, dimensions = c_null_ptr, shape = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
    integer(c_int64_t) :: rank = 0, bytes = 0
  end type

  type, bind(c) :: penstock_attribute
    integer(c_int64_t) :: struct_size = 48
    type(c_ptr) :: name = c_null_ptr, text = c_null_ptr, dtype = c_null_ptr, numbers = c_null_ptr
    integer(c_int64_t) :: count = 0
  end type

  type, bind(c) :: penstock_history_grid_axis
    type(c_ptr) :: faces = c_null_ptr
    integer(c_int64_t) :: face_count = 0, halo = 0
    type(c_ptr) :: centre_factors = c_null_ptr, face_factors = c_null_ptr
    integer(c_int32_t) :: processes = 0, is_periodic = 0
  end type

  type, bind(c) :: penstock_history_preset
    integer(c_int64_t) :: struct_size = 264
    type(c_ptr) :: layout = c_null_ptr, title = c_null_ptr, source = c_null_ptr, institution = c_null_ptr
    type(c_ptr) :: mapping = c_null_ptr
    type(penstock_history_grid_axis) :: x, y, z
    type(c_ptr) :: ocean_faces = c_null_ptr, land_faces = c_null_ptr, urban_faces = c_null_ptr
    type(c_ptr) :: pressures_hpa = c_null_ptr
    integer(c_int64_t) :: ocean_face_count = 0, land_face_count = 0, urban_face_count = 0, pressure_count = 0
    integer(c_int32_t) :: process = 0, has_boundary = 0
  end type

  type, bind(c) :: penstock_history_facts
    integer(c_int64_t) :: struct_size = 96
    integer(c_int64_t) :: steps_ended = 0, steps_written = 0, steps_published = 0, step_bytes = 0, slot_bytes = 0
    real(c_double) :: put_seconds = 0, wait_seconds = 0, write_seconds = 0
    type(c_ptr) :: evidence = c_null_ptr
    integer(c_int64_t) :: stored_bytes = 0
    real(c_double) :: encode_seconds = 0
  end type

  ! A name is text, or an array of characters that ends in c_null_char.
  interface penstock_history_open
    integer(c_int) function penstock_history_open_as_in_c(context, name, options, history, error) &
        bind(c, name='penstock_history_open')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      type(penstock_history_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: history
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure open_by_text
  end interface

  ! penstock_history_field, or a variable as in C.
  interface penstock_history_define
    integer(c_int) function penstock_history_define_as_in_c(history, variable, error) &
        bind(c, name='penstock_history_define')
      import
      type(c_ptr), value :: history
      type(penstock_history_variable), intent(in) :: variable
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure field_of_int64, field_of_int32
  end interface

  ! Shapes are integer(c_int64_t) or integer(c_int32_t), which default integers are; in one call all are of one kind.
  interface penstock_history_field
    module procedure field_of_int64, field_of_int32
  end interface

  interface penstock_history_put
    integer(c_int) function penstock_history_put_as_in_c(history, variable, data, error) &
        bind(c, name='penstock_history_put')
      import
      type(c_ptr), value :: history
      character(kind=c_char), intent(in) :: variable(*)
      type(c_ptr), value :: data
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure put_by_text
  end interface

  interface
    integer(c_int) function penstock_history_define_constant(history, constant, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_history_constant), intent(in) :: constant
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_set_attribute(history, variable, attribute, error) bind(c)
      import
      type(c_ptr), value :: history
      character(kind=c_char), intent(in), optional :: variable(*)
      type(penstock_attribute), intent(in) :: attribute
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_use_preset(history, preset, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_history_preset), intent(in) :: preset
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_begin(history, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_digest(history, digest, error) bind(c)
      import
      type(c_ptr), value :: history
      integer(c_int64_t), intent(out) :: digest
      type(penstock_error), intent(inout), optional :: error
    end function
    ! start counts from 0, as in C; that of penstock_history_field counts from 1.
    integer(c_int) function penstock_history_split(length, processes, process, start, shape, error) bind(c)
      import
      integer(c_int64_t), value :: length
      integer(c_int32_t), value :: processes, process
      integer(c_int64_t), intent(out) :: start, shape
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_cuts(history, cuts, count, error) bind(c)
      import
      type(c_ptr), value :: history
      type(c_ptr), intent(out) :: cuts
      integer(c_int64_t), intent(out) :: count
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_coverage(history, sums, count, error) bind(c)
      import
      type(c_ptr), value :: history
      type(c_ptr), intent(out) :: sums
      integer(c_int64_t), intent(out) :: count
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_publish(history, steps, error) bind(c)
      import
      type(c_ptr), value :: history
      integer(c_int64_t), value :: steps
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_use_stream(history, stream, error) bind(c)
      import
      type(c_ptr), value :: history
      type(c_ptr), value :: stream
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_end_step(history, time, error) bind(c)
      import
      type(c_ptr), value :: history
      real(c_double), value :: time
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_check_step(history, time, error) bind(c)
      import
      type(c_ptr), value :: history
      real(c_double), value :: time
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_drop_step(history, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_wait(history, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_describe(history, facts, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_history_facts), intent(inout) :: facts
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_history_close(history, error) bind(c)
      import
      type(c_ptr), value :: history
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_history_abandon(history) bind(c)
      import
      type(c_ptr), value :: history
    end subroutine
  end interface

contains

  ! `options` as in C. What is given beside them goes before them, and is not read after the call.
  integer(c_int) function open_by_text(context, name, options, history, error, format, time_units, calendar, memory, &
      slots, compression) result(code)
    type(c_ptr), value :: context
    character(len=*), intent(in) :: name
    type(penstock_history_options), intent(in), optional :: options
    type(c_ptr), intent(out) :: history
    type(penstock_error), intent(inout), optional :: error
    character(len=*), intent(in), optional :: format, time_units, calendar, compression
    integer(c_int), intent(in), optional :: memory, slots
    type(penstock_history_options) :: wanted
    character(kind=c_char, len=:), allocatable, target :: own_format, own_units, own_calendar, own_compression
    if (present(options)) wanted = options
    call penstock_point_to(format, own_format, wanted%format)
    call penstock_point_to(time_units, own_units, wanted%time_units)
    call penstock_point_to(calendar, own_calendar, wanted%calendar)
    call penstock_point_to(compression, own_compression, wanted%compression)
    if (present(memory)) wanted%memory = int(memory, c_int32_t)
    if (present(slots)) wanted%slots = int(slots, c_int32_t)
    code = penstock_history_open_as_in_c(context, penstock_name(name), wanted, history, error)
  end function

  integer(c_int) function put_by_text(history, variable, data, error) result(code)
    type(c_ptr), value :: history, data
    character(len=*), intent(in) :: variable
    type(penstock_error), intent(inout), optional :: error
    code = penstock_history_put_as_in_c(history, penstock_name(variable), data, error)
  end function

  ! penstock_history_define of a field as its Fortran array is declared: the nearest dimension first. The array in
  ! memory has `halo` more elements on both sides of each dimension than `shape`, which is what is written.
  ! `compression`: of this field, "gzip", "zstd", "lz4" or "none"; without it, that of the history. `chunk_shape`: of
  ! its chunks.
  ! Of several processes, each gives its box: `shape` elements from `start` on, counted from 1, of `global_shape`.
  integer(c_int) function field_of_int64(history, name, dimensions, shape, halo, dtype, source_dtype, &
      statistic, keep_bits, global_shape, start, error, compression, compression_level, chunk_shape) result(code)
    type(c_ptr), intent(in) :: history
    character(len=*), intent(in) :: name, dimensions(:)
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int64_t), intent(in), optional :: halo(:), global_shape(:), start(:), chunk_shape(:)
    character(len=*), intent(in), optional :: dtype, source_dtype, compression
    integer(c_int), intent(in), optional :: statistic, keep_bits, compression_level
    type(penstock_error), intent(inout), optional :: error
    type(penstock_history_variable) :: variable
    integer(c_int64_t), target :: numbers(penstock_most_dimensions, 5)
    character(kind=c_char, len=:), allocatable, target :: names, own_name, own_dtype, own_source, own_compression
    type(c_ptr), target :: pointers(penstock_most_dimensions)
    integer(c_int64_t) :: rank
    integer :: i, most, room, first
    rank = 0
    numbers = 0
    call penstock_point_to(name, own_name, variable%name)
    call penstock_point_to(dtype, own_dtype, variable%dtype)
    call penstock_point_to(source_dtype, own_source, variable%source_dtype)
    call penstock_point_to(compression, own_compression, variable%compression)
    call turned(shape, numbers(:, 1), 0_c_int64_t, variable%shape, rank)
    if (present(halo)) call turned(halo, numbers(:, 2), 0_c_int64_t, variable%halo_low, rank)
    variable%halo_high = variable%halo_low
    if (present(global_shape)) call turned(global_shape, numbers(:, 3), 0_c_int64_t, variable%global_shape, rank)
    if (present(start)) call turned(start, numbers(:, 4), -1_c_int64_t, variable%start, rank)
    if (present(compression_level)) variable%compression_level = int(compression_level, c_int32_t)
    if (present(chunk_shape)) call turned(chunk_shape, numbers(:, 5), 0_c_int64_t, variable%chunk_shape, rank)
    if (size(dimensions) /= size(shape)) rank = -1
    most = min(size(dimensions), penstock_most_dimensions)
    room = len(dimensions) + 1
    names = repeat(c_null_char, most*room)
    do i = 1, most
      first = (i - 1)*room + 1
      names(first:first + len_trim(dimensions(most + 1 - i)) - 1) = trim(dimensions(most + 1 - i))
      pointers(i) = c_loc(names(first:first))
    end do
    variable%dimensions = c_loc(pointers)
    variable%rank = int(rank, c_int32_t)
    if (present(statistic)) variable%statistic = int(statistic, c_int32_t)
    if (present(keep_bits)) variable%keep_bits = int(keep_bits, c_int32_t)
    code = penstock_history_define(history, variable, error)
  end function

  integer(c_int) function field_of_int32(history, name, dimensions, shape, halo, dtype, source_dtype, &
      statistic, keep_bits, global_shape, start, error, compression, compression_level, chunk_shape) result(code)
    type(c_ptr), intent(in) :: history
    character(len=*), intent(in) :: name, dimensions(:)
    integer(c_int32_t), intent(in) :: shape(:)
    integer(c_int32_t), intent(in), optional :: halo(:), global_shape(:), start(:), chunk_shape(:)
    character(len=*), intent(in), optional :: dtype, source_dtype, compression
    integer(c_int), intent(in), optional :: statistic, keep_bits, compression_level
    type(penstock_error), intent(inout), optional :: error
    integer(c_int64_t), allocatable :: own_halo(:), whole(:), first(:), chunk(:)  ! not allocated: not given
    call penstock_widen(halo, own_halo)
    call penstock_widen(global_shape, whole)
    call penstock_widen(start, first)
    call penstock_widen(chunk_shape, chunk)
    code = field_of_int64(history, name, dimensions, int(shape, c_int64_t), own_halo, dtype, source_dtype, statistic, &
        keep_bits, whole, first, error, compression, compression_level, chunk)
  end function

  ! An attribute that is text, of the variable of that name; '' for the file.
  integer(c_int) function penstock_history_text(history, variable, name, text, error) result(code)
    type(c_ptr), intent(in) :: history
    character(len=*), intent(in) :: variable, name, text
    type(penstock_error), intent(inout), optional :: error
    type(penstock_attribute) :: attribute
    character(kind=c_char, len=:), allocatable, target :: own_name, own_text
    own_name = penstock_name(name)
    own_text = text//c_null_char
    attribute%name = c_loc(own_name)
    attribute%text = c_loc(own_text)
    code = penstock_history_set_attribute(history, penstock_name(variable), attribute, error)
  end function

  ! The values along one dimension, which has the name of the variable: a coordinate.
  integer(c_int) function penstock_history_axis(history, name, values, error) result(code)
    type(c_ptr), intent(in) :: history
    character(len=*), intent(in) :: name
    real(c_double), intent(in), target, contiguous :: values(:)
    type(penstock_error), intent(inout), optional :: error
    type(penstock_history_constant) :: constant
    character(kind=c_char, len=:), allocatable, target :: own_name
    type(c_ptr), target :: names(1)
    integer(c_int64_t), target :: shape(1)
    own_name = penstock_name(name)
    names(1) = c_loc(own_name)
    shape(1) = size(values)
    constant%name = c_loc(own_name)
    constant%dimensions = c_loc(names)
    constant%shape = c_loc(shape)
    constant%values = c_loc(values)
    constant%rank = 1
    constant%bytes = 8*size(values)
    code = penstock_history_define_constant(history, constant, error)
  end function

  ! Values over two dimensions, the nearest first, that do not change: a longitude, a height, a mask.
  integer(c_int) function penstock_history_places(history, name, dimensions, values, error) result(code)
    type(c_ptr), intent(in) :: history
    character(len=*), intent(in) :: name, dimensions(2)
    real(c_double), intent(in), target, contiguous :: values(:, :)
    type(penstock_error), intent(inout), optional :: error
    type(penstock_history_constant) :: constant
    character(kind=c_char, len=:), allocatable, target :: own_name, near, far
    type(c_ptr), target :: names(2)
    integer(c_int64_t), target :: shape(2)
    own_name = penstock_name(name)
    near = penstock_name(trim(dimensions(1)))
    far = penstock_name(trim(dimensions(2)))
    names = [c_loc(far), c_loc(near)]
    shape = [size(values, 2), size(values, 1)]
    constant%name = c_loc(own_name)
    constant%dimensions = c_loc(names)
    constant%shape = c_loc(shape)
    constant%values = c_loc(values)
    constant%rank = 2
    constant%bytes = 8*size(values)
    code = penstock_history_define_constant(history, constant, error)
  end function

  ! Coordinates and attributes of SCALE-RM, by faces of the whole domain with its halo. `halo`: cells of it at each end
  ! of x, y and z. `processes` along x and y, of which this one is number `process`, from 0 on, along x first.
  ! `preset`: what is not given beside it, as in C.
  integer(c_int) function penstock_history_scale(history, x_faces, y_faces, z_faces, halo, processes, process, &
      periodic, preset, error, title, source, institution, mapping) result(code)
    type(c_ptr), intent(in) :: history
    real(c_double), intent(in), target, contiguous :: x_faces(:), y_faces(:), z_faces(:)
    integer, intent(in), optional :: halo(3), processes(2), process
    logical, intent(in), optional :: periodic(2)
    type(penstock_history_preset), intent(in), optional :: preset
    type(penstock_error), intent(inout), optional :: error
    character(len=*), intent(in), optional :: title, source, institution, mapping
    type(penstock_history_preset) :: wanted
    character(kind=c_char, len=:), allocatable, target :: own_title, own_source, own_institution, own_mapping
    if (present(preset)) wanted = preset
    call penstock_point_to(title, own_title, wanted%title)
    call penstock_point_to(source, own_source, wanted%source)
    call penstock_point_to(institution, own_institution, wanted%institution)
    call penstock_point_to(mapping, own_mapping, wanted%mapping)
    wanted%x%faces = c_loc(x_faces)
    wanted%y%faces = c_loc(y_faces)
    wanted%z%faces = c_loc(z_faces)
    wanted%x%face_count = size(x_faces)
    wanted%y%face_count = size(y_faces)
    wanted%z%face_count = size(z_faces)
    if (present(halo)) then
      wanted%x%halo = halo(1)
      wanted%y%halo = halo(2)
      wanted%z%halo = halo(3)
    end if
    if (present(processes)) then
      wanted%x%processes = int(processes(1), c_int32_t)
      wanted%y%processes = int(processes(2), c_int32_t)
    end if
    if (present(process)) wanted%process = int(process, c_int32_t)
    if (present(periodic)) then
      wanted%x%is_periodic = merge(1_c_int32_t, 0_c_int32_t, periodic(1))
      wanted%y%is_periodic = merge(1_c_int32_t, 0_c_int32_t, periodic(2))
    end if
    code = penstock_history_use_preset(history, wanted, error)
  end function
end module
