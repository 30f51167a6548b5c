! Snapshots from Fortran: penstock_snapshot.h as a module, with the same names. Compile it after penstock.f90.
!
! Everything penstock_snapshot.h promises holds here, and what penstock.f90 says of its conventions. Datasets are added
! as their Fortran arrays are declared: penstock_snapshot_array takes the nearest dimension first, and h5py shows it
! last: coordinates (3, n) are read as n rows of 3.
module penstock_snapshot
  use penstock
  implicit none
  private :: set_numbers, pointed, array_of_int64, array_of_int32
  private :: open_by_text, group_by_text, link_by_text, external_by_text

  type, bind(c) :: penstock_snapshot_options
    integer(c_int64_t) :: struct_size = 48
    type(c_ptr) :: path = c_null_ptr
    integer(c_int32_t) :: memory = 0, durable = 0, refuse_existing = 0, reserved = 0
    integer(c_int32_t) :: process = 0, processes = 0, file_each = 0, virtual_file = 0
  end type

  type, bind(c) :: penstock_snapshot_dataset
    integer(c_int64_t) :: struct_size = 72
    type(c_ptr) :: path = c_null_ptr, dtype = c_null_ptr, shape = c_null_ptr
    integer(c_int64_t) :: rank = 0
    type(c_ptr) :: process_rows = c_null_ptr
    integer(c_int64_t) :: process_count = 0, chunk_rows = 0
    integer(c_int32_t) :: has_checksums = 0, reserved = 0
  end type

  type, bind(c) :: penstock_snapshot_attribute
    integer(c_int64_t) :: struct_size = 64
    type(c_ptr) :: name = c_null_ptr, dtype = c_null_ptr, values = c_null_ptr, texts = c_null_ptr, shape = c_null_ptr
    integer(c_int32_t) :: rank = 0, text_bytes = 0, any_length = 0, reserved = 0
  end type

  type, bind(c) :: penstock_snapshot_field
    type(c_ptr) :: dataset = c_null_ptr, data = c_null_ptr
    integer(c_int64_t) :: bytes = 0
  end type

  type, bind(c) :: penstock_snapshot_cells
    integer(c_int64_t) :: struct_size = 56
    integer(c_int64_t) :: cells(3) = 0
    real(c_double) :: box_size(3) = 0
  end type

  type, bind(c) :: penstock_snapshot_positions
    integer(c_int64_t) :: type = 0
    type(c_ptr) :: dtype = c_null_ptr, data = c_null_ptr
    integer(c_int64_t) :: particles = 0
  end type

  type, bind(c) :: penstock_snapshot_cell_sums
    integer(c_int64_t) :: struct_size = 48
    type(c_ptr) :: totals = c_null_ptr
    integer(c_int64_t) :: total_count = 0
    type(c_ptr) :: extremes = c_null_ptr
    integer(c_int64_t) :: extreme_count = 0, digest = 0
  end type

  type, bind(c) :: penstock_snapshot_preset
    integer(c_int64_t) :: struct_size = 208
    type(c_ptr) :: layout = c_null_ptr, run_name = c_null_ptr, system = c_null_ptr, code_version = c_null_ptr
    type(c_ptr) :: date = c_null_ptr
    real(c_double) :: time = 0, scale_factor = 1, box_size(3) = 0, hubble_param = 1
    real(c_double) :: omega_matter = 0, omega_lambda = 0, omega_baryon = 0
    real(c_double) :: unit_length_cm = 1, unit_mass_g = 1, unit_time_s = 1, mass_table(7) = 0
    integer(c_int32_t) :: is_cosmological = 0, is_not_periodic = 0
  end type

  type, bind(c) :: penstock_snapshot_facts
    integer(c_int64_t) :: struct_size = 48
    integer(c_int64_t) :: file_bytes = 0, data_bytes = 0
    real(c_double) :: layout_seconds = 0, write_seconds = 0
    type(c_ptr) :: evidence = c_null_ptr
  end type

  interface
    integer(c_int) function penstock_snapshot_add_values(snapshot, dataset, values, bytes, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_dataset), intent(in) :: dataset
      type(c_ptr), value :: values
      integer(c_int64_t), value :: bytes
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_add_cells(snapshot, cells, positions, count, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_cells), intent(in) :: cells
      type(penstock_snapshot_positions), intent(in) :: positions(*)
      integer(c_int64_t), value :: count
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_count_cells(snapshot, cells, positions, count, sums, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_cells), intent(in) :: cells
      type(penstock_snapshot_positions), intent(in) :: positions(*)
      integer(c_int64_t), value :: count
      type(penstock_snapshot_cell_sums), intent(inout) :: sums
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_add_counted_cells(snapshot, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_sort_by_cells(snapshot, cells, positions, count, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_cells), intent(in) :: cells
      type(penstock_snapshot_positions), intent(in) :: positions(*)
      integer(c_int64_t), value :: count
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_sort_and_count(snapshot, cells, positions, count, sums, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_cells), intent(in) :: cells
      type(penstock_snapshot_positions), intent(in) :: positions(*)
      integer(c_int64_t), value :: count
      type(penstock_snapshot_cell_sums), intent(inout) :: sums
      type(penstock_error), intent(inout), optional :: error
    end function
    ! The numbers in `order` begin with 0.
    integer(c_int) function penstock_snapshot_cell_order(cells, positions, order, error) bind(c)
      import
      type(penstock_snapshot_cells), intent(in) :: cells
      type(penstock_snapshot_positions), intent(in) :: positions
      integer(c_int64_t), intent(out) :: order(*)
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_digest(snapshot, digest, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      integer(c_int64_t), intent(out) :: digest
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_begin(snapshot, place, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      character(kind=c_char), intent(in) :: place(*)
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_place(snapshot, place, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_text), intent(inout) :: place
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_commit(snapshot, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_add_dataset(snapshot, dataset, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_dataset), intent(in) :: dataset
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_set_attribute(snapshot, path, attribute, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      character(kind=c_char), intent(in) :: path(*)
      type(penstock_snapshot_attribute), intent(in) :: attribute
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_use_preset(snapshot, preset, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_preset), intent(in) :: preset
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_use_stream(snapshot, stream, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(c_ptr), value :: stream
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_snapshot_write(snapshot, fields, count, facts, error) bind(c)
      import
      type(c_ptr), value :: snapshot
      type(penstock_snapshot_field), intent(in) :: fields(*)
      integer(c_int64_t), value :: count
      type(penstock_snapshot_facts), intent(inout), optional :: facts
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_snapshot_abandon(snapshot) bind(c)
      import
      type(c_ptr), value :: snapshot
    end subroutine
    subroutine penstock_snapshot_free(snapshot) bind(c)
      import
      type(c_ptr), value :: snapshot
    end subroutine
  end interface

  interface penstock_snapshot_open
    integer(c_int) function penstock_snapshot_open_as_in_c(context, name, options, snapshot, error) &
        bind(c, name='penstock_snapshot_open')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      type(penstock_snapshot_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: snapshot
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure open_by_text
  end interface

  interface penstock_snapshot_add_group
    integer(c_int) function penstock_snapshot_add_group_as_in_c(snapshot, path, error) &
        bind(c, name='penstock_snapshot_add_group')
      import
      type(c_ptr), value :: snapshot
      character(kind=c_char), intent(in) :: path(*)
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure group_by_text
  end interface

  interface penstock_snapshot_add_link
    integer(c_int) function penstock_snapshot_add_link_as_in_c(snapshot, path, target_path, error) &
        bind(c, name='penstock_snapshot_add_link')
      import
      type(c_ptr), value :: snapshot
      character(kind=c_char), intent(in) :: path(*), target_path(*)
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure link_by_text
  end interface

  interface penstock_snapshot_add_external_link
    integer(c_int) function penstock_snapshot_add_external_link_as_in_c(snapshot, path, file, target_path, error) &
        bind(c, name='penstock_snapshot_add_external_link')
      import
      type(c_ptr), value :: snapshot
      character(kind=c_char), intent(in) :: path(*), file(*), target_path(*)
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure external_by_text
  end interface

  ! An attribute that is one number, or an array of numbers (also of one): of the group or dataset of that path; '/' is
  ! the file.
  interface penstock_snapshot_number
    module procedure number_double, number_int32, number_int64, numbers_double, numbers_int32, numbers_int64
  end interface

  ! The shape is of integer(c_int64_t) or integer(c_int32_t), which default integers are.
  interface penstock_snapshot_array
    module procedure array_of_int64, array_of_int32
  end interface

contains

  integer(c_int) function open_by_text(context, name, options, snapshot, error) result(code)
    type(c_ptr), value :: context
    character(len=*), intent(in) :: name
    type(penstock_snapshot_options), intent(in), optional :: options
    type(c_ptr), intent(out) :: snapshot
    type(penstock_error), intent(inout), optional :: error
    code = penstock_snapshot_open_as_in_c(context, penstock_name(name), options, snapshot, error)
  end function

  integer(c_int) function group_by_text(snapshot, path, error) result(code)
    type(c_ptr), value :: snapshot
    character(len=*), intent(in) :: path
    type(penstock_error), intent(inout), optional :: error
    code = penstock_snapshot_add_group_as_in_c(snapshot, penstock_name(path), error)
  end function

  integer(c_int) function link_by_text(snapshot, path, target_path, error) result(code)
    type(c_ptr), value :: snapshot
    character(len=*), intent(in) :: path, target_path
    type(penstock_error), intent(inout), optional :: error
    code = penstock_snapshot_add_link_as_in_c(snapshot, penstock_name(path), penstock_name(target_path), error)
  end function

  integer(c_int) function external_by_text(snapshot, path, file, target_path, error) result(code)
    type(c_ptr), value :: snapshot
    character(len=*), intent(in) :: path, file, target_path
    type(penstock_error), intent(inout), optional :: error
    code = penstock_snapshot_add_external_link_as_in_c(snapshot, penstock_name(path), penstock_name(file), &
                                                       penstock_name(target_path), error)
  end function

  ! penstock_snapshot_add_dataset of an array as it is declared in Fortran: the nearest dimension first.
  integer(c_int) function array_of_int64(snapshot, path, dtype, shape, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    type(penstock_error), intent(inout), optional :: error
    type(penstock_snapshot_dataset) :: dataset
    character(kind=c_char, len=:), allocatable, target :: own_path, own_dtype
    integer(c_int64_t), target :: turned_shape(penstock_most_dimensions)
    integer :: rank
    call penstock_point_to(path, own_path, dataset%path)
    call penstock_point_to(dtype, own_dtype, dataset%dtype)
    rank = min(size(shape), penstock_most_dimensions)
    turned_shape(1:rank) = shape(rank:1:-1)
    dataset%shape = c_loc(turned_shape)
    dataset%rank = size(shape)
    code = penstock_snapshot_add_dataset(snapshot, dataset, error)
  end function

  integer(c_int) function array_of_int32(snapshot, path, dtype, shape, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, dtype
    integer(c_int32_t), intent(in) :: shape(:)
    type(penstock_error), intent(inout), optional :: error
    code = array_of_int64(snapshot, path, dtype, int(shape, c_int64_t), error)
  end function

  ! An attribute that is text of fixed length.
  integer(c_int) function penstock_snapshot_text(snapshot, path, name, text, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name, text
    type(penstock_error), intent(inout), optional :: error
    type(penstock_snapshot_attribute) :: attribute
    character(kind=c_char, len=:), allocatable, target :: own_name, own_text
    type(c_ptr), target :: texts(1)
    call penstock_point_to(name, own_name, attribute%name)
    own_text = text//c_null_char
    texts(1) = c_loc(own_text)
    attribute%texts = c_loc(texts)
    code = penstock_snapshot_set_attribute(snapshot, penstock_name(path), attribute, error)
  end function

  ! penstock_snapshot_write of fields by the paths of their datasets: `data` and `bytes` of each, in the same order.
  integer(c_int) function penstock_snapshot_write_all(snapshot, paths, data, bytes, facts, error) result(code)
    type(c_ptr), intent(in) :: snapshot, data(:)
    character(len=*), intent(in) :: paths(:)
    integer(c_int64_t), intent(in) :: bytes(:)
    type(penstock_snapshot_facts), intent(inout), optional :: facts
    type(penstock_error), intent(inout), optional :: error
    character(kind=c_char, len=len(paths) + 1), allocatable, target :: names(:)
    type(penstock_snapshot_field), allocatable :: fields(:)
    integer :: i, count
    count = min(size(paths), size(data), size(bytes))
    allocate (names(count), fields(count))
    do i = 1, count
      names(i) = trim(paths(i))//c_null_char
      fields(i)%dataset = pointed(names(i))
      fields(i)%data = data(i)
      fields(i)%bytes = bytes(i)
    end do
    code = penstock_snapshot_write(snapshot, fields, int(count, c_int64_t), facts, error)
  end function

  type(c_ptr) function pointed(text)
    character(kind=c_char, len=*), intent(in), target :: text
    pointed = c_loc(text)
  end function

  integer(c_int) function set_numbers(snapshot, path, name, dtype, values, shape, error) result(code)
    type(c_ptr), intent(in) :: snapshot, values
    character(len=*), intent(in) :: path, name, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    type(penstock_error), intent(inout), optional :: error
    type(penstock_snapshot_attribute) :: attribute
    character(kind=c_char, len=:), allocatable, target :: own_name, own_dtype
    integer(c_int64_t), target :: own_shape(1)  ! none or one dimension
    call penstock_point_to(name, own_name, attribute%name)
    call penstock_point_to(dtype, own_dtype, attribute%dtype)
    own_shape = sum(shape)
    attribute%values = values
    attribute%shape = c_loc(own_shape)
    attribute%rank = size(shape, kind=c_int32_t)
    code = penstock_snapshot_set_attribute(snapshot, penstock_name(path), attribute, error)
  end function

  integer(c_int) function number_double(snapshot, path, name, value, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name
    real(c_double), intent(in), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = set_numbers(snapshot, path, name, 'float64', c_loc(value), [integer(c_int64_t) ::], error)
  end function

  integer(c_int) function number_int32(snapshot, path, name, value, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name
    integer(c_int32_t), intent(in), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = set_numbers(snapshot, path, name, 'int32', c_loc(value), [integer(c_int64_t) ::], error)
  end function

  integer(c_int) function number_int64(snapshot, path, name, value, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name
    integer(c_int64_t), intent(in), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = set_numbers(snapshot, path, name, 'int64', c_loc(value), [integer(c_int64_t) ::], error)
  end function

  integer(c_int) function numbers_double(snapshot, path, name, values, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name
    real(c_double), intent(in), target, contiguous :: values(:)
    type(penstock_error), intent(inout), optional :: error
    code = set_numbers(snapshot, path, name, 'float64', c_loc(values), [size(values, kind=c_int64_t)], error)
  end function

  integer(c_int) function numbers_int32(snapshot, path, name, values, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name
    integer(c_int32_t), intent(in), target, contiguous :: values(:)
    type(penstock_error), intent(inout), optional :: error
    code = set_numbers(snapshot, path, name, 'int32', c_loc(values), [size(values, kind=c_int64_t)], error)
  end function

  integer(c_int) function numbers_int64(snapshot, path, name, values, error) result(code)
    type(c_ptr), intent(in) :: snapshot
    character(len=*), intent(in) :: path, name
    integer(c_int64_t), intent(in), target, contiguous :: values(:)
    type(penstock_error), intent(inout), optional :: error
    code = set_numbers(snapshot, path, name, 'int64', c_loc(values), [size(values, kind=c_int64_t)], error)
  end function
end module
