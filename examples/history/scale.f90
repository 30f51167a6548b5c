! The file of one process of SCALE-RM, from Fortran: its dimensions, attributes and name, so that its readers take it.
!
!     gfortran $(penstock config --fortran) scale.f90 $(penstock config --libs) -o scale-fortran
!     for process in 0 1; do ./scale-fortran $process; done
!
! Two processes share 12 cells along x. Each writes history.pe00000N.nc: temperature at centres of cells, and vertical
! wind at their faces. scale.c writes the same files, but for their source.
program scale_example
  use penstock_history
  implicit none
  integer, parameter :: nx = 12, ny = 5, nz = 4, halo = 2, processes = 2, own = nx/processes, steps = 3
  ! As SCALE-RM has them, z is the nearest; the model's halo is along x and y.
  real(c_double), target :: temperature(nz, 1 - halo:own + halo, 1 - halo:ny + halo)
  real(c_double), target :: wind(0:nz, 1 - halo:own + halo, 1 - halo:ny + halo), longitude(own, ny), latitude(own, ny)
  type(c_ptr) :: context, history
  type(penstock_error) :: error
  character(len=19) :: name
  character(len=8) :: argument
  integer :: i, j, k, process, step

  process = 0
  if (command_argument_count() >= 1) then
    call get_command_argument(1, argument)
    read (argument, *) process
  end if
  write (name, '(a, i6.6, a)') 'history.pe', process, '.nc'
  call need(penstock_context_create(context=context, error=error))
  call need(penstock_history_open(context, name, history=history, memory=penstock_system, & ! the fields are of the host
            time_units='seconds since 2000-01-01 00:00:00', error=error))
  call define('T', 'z ', nz)
  call define('W', 'zh', nz + 1)
  longitude = spread([(135 + 0.005d0*(own*process + i), i=0, own - 1)], 2, ny)
  latitude = spread([(35 + 0.005d0*j, j=0, ny - 1)], 1, own)
  call need(penstock_history_places(history, 'lon', ['x', 'y'], longitude, error))
  call need(penstock_history_places(history, 'lat', ['x', 'y'], latitude, error))
  call need(penstock_history_scale(history, [(500d0*i, i=-halo, nx + halo)], [(500d0*j, j=-halo, ny + halo)], &
            [(100d0*k, k=-halo, nz + halo)], halo=[halo, halo, halo], processes=[processes, 1], process=process, &
            periodic=[.false., .true.], title='two processes', source='scale.f90', error=error))
  do step = 1, steps
    do j = 1 - halo, ny + halo
      do i = 1 - halo, own + halo
        wind(:, i, j) = [(-(1000d0*step + 100*(j - 1) + 10*(own*process + i - 1) + k), k=0, nz)]
        temperature(:, i, j) = -wind(0:nz - 1, i, j)
      end do
    end do
    call need(penstock_history_put(history, 'T', c_loc(temperature), error))
    call need(penstock_history_put(history, 'W', c_loc(wind), error))
    call need(penstock_history_end_step(history, 60d0*step, error))
  end do
  call need(penstock_history_close(history, error))
  call penstock_context_destroy(context)

contains

  subroutine define(field, level, levels)
    character(len=*), intent(in) :: field, level
    integer, intent(in) :: levels
    call need(penstock_history_field(history, field, [level, 'x ', 'y '], [int([levels, own, ny], c_int64_t)], &
              halo=[int([0, halo, halo], c_int64_t)], source_dtype='float64', error=error))
  end subroutine

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
