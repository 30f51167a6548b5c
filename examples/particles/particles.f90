! A snapshot of particles in the layout of GADGET-4, from Fortran: one call writes all fields, and yt and h5py read it.
!
!     gfortran $(penstock config --fortran) particles.f90 $(penstock config --libs) -o particles-fortran
!
! On a GPU, leave options%memory as it is and pass the addresses of the arrays on the device: with OpenACC,
! `!$acc host_data use_device(x, v, id)` around the call that writes.
program particles_example
  use penstock_snapshot
  implicit none
  integer, parameter :: n = 1000
  real(c_double), target :: x(3, n)
  real(c_float), target :: v(3, n)
  integer(c_int64_t), target :: id(n)
  character(len=21), parameter :: paths(3) = ['PartType1/Coordinates', 'PartType1/Velocities ', 'PartType1/ParticleIDs']
  character(kind=c_char, len=:), allocatable, target :: layout
  type(c_ptr) :: context, snapshot
  type(penstock_snapshot_options) :: options
  type(penstock_snapshot_preset) :: preset
  type(penstock_snapshot_facts) :: facts
  type(penstock_error) :: error
  integer :: i

  call random_number(x)
  v = real(x, c_float) - 0.5
  id = [(i, i=1, n)]
  options%memory = penstock_system
  call need(penstock_context_create(context=context, error=error))
  call need(penstock_snapshot_open(context, 'particles.hdf5', options, snapshot, error))
  call need(penstock_snapshot_array(snapshot, paths(1), 'float64', [3_c_int64_t, int(n, c_int64_t)], error))
  call need(penstock_snapshot_array(snapshot, paths(2), 'float32', [3_c_int64_t, int(n, c_int64_t)], error))
  call need(penstock_snapshot_array(snapshot, paths(3), 'uint64', [int(n, c_int64_t)], error))
  layout = penstock_name('gadget4')
  preset%layout = c_loc(layout)
  preset%box_size = 1
  preset%mass_table(2) = 0.001d0  ! of PartType1
  call need(penstock_snapshot_use_preset(snapshot, preset, error))
  call need(penstock_snapshot_number(snapshot, 'Parameters', 'Softening', 0.01d0, error))
  call need(penstock_snapshot_text(snapshot, 'Config', 'Code', 'an example', error))
  call need(penstock_snapshot_write_all(snapshot, paths, [c_loc(x), c_loc(v), c_loc(id)], &
            [c_sizeof(x), c_sizeof(v), c_sizeof(id)], facts, error))
  print '(i0, a)', facts%data_bytes, ' bytes of fields'
  call penstock_snapshot_free(snapshot)
  call penstock_context_destroy(context)

contains

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine
end program
