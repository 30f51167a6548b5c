! What main.c does, by READ and WRITE of Fortran: the same arguments, elements and numbers. The size of the
! runtime's buffer is in the environment, as gfortran takes it.
module ranks
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function ranks_begin(processes) bind(c)
      import
      integer(c_int), value :: processes
    end function
    subroutine ranks_barrier() bind(c)
    end subroutine
    real(c_double) function ranks_clock() bind(c)
      import
    end function
    subroutine ranks_gather(mine, count, all) bind(c)
      import
      real(c_double), intent(in) :: mine(*)
      integer(c_int), value :: count
      real(c_double), intent(inout) :: all(*)
    end subroutine
    subroutine ranks_end() bind(c)
    end subroutine
    subroutine ranks_fail(what, file) bind(c)
      import
      character(kind=c_char), intent(in) :: what(*), file(*)
    end subroutine
    integer(c_int) function fsync(descriptor) bind(c)
      import
      integer(c_int), value :: descriptor
    end function
  end interface
end module

program array_fortran
  use ranks
  implicit none
  integer, parameter :: numbers = 6
  character(len=4096) :: direction, folder, file, word
  character(len=256) :: message
  integer(8) :: count, seed, i
  integer :: processes, sync, rank, unit, state
  real(8) :: own(numbers), start
  real(8), allocatable :: array(:), all(:)

  call get_command_argument(1, direction)
  call get_command_argument(2, folder)
  count = argument(3)
  seed = argument(5)
  processes = int(argument(6))
  sync = int(argument(7))
  rank = ranks_begin(processes)
  write (word, '(i0)') rank
  file = trim(folder)//'/'//trim(word)//'.bin'
  allocate (array(count), all(numbers*processes), stat=state)
  if (state /= 0) call ranks_fail('no memory for the array of '//c_null_char, trim(file)//c_null_char)
  if (direction == 'write') then
    do i = 1, count
      array(i) = element(i - 1)
    end do
  else
    array = -1
  end if
  own = 0
  call measure()
  if (direction == 'read') then
    do i = 1, count
      if (array(i) /= element(i - 1)) own(6) = own(6) + 1
    end do
  end if
  call ranks_gather(own, numbers, all)
  if (rank == 0) then
    do i = 1, processes
      print '(6(es16.9, 1x), a)', all((i - 1)*numbers + 1:i*numbers), 'fortran'
    end do
  end if
  call ranks_end()

contains

  integer(8) function argument(place)
    integer, intent(in) :: place
    character(len=64) :: text
    call get_command_argument(place, text)
    read (text, *) argument
  end function

  real(8) function element(index)
    integer(8), intent(in) :: index
    element = real((seed*1024_8 + rank)*2_8**27 + index, 8)
  end function

  subroutine check(what)
    character(len=*), intent(in) :: what
    if (state /= 0) call ranks_fail(what//trim(message)//' '//c_null_char, trim(file)//c_null_char)
  end subroutine

  subroutine measure()
    start = ranks_clock()
    open (newunit=unit, file=trim(file), access='stream', form='unformatted', status='old', iostat=state, &
          iomsg=message, action=merge('read     ', 'readwrite', direction == 'read'))
    call check('cannot open: ')
    own(3) = ranks_clock() - start
    call ranks_barrier()
    start = ranks_clock()
    if (direction == 'write') then
      write (unit, iostat=state, iomsg=message) array
      call check('cannot write: ')
      flush (unit, iostat=state, iomsg=message)
      call check('cannot flush: ')
    else
      read (unit, iostat=state, iomsg=message) array
      call check('cannot read: ')
    end if
    own(2) = ranks_clock() - start
    call ranks_barrier()
    own(1) = ranks_clock() - start
    start = ranks_clock()
    if (sync /= 0) then
      if (fsync(fnum(unit)) /= 0) call ranks_fail('cannot fsync'//c_null_char, trim(file)//c_null_char)
      own(4) = ranks_clock() - start
    end if
    start = ranks_clock()
    close (unit, iostat=state, iomsg=message)
    call check('cannot close: ')
    own(5) = ranks_clock() - start
  end subroutine
end program
