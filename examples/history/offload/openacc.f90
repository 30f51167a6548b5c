! History output of a model whose fields OpenACC holds on a GPU, from Fortran.
!
!     nvfortran -acc=gpu $(penstock config --fortran) openacc.f90 $(penstock config --libs) -o openacc-fortran
!     gfortran -fopenacc $(penstock config --fortran) openacc.f90 $(penstock config --libs) -o openacc-fortran
!     ./openacc-fortran openacc_fortran.nc
!
! In `host_data` the array stands for its copy on the device, and c_loc gives that copy's address. The values do not
! pass through the array of the host. gfortran refuses an allocatable array in `use_device`, so a subroutine takes it
! as an argument of explicit shape, which all compilers take. Without a GPU the address is the host's.
program openacc_example
  use penstock_history
  implicit none
  integer, parameter :: nx = 60, ny = 40, steps = 6
  real(c_double), allocatable, target :: field(:, :), change(:, :)
  type(c_ptr) :: context, history
  type(penstock_error) :: error
  integer :: i, j, step

  allocate (field(0:nx + 1, 0:ny + 1), change(nx, ny))
  field = 280
  change = 0
  call need(penstock_context_create(context=context, error=error))
  !$acc data copyin(field) create(change)
  call open_for(field)
  do step = 1, steps
    !$acc parallel loop collapse(2) present(field, change)
    do j = 1, ny
      do i = 1, nx
        change(i, j) = 0.125d0*(field(i - 1, j) + field(i + 1, j) + field(i, j - 1) + field(i, j + 1) - 4*field(i, j))
      end do
    end do
    !$acc parallel loop collapse(2) present(field, change)
    do j = 1, ny
      do i = 1, nx
        field(i, j) = field(i, j) + change(i, j) + merge(8, 0, i == nx/2 .and. j == ny/2)
      end do
    end do
    call put(field, change)
    call need(penstock_history_end_step(history, 10d0*step, error))
  end do
  !$acc end data
  call need(penstock_history_close(history, error))
  call penstock_context_destroy(context)

contains

  subroutine put(values, their_change)
    real(c_double), intent(in), target :: values(0:nx + 1, 0:ny + 1), their_change(nx, ny)
    !$acc host_data use_device(values, their_change)
    call need(penstock_history_put(history, 'T', c_loc(values), error))
    call need(penstock_history_put(history, 'change', c_loc(their_change), error))
    !$acc end host_data
  end subroutine

  ! The name is the first argument of the program.
  subroutine open_for(values)
    real(c_double), intent(in), target :: values(0:nx + 1, 0:ny + 1)
    integer(c_int) :: memory
    character(len=1024) :: name
    name = 'openacc_fortran.nc'
    if (command_argument_count() >= 1) call get_command_argument(1, name)
    !$acc host_data use_device(values)
    memory = memory_of(c_loc(values))
    !$acc end host_data
    call need(penstock_history_open(context, name, history=history, memory=memory, &
              time_units='seconds since 2000-01-01 00:00:00', error=error))
    call need(penstock_history_field(history, 'T', ['x', 'y'], [nx, ny], halo=[1, 1], dtype='float64', &
              source_dtype='float64', error=error))
    call need(penstock_history_field(history, 'change', ['x', 'y'], [nx, ny], dtype='float64', &
              source_dtype='float64', error=error))
  end subroutine

  ! Where that address leads: to a GPU, or to the host, where the compiler made code for no GPU.
  integer(c_int) function memory_of(address)
    type(c_ptr), intent(in) :: address
    type(penstock_pointer) :: found
    call need(penstock_memory_kind(context, address, found, error))
    memory_of = penstock_system
    if (found%kind == penstock_device .or. found%kind == penstock_managed) memory_of = penstock_device
  end function

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
