! Restarts from Fortran: penstock_restart.h as a module, with the same names. Compile it after penstock_snapshot.f90.
!
! Everything penstock_restart.h promises holds here, and what penstock.f90 says of its conventions. Fields are set as
! their Fortran arrays are declared: penstock_restart_array takes the nearest dimension first, and h5py shows it last.
! Particles are columns: positions (3, n) of this process are part of (3, all).
module penstock_restart
  use penstock_snapshot
  implicit none
  private :: get_number, set_number, array_of_int64, array_of_int32
  private :: open_by_text, stored_by_text, numbers_by_text, text_by_text

  type, bind(c) :: penstock_restart_options
    integer(c_int64_t) :: struct_size = 32
    type(c_ptr) :: path = c_null_ptr
    integer(c_int32_t) :: process = 0, processes = 1, memory = 0, not_durable = 0
  end type

  type, bind(c) :: penstock_restart_field
    integer(c_int64_t) :: struct_size = 64
    type(c_ptr) :: name = c_null_ptr, dtype = c_null_ptr, data = c_null_ptr
    type(c_ptr) :: shape = c_null_ptr, start = c_null_ptr, count = c_null_ptr
    integer(c_int64_t) :: rank = 0
  end type

  type, bind(c) :: penstock_restart_facts
    integer(c_int64_t) :: struct_size = 56
    integer(c_int64_t) :: generation = 0, data_bytes = 0
    real(c_double) :: seconds = 0
    type(c_ptr) :: passed_over = c_null_ptr, evidence = c_null_ptr
    integer(c_int32_t) :: is_locked = 0, reserved = 0
  end type

  interface
    integer(c_int) function penstock_restart_set_field(restart, field, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_restart_field), intent(in) :: field
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_set_attribute(restart, attribute, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_snapshot_attribute), intent(in) :: attribute
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_clear(restart, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_use_stream(restart, stream, error) bind(c)
      import
      type(c_ptr), value :: restart, stream
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_write(restart, facts, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_restart_facts), intent(inout), optional :: facts
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_find(restart, found, error) bind(c)
      import
      type(c_ptr), value :: restart
      integer(c_int32_t), intent(out) :: found
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_read(restart, facts, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_restart_facts), intent(inout), optional :: facts
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_digest(restart, digest, error) bind(c)
      import
      type(c_ptr), value :: restart
      integer(c_int64_t), intent(out) :: digest
      type(penstock_error), intent(inout), optional :: error
    end function
    ! part: a C string; c_null_ptr for process 0.
    integer(c_int) function penstock_restart_begin(restart, part, name, error) bind(c)
      import
      type(c_ptr), value :: restart, part
      type(penstock_text), intent(inout), optional :: name
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_move(restart, sums, count, coverage, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(c_ptr), intent(out) :: sums
      integer(c_int64_t), intent(out) :: count, coverage
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_commit(restart, sums, count, coverage, facts, error) bind(c)
      import
      type(c_ptr), value :: restart, sums
      integer(c_int64_t), value :: count, coverage
      type(penstock_restart_facts), intent(inout), optional :: facts
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_abandon(restart, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_generation(restart, generation, error) bind(c)
      import
      type(c_ptr), value :: restart
      integer(c_int64_t), intent(out) :: generation
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_read_found(restart, fault, facts, error) bind(c)
      import
      type(c_ptr), value :: restart
      type(penstock_text), intent(inout) :: fault
      type(penstock_restart_facts), intent(inout), optional :: facts
      type(penstock_error), intent(inout), optional :: error
    end function
    integer(c_int) function penstock_restart_pass_over(restart, fault, error) bind(c)
      import
      type(c_ptr), value :: restart
      character(kind=c_char), intent(in) :: fault(*)
      type(penstock_error), intent(inout), optional :: error
    end function
    subroutine penstock_restart_free(restart) bind(c)
      import
      type(c_ptr), value :: restart
    end subroutine
  end interface

  interface penstock_restart_open
    integer(c_int) function penstock_restart_open_as_in_c(context, name, options, restart, error) &
        bind(c, name='penstock_restart_open')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      type(penstock_restart_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: restart
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure open_by_text
  end interface

  interface penstock_restart_stored
    integer(c_int) function penstock_restart_stored_as_in_c(restart, field, shape, rank, dtype, error) &
        bind(c, name='penstock_restart_stored')
      import
      type(c_ptr), value :: restart
      character(kind=c_char), intent(in) :: field(*)
      integer(c_int64_t), intent(out) :: shape(penstock_most_dimensions), rank
      type(penstock_text), intent(inout), optional :: dtype
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure stored_by_text
  end interface

  interface penstock_restart_get_text
    integer(c_int) function penstock_restart_get_text_as_in_c(restart, name, text, error) &
        bind(c, name='penstock_restart_get_text')
      import
      type(c_ptr), value :: restart
      character(kind=c_char), intent(in) :: name(*)
      type(penstock_text), intent(inout) :: text
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure text_by_text
  end interface

  interface penstock_restart_get_numbers
    integer(c_int) function penstock_restart_get_numbers_as_in_c(restart, name, dtype, values, bytes, error) &
        bind(c, name='penstock_restart_get_numbers')
      import
      type(c_ptr), value :: restart, values
      character(kind=c_char), intent(in) :: name(*), dtype(*)
      integer(c_int64_t), value :: bytes
      type(penstock_error), intent(inout), optional :: error
    end function
    module procedure numbers_by_text
  end interface

  ! An attribute that is one number.
  interface penstock_restart_set_number
    module procedure set_double, set_int32, set_int64
  end interface
  interface penstock_restart_get_number
    module procedure get_double, get_int32, get_int64
  end interface

  ! Shapes are integer(c_int64_t) or integer(c_int32_t), which default integers are; in one call all are of one kind.
  interface penstock_restart_array
    module procedure array_of_int64, array_of_int32
  end interface

contains

  integer(c_int) function open_by_text(context, name, options, restart, error) result(code)
    type(c_ptr), value :: context
    character(len=*), intent(in) :: name
    type(penstock_restart_options), intent(in), optional :: options
    type(c_ptr), intent(out) :: restart
    type(penstock_error), intent(inout), optional :: error
    code = penstock_restart_open_as_in_c(context, penstock_name(name), options, restart, error)
  end function

  integer(c_int) function stored_by_text(restart, field, shape, rank, dtype, error) result(code)
    type(c_ptr), value :: restart
    character(len=*), intent(in) :: field
    integer(c_int64_t), intent(out) :: shape(penstock_most_dimensions), rank
    type(penstock_text), intent(inout), optional :: dtype
    type(penstock_error), intent(inout), optional :: error
    code = penstock_restart_stored_as_in_c(restart, penstock_name(field), shape, rank, dtype, error)
  end function

  integer(c_int) function numbers_by_text(restart, name, dtype, values, bytes, error) result(code)
    type(c_ptr), value :: restart, values
    character(len=*), intent(in) :: name, dtype
    integer(c_int64_t), value :: bytes
    type(penstock_error), intent(inout), optional :: error
    code = penstock_restart_get_numbers_as_in_c(restart, penstock_name(name), penstock_name(dtype), values, bytes, &
                                                error)
  end function

  integer(c_int) function text_by_text(restart, name, text, error) result(code)
    type(c_ptr), value :: restart
    character(len=*), intent(in) :: name
    type(penstock_text), intent(inout) :: text
    type(penstock_error), intent(inout), optional :: error
    code = penstock_restart_get_text_as_in_c(restart, penstock_name(name), text, error)
  end function

  ! penstock_restart_set_field of an array as it is declared in Fortran: the nearest dimension first. start counts from
  ! 1, as indices do; without it and count the box is the whole field.
  integer(c_int) function array_of_int64(restart, name, dtype, data, shape, start, count, error) result(code)
    type(c_ptr), intent(in) :: restart, data
    character(len=*), intent(in) :: name, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int64_t), intent(in), optional :: start(:), count(:)
    type(penstock_error), intent(inout), optional :: error
    type(penstock_restart_field) :: field
    character(kind=c_char, len=:), allocatable, target :: own_name, own_dtype
    integer(c_int64_t), target :: turned(penstock_most_dimensions, 3)
    integer :: rank
    own_name = penstock_name(name)
    own_dtype = penstock_name(dtype)
    rank = min(size(shape), penstock_most_dimensions)
    turned(1:rank, 1) = shape(rank:1:-1)
    field%name = c_loc(own_name)
    field%dtype = c_loc(own_dtype)
    field%data = data
    field%shape = c_loc(turned(1, 1))
    field%rank = size(shape)
    if (present(start)) then
      turned(1:rank, 2) = start(rank:1:-1) - 1
      field%start = c_loc(turned(1, 2))
    end if
    if (present(count)) then
      turned(1:rank, 3) = count(rank:1:-1)
      field%count = c_loc(turned(1, 3))
    end if
    code = penstock_restart_set_field(restart, field, error)
  end function

  integer(c_int) function array_of_int32(restart, name, dtype, data, shape, start, count, error) result(code)
    type(c_ptr), intent(in) :: restart, data
    character(len=*), intent(in) :: name, dtype
    integer(c_int32_t), intent(in) :: shape(:)
    integer(c_int32_t), intent(in), optional :: start(:), count(:)
    type(penstock_error), intent(inout), optional :: error
    integer(c_int64_t), allocatable :: first(:), own_count(:)  ! not allocated: not given
    call penstock_widen(start, first)
    call penstock_widen(count, own_count)
    code = array_of_int64(restart, name, dtype, data, int(shape, c_int64_t), first, own_count, error)
  end function

  integer(c_int) function set_number(restart, name, dtype, value, error) result(code)
    type(c_ptr), intent(in) :: restart, value
    character(len=*), intent(in) :: name, dtype
    type(penstock_error), intent(inout), optional :: error
    type(penstock_snapshot_attribute) :: attribute
    character(kind=c_char, len=:), allocatable, target :: own_name, own_dtype
    own_name = penstock_name(name)
    own_dtype = penstock_name(dtype)
    attribute%name = c_loc(own_name)
    attribute%dtype = c_loc(own_dtype)
    attribute%values = value
    code = penstock_restart_set_attribute(restart, attribute, error)
  end function

  integer(c_int) function set_double(restart, name, value, error) result(code)
    type(c_ptr), intent(in) :: restart
    character(len=*), intent(in) :: name
    real(c_double), intent(in), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = set_number(restart, name, 'float64', c_loc(value), error)
  end function

  integer(c_int) function set_int32(restart, name, value, error) result(code)
    type(c_ptr), intent(in) :: restart
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = set_number(restart, name, 'int32', c_loc(value), error)
  end function

  integer(c_int) function set_int64(restart, name, value, error) result(code)
    type(c_ptr), intent(in) :: restart
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = set_number(restart, name, 'int64', c_loc(value), error)
  end function

  integer(c_int) function get_number(restart, name, dtype, value, bytes, error) result(code)
    type(c_ptr), intent(in) :: restart, value
    character(len=*), intent(in) :: name, dtype
    integer, intent(in) :: bytes
    type(penstock_error), intent(inout), optional :: error
    code = numbers_by_text(restart, name, dtype, value, int(bytes, c_int64_t), error)
  end function

  integer(c_int) function get_double(restart, name, value, error) result(code)
    type(c_ptr), intent(in) :: restart
    character(len=*), intent(in) :: name
    real(c_double), intent(inout), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = get_number(restart, name, 'float64', c_loc(value), 8, error)
  end function

  integer(c_int) function get_int32(restart, name, value, error) result(code)
    type(c_ptr), intent(in) :: restart
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(inout), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = get_number(restart, name, 'int32', c_loc(value), 4, error)
  end function

  integer(c_int) function get_int64(restart, name, value, error) result(code)
    type(c_ptr), intent(in) :: restart
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(inout), target :: value
    type(penstock_error), intent(inout), optional :: error
    code = get_number(restart, name, 'int64', c_loc(value), 8, error)
  end function
end module
