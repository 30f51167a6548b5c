! A box of an array in an NPY file, read by its name, from Fortran.
!
!     gfortran $(penstock config --fortran) dataset.f90 $(penstock config --libs) -o dataset-fortran
!
! The file is NumPy's array of shape (100, 64), in C order: in Fortran an array of shape (64, 100). The program makes it
! itself. Any file of NPY, netCDF, HDF5 or safetensors is opened alike.
program dataset_example
  use penstock
  implicit none
  integer, parameter :: columns = 64, rows = 100
  character(len=*), parameter :: name = 'field_fortran.npy'
  real(c_double), target :: field(columns, rows), part(columns, 3)
  type(c_ptr) :: context, datafile, dataset
  type(penstock_dataset_info) :: info
  type(penstock_dataset_result) :: result
  type(penstock_request) :: request
  type(penstock_error) :: error
  type(penstock_box) :: box
  integer :: i, k

  do k = 1, rows
    field(:, k) = [(k + i/1000.0_c_double, i=1, columns)]
  end do
  call make(field)
  call need(penstock_context_create(context=context, error=error))
  call need(penstock_datafile_open(context, name, datafile=datafile, error=error))
  call need(penstock_dataset_open(datafile, 'data', dataset, error))
  call need(penstock_dataset_describe(dataset, info, error))
  print '(2a, *(1x, i0))', penstock_string(info%dtype), ' of shape', penstock_shape(info)
  box%start = [1_c_int64_t, 41_c_int64_t]                  ! the first column of row 41
  box%count = [int(columns, c_int64_t), 3_c_int64_t]
  request%memory%data = c_loc(part)
  request%memory%bytes = c_sizeof(part)
  request%memory%kind = penstock_system
  call need(penstock_dataset_read_box(dataset, box, request, result, error))
  print '(i0, 2a)', result%bytes, ' bytes by path ', penstock_string(result%path)
  call penstock_dataset_close(dataset)
  call penstock_datafile_close(datafile)
  call penstock_context_destroy(context)
  if (any(abs(part - field(:, 41:43)) > 0)) error stop 'other elements came'

contains

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == penstock_ok) return
    print '(a)', penstock_string(error%message)
    error stop 1
  end subroutine

  subroutine make(table)
    real(c_double), intent(in) :: table(:, :)
    character(len=118) :: header
    integer :: unit
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100, 64), }"
    header(118:118) = new_line('a')
    open (newunit=unit, file=name, access='stream', form='unformatted', status='replace')
    write (unit) char(147)//'NUMPY'//char(1)//char(0)//char(118)//char(0)//header, table
    close (unit)
  end subroutine
end program
