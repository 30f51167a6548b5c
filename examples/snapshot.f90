! A snapshot of a simulation, from the memory of the GPU into a file and back, through the Fortran module.
!
!     gfortran $(penstock config --fortran) snapshot.f90 $(penstock config --libs) -o snapshot
!     ./snapshot
!
! The module is compiled with the program, by the same compiler: module files do not travel between compilers. The file
! appears under its name when it is whole, so a run that dies leaves the older one. Without a GPU the device is an
! emulated one on ordinary memory.
program snapshot
  use penstock
  implicit none
  character(len=*), parameter :: name = 'snapshot.bin'
  integer, parameter :: count = 2**20
  integer(c_int64_t), parameter :: bytes = 8_c_int64_t*count
  real(c_double), allocatable, target :: cells(:), wanted(:)
  type(c_ptr) :: context, buffer
  type(penstock_buffer_options) :: room
  type(penstock_request) :: request
  type(penstock_error) :: error
  integer :: cell

  allocate (wanted(count), cells(count))
  wanted = [(273.15_c_double + 0.001_c_double*cell, cell=1, count)]
  cells = 0
  room%bytes = bytes
  call need(penstock_context_create(context=context, error=error))
  call need(penstock_buffer_allocate(context, room, buffer, error))
  call need(penstock_buffer_memory(buffer, request%memory, error))

  call need(penstock_copy_to_device(context, penstock_buffer_pointer(buffer), c_loc(wanted), bytes, error))
  call save()
  call need(penstock_copy_to_device(context, penstock_buffer_pointer(buffer), c_loc(cells), bytes, error))
  call load()
  call need(penstock_copy_to_host(context, c_loc(cells), penstock_buffer_pointer(buffer), bytes, error))
  if (any(cells /= wanted)) error stop 'the numbers are not those that were written'
  print '(2a,i0,a)', name, ' holds ', count, ' cells, read back as they were'

  call penstock_buffer_free(buffer)
  call penstock_context_destroy(context)

contains

  ! Ends the program with the library's own words where a call failed.
  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine

  ! On stable storage when it is closed.
  subroutine save()
    type(penstock_open_options) :: options
    type(c_ptr) :: file
    options%mode = penstock_mode_create
    options%size_bytes = bytes
    options%durable = 1
    call need(penstock_file_open(context, name, options, file, error))
    call need(penstock_write(file, request, error=error))
    call need(penstock_file_close(file, error))
  end subroutine

  subroutine load()
    type(penstock_result) :: result
    type(c_ptr) :: file
    call need(penstock_file_open(context, name, file=file, error=error))
    call need(penstock_read(file, request, result, error))
    print '(i0,2a)', result%bytes, ' bytes by path ', penstock_string(result%path)
    call need(penstock_file_close(file, error))
  end subroutine
end program
