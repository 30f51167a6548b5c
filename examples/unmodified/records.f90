! Writes or reads sequential records of doubles and prints the seconds: records HOW FILE RECORDS ITEMS
!
! HOW is `write`, which ends when the disk has the file (FLUSH and fsync), or `read`. The clock runs around these
! statements alone. What was read is compared afterwards, all of it.
program records
  use, intrinsic :: iso_c_binding, only: c_int, c_char, c_null_char
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  implicit none
  interface
    integer(c_int) function c_open(name, flags) bind(c, name='open')
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
    end function
    integer(c_int) function c_fsync(descriptor) bind(c, name='fsync')
      import
      integer(c_int), value :: descriptor
    end function
  end interface
  real(real64), allocatable :: values(:, :)
  character(len=4096) :: how, file
  integer :: unit, item, record
  integer(int64) :: began, ended, rate

  call get_command_argument(1, how)
  call get_command_argument(2, file)
  allocate (values(word(4), word(3)))
  values = -1
  if (how == 'write') then
    do record = 1, size(values, 2)
      values(:, record) = [(of(record, item), item = 1, size(values, 1))]
    end do
  end if
  if (how == 'write') then
    open (newunit=unit, file=file, form='unformatted', status='replace', action='write')
  else
    open (newunit=unit, file=file, form='unformatted', status='old', action='read')
  end if
  call system_clock(began, rate)
  do record = 1, size(values, 2)
    if (how == 'write') then
      write (unit) values(:, record)
    else
      read (unit) values(:, record)
    end if
  end do
  if (how == 'write') then
    flush (unit)
    if (c_fsync(c_open(trim(file)//c_null_char, 0_c_int)) /= 0) call fail('fsync failed')
  end if
  call system_clock(ended)
  close (unit)
  do record = 1, size(values, 2)
    do item = 1, size(values, 1)
      if (values(item, record) /= of(record, item)) call fail('the file has another number')
    end do
  end do
  print '(f0.6)', real(ended - began, real64)/real(rate, real64)

contains

  pure real(real64) function of(record, item)
    integer, intent(in) :: record, item
    of = 0.5_real64*item + record
  end function

  integer function word(at)
    integer, intent(in) :: at
    character(len=32) :: text
    call get_command_argument(at, text)
    read (text, *) word
  end function

  subroutine fail(cause)
    character(len=*), intent(in) :: cause
    write (error_unit, '(a)') cause
    stop 1
  end subroutine
end program
