! An ordinary Fortran program whose array lies in memory of a GPU. Words: stream or sequential; device or managed; a
! file; MiB. Each round writes and reads all of it, and prints bytes, GB/s of the READ, two zeros, and how many
! numbers are wrong. CUDA's driver is loaded by name. Arrays that are pointers gfortran would move number by number,
! with the CPU: so the statements are in subroutines, where the array is none.
program gpu_fortran
  use iso_c_binding
  implicit none
  interface
    type(c_ptr) function dlopen(name, flags) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
    end function
    type(c_funptr) function dlsym(library, name) bind(c)
      import
      type(c_ptr), value :: library
      character(kind=c_char), intent(in) :: name(*)
    end function
  end interface
  abstract interface
    integer(c_int) function init_t(flags) bind(c)
      import
      integer(c_int), value :: flags
    end function
    integer(c_int) function device_t(device, number) bind(c)
      import
      integer(c_int), intent(out) :: device
      integer(c_int), value :: number
    end function
    integer(c_int) function retain_t(context, device) bind(c)
      import
      type(c_ptr), intent(out) :: context
      integer(c_int), value :: device
    end function
    integer(c_int) function current_t(context) bind(c)
      import
      type(c_ptr), value :: context
    end function
    integer(c_int) function allocate_t(memory, bytes) bind(c)
      import
      type(c_ptr), intent(out) :: memory
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function managed_t(memory, bytes, flags) bind(c)
      import
      type(c_ptr), intent(out) :: memory
      integer(c_size_t), value :: bytes
      integer(c_int), value :: flags
    end function
    integer(c_int) function copy_t(to, from, bytes) bind(c)
      import
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function set_t(memory, word, words) bind(c)
      import
      type(c_ptr), value :: memory
      integer(c_int), value :: word
      integer(c_size_t), value :: words
    end function
  end interface
  integer, parameter :: rounds = 4
  procedure(init_t), pointer :: init
  procedure(device_t), pointer :: get_device
  procedure(retain_t), pointer :: retain
  procedure(current_t), pointer :: set_current
  procedure(allocate_t), pointer :: allocate_device
  procedure(managed_t), pointer :: allocate_managed
  procedure(copy_t), pointer :: to_device, to_host
  procedure(set_t), pointer :: set_words
  type(c_ptr) :: cuda, context, memory
  character(len=1000) :: how, kind, name, word
  real(8), pointer :: field(:)
  real(8), allocatable, target :: host(:)
  integer(c_size_t) :: bytes
  integer(c_int) :: device
  integer(8) :: began, ended, rate, n, i
  integer :: mib, round, unit
  call get_command_argument(1, how)
  call get_command_argument(2, kind)
  call get_command_argument(3, name)
  call get_command_argument(4, word)
  read (word, *) mib
  n = int(mib, 8) * 131072_8
  bytes = n * 8
  cuda = dlopen('libcuda.so.1' // c_null_char, 258_c_int)
  if (.not. c_associated(cuda)) error stop 'no libcuda.so.1'
  call c_f_procpointer(dlsym(cuda, 'cuInit' // c_null_char), init)
  call c_f_procpointer(dlsym(cuda, 'cuDeviceGet' // c_null_char), get_device)
  call c_f_procpointer(dlsym(cuda, 'cuDevicePrimaryCtxRetain' // c_null_char), retain)
  call c_f_procpointer(dlsym(cuda, 'cuCtxSetCurrent' // c_null_char), set_current)
  call c_f_procpointer(dlsym(cuda, 'cuMemAlloc_v2' // c_null_char), allocate_device)
  call c_f_procpointer(dlsym(cuda, 'cuMemAllocManaged' // c_null_char), allocate_managed)
  call c_f_procpointer(dlsym(cuda, 'cuMemcpyHtoD_v2' // c_null_char), to_device)
  call c_f_procpointer(dlsym(cuda, 'cuMemcpyDtoH_v2' // c_null_char), to_host)
  call c_f_procpointer(dlsym(cuda, 'cuMemsetD32_v2' // c_null_char), set_words)
  if (init(0_c_int) /= 0) error stop 'cuInit'
  if (get_device(device, 0_c_int) /= 0) error stop 'no GPU'
  if (retain(context, device) /= 0) error stop 'no context'
  if (set_current(context) /= 0) error stop 'cuCtxSetCurrent'
  if (kind == 'managed') then
    if (allocate_managed(memory, bytes, 1_c_int) /= 0) error stop 'no memory'
  else
    if (allocate_device(memory, bytes) /= 0) error stop 'no memory'
  end if
  call c_f_pointer(memory, field, [n])
  allocate (host(n))
  do round = 1, rounds
    do i = 1, n
      host(i) = round + 0.5d0 * i
    end do
    if (to_device(memory, c_loc(host), bytes) /= 0) error stop 'copy to the device'
    if (how == 'stream') then
      open (newunit=unit, file=trim(name), form='unformatted', access='stream', status='replace')
    else
      open (newunit=unit, file=trim(name), form='unformatted', access='sequential', status='replace')
    end if
    call write_all(unit, field, n)
    rewind (unit)
    if (set_words(memory, -1_c_int, bytes / 4) /= 0) error stop 'cuMemsetD32'
    call system_clock(began, rate)
    call read_all(unit, field, n)
    call system_clock(ended)
    close (unit)
    host = 0
    if (to_host(c_loc(host), memory, bytes) /= 0) error stop 'copy to the host'
    print '(i0,1x,f0.2,a,i0,a)', bytes, bytes * 1d-9 / (dble(ended - began) / rate), ' 0 0 ', &
      count([(host(i) /= round + 0.5d0 * i, i=1, n)]), ' -'
  end do
contains
  subroutine write_all(unit, field, n)
    integer, intent(in) :: unit
    integer(8), intent(in) :: n
    real(8), intent(in) :: field(n)
    write (unit) field
  end subroutine
  subroutine read_all(unit, field, n)
    integer, intent(in) :: unit
    integer(8), intent(in) :: n
    real(8), intent(out) :: field(n)
    read (unit) field
  end subroutine
end program
