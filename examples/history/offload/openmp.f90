! History output of a model whose fields OpenMP holds on a GPU, from Fortran.
!
!     nvfortran -mp=gpu $(penstock config --fortran) openmp.f90 $(penstock config --libs) -o openmp-fortran
!     gfortran -fopenmp $(penstock config --fortran) openmp.f90 $(penstock config --libs) -o openmp-fortran
!     ./openmp-fortran openmp_fortran.nc
!
! In `use_device_addr` the array stands for its copy on the device, and c_loc gives that copy's address. The values do
! not pass through the array of the host. A compiler without a GPU maps nothing: then the address is the host's.
program openmp_example
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
  !$omp target data map(to: field) map(alloc: change)
  !$omp target data use_device_addr(field)
  history = opened(memory_of(c_loc(field)))
  !$omp end target data
  do step = 1, steps
    !$omp target teams distribute parallel do collapse(2)
    do j = 1, ny
      do i = 1, nx
        change(i, j) = 0.125d0*(field(i - 1, j) + field(i + 1, j) + field(i, j - 1) + field(i, j + 1) - 4*field(i, j))
      end do
    end do
    !$omp target teams distribute parallel do collapse(2)
    do j = 1, ny
      do i = 1, nx
        field(i, j) = field(i, j) + change(i, j) + merge(8, 0, i == nx/2 .and. j == ny/2)
      end do
    end do
    !$omp target data use_device_addr(field, change)
    call need(penstock_history_put(history, 'T', c_loc(field), error))
    call need(penstock_history_put(history, 'change', c_loc(change), error))
    !$omp end target data
    call need(penstock_history_end_step(history, 10d0*step, error))
  end do
  !$omp end target data
  call need(penstock_history_close(history, error))
  call penstock_context_destroy(context)

contains

  ! Where that address leads: to a GPU, or to the host, where the compiler made code for no GPU.
  integer(c_int) function memory_of(address)
    type(c_ptr), intent(in) :: address
    type(penstock_pointer) :: found
    call need(penstock_memory_kind(context, address, found, error))
    memory_of = penstock_system
    if (found%kind == penstock_device .or. found%kind == penstock_managed) memory_of = penstock_device
  end function

  ! The name is the first argument of the program.
  function opened(memory) result(history)
    integer(c_int), intent(in) :: memory
    type(c_ptr) :: history
    character(len=1024) :: name
    name = 'openmp_fortran.nc'
    if (command_argument_count() >= 1) call get_command_argument(1, name)
    call need(penstock_history_open(context, name, history=history, memory=memory, &
              time_units='seconds since 2000-01-01 00:00:00', error=error))
    call need(penstock_history_field(history, 'T', ['x', 'y'], [nx, ny], halo=[1, 1], dtype='float64', &
              source_dtype='float64', error=error))
    call need(penstock_history_field(history, 'change', ['x', 'y'], [nx, ny], dtype='float64', &
              source_dtype='float64', error=error))
  end function

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
