! A model's output by HDF5, written in Fortran and knowing of no driver: steps write|read FILE
!
! python/tests/vfd/test_compiled.py links it with the HDF5 that a wheel brings, which has no module for Fortran: the
! functions of C are declared here. Steps are columns of an array in Fortran, rows of it in the file. `read` compares
! every value, of steps and of the even rows of a table.
module hdf5_functions
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: hid = c_int64_t
  integer(hid), bind(c, name='H5T_NATIVE_DOUBLE_g') :: native_double
  interface
    integer(c_int) function h5open() bind(c, name='H5open')
      import
    end function
    integer(hid) function h5fcreate(name, flags, create, access) bind(c, name='H5Fcreate')
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
      integer(hid), value :: create, access
    end function
    integer(hid) function h5fopen(name, flags, access) bind(c, name='H5Fopen')
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
      integer(hid), value :: access
    end function
    integer(c_int) function h5fclose(file) bind(c, name='H5Fclose')
      import
      integer(hid), value :: file
    end function
    integer(hid) function h5screate_simple(rank, now, most) bind(c, name='H5Screate_simple')
      import
      integer(c_int), value :: rank
      integer(c_int64_t), intent(in) :: now(*)
      type(c_ptr), value :: most
    end function
    integer(c_int) function h5sselect_hyperslab(space, how, start, stride, count, block) &
      bind(c, name='H5Sselect_hyperslab')
      import
      integer(hid), value :: space
      integer(c_int), value :: how
      integer(c_int64_t), intent(in) :: start(*), stride(*), count(*)
      type(c_ptr), value :: block
    end function
    integer(hid) function h5dcreate2(at, name, kind, space, link, create, access) bind(c, name='H5Dcreate2')
      import
      integer(hid), value :: at, kind, space, link, create, access
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(hid) function h5dopen2(at, name, access) bind(c, name='H5Dopen2')
      import
      integer(hid), value :: at, access
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function h5dwrite(set, kind, memory, file, transfer, data) bind(c, name='H5Dwrite')
      import
      integer(hid), value :: set, kind, memory, file, transfer
      real(c_double), intent(in) :: data(*)
    end function
    integer(c_int) function h5dread(set, kind, memory, file, transfer, data) bind(c, name='H5Dread')
      import
      integer(hid), value :: set, kind, memory, file, transfer
      real(c_double), intent(inout) :: data(*)
    end function
    integer(c_int) function h5dclose(set) bind(c, name='H5Dclose')
      import
      integer(hid), value :: set
    end function
  end interface
end module

program steps
  use, intrinsic :: iso_c_binding
  use hdf5_functions
  implicit none
  integer, parameter :: items = 2**20, rows = 3, few = 1000
  real(c_double), allocatable :: field(:)
  character(len=4096) :: how, name
  integer(hid) :: file
  integer :: row, wrong

  call get_command_argument(1, how)
  call get_command_argument(2, name)
  call need(int(h5open(), hid), 'H5open')
  if (how == 'write') then
    file = h5fcreate(trim(name)//c_null_char, 2, 0_hid, 0_hid)
  else
    file = h5fopen(trim(name)//c_null_char, 0, 0_hid)
  end if
  call need(file, 'opening the file')
  allocate (field(items))
  wrong = 0
  do row = 0, rows - 1
    call move_row('plain', int(items, c_int64_t), row, 1_c_int64_t)
  end do
  call move_row('table', int(few, c_int64_t), 2, 2_c_int64_t)
  call need(int(h5fclose(file), hid), 'H5Fclose')
  print '(i0, a)', wrong, ' wrong'
  if (wrong /= 0) stop 1

contains

  ! Row `row` of a dataset of `length` items a row, each `stride`-th item.
  subroutine move_row(set_name, length, row, stride)
    character(len=*), intent(in) :: set_name
    integer(c_int64_t), intent(in) :: length, stride
    integer, intent(in) :: row
    integer(hid) :: set, space, memory
    integer :: item, count
    count = int(length/stride)
    space = h5screate_simple(2, [int(rows, c_int64_t), length], c_null_ptr)
    memory = h5screate_simple(1, [int(count, c_int64_t)], c_null_ptr)
    set = -1
    if (how == 'read' .or. row > 0 .and. set_name == 'plain') set = h5dopen2(file, set_name//c_null_char, 0_hid)
    if (set < 0) set = h5dcreate2(file, set_name//c_null_char, native_double, space, 0_hid, 0_hid, 0_hid)
    call need(set, set_name)
    call need(int(h5sselect_hyperslab(space, 0, [int(row, c_int64_t), 0_c_int64_t], [1_c_int64_t, stride], &
                                      [1_c_int64_t, int(count, c_int64_t)], c_null_ptr), hid), 'H5Sselect_hyperslab')
    if (how == 'write') then
      field = [(row + 0.5d0*item, item=1, items)]
      call need(int(h5dwrite(set, native_double, memory, space, 0_hid, field), hid), 'H5Dwrite')
    else
      field = -1
      call need(int(h5dread(set, native_double, memory, space, 0_hid, field), hid), 'H5Dread')
      wrong = wrong + count_wrong(row, count)
    end if
    call need(int(h5dclose(set), hid), 'H5Dclose')
  end subroutine

  integer function count_wrong(row, count)
    integer, intent(in) :: row, count
    integer :: item
    count_wrong = 0
    do item = 1, count
      if (field(item) /= row + 0.5d0*item) count_wrong = count_wrong + 1
    end do
  end function

  subroutine need(id, what)
    use, intrinsic :: iso_fortran_env, only: error_unit
    integer(hid), intent(in) :: id
    character(len=*), intent(in) :: what
    if (id >= 0) return
    write (error_unit, '(2a)') what, ' failed'
    stop 1
  end subroutine
end program
