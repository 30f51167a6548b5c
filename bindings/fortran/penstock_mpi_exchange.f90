! Elements of an array of all ranks go from the boxes that the ranks of a model have to other boxes:
! penstock_mpi_exchange.h as a module. Compile it after penstock_mpi.f90, with mpifort.
!
! What penstock_mpi_exchange.h says holds here, with the order of Fortran: the first dimension varies fastest, and
! elements are counted from 1.
module penstock_mpi_exchange
  use penstock_mpi
  use mpi_f08
  implicit none
  private :: common_part, place_of, is_sound, plan, refuse, no_types
  integer, parameter :: penstock_mpi_dimensions = 8

  ! memory_shape of zeros: the elements lie in an array of shape. Else from memory_start on in one of memory_shape, as
  ! inside a halo.
  type :: penstock_mpi_box
    integer(c_int64_t) :: start(penstock_mpi_dimensions) = 1
    integer(c_int64_t) :: shape(penstock_mpi_dimensions) = 0
    integer(c_int64_t) :: memory_shape(penstock_mpi_dimensions) = 0
    integer(c_int64_t) :: memory_start(penstock_mpi_dimensions) = 1
  end type

  ! Boxes that ranks have do not overlap, and have all elements of the boxes that ranks get.
  type :: penstock_mpi_division
    integer(c_int64_t) :: dimensions = 0
    integer(c_int64_t) :: item_bytes = 0
    type(penstock_mpi_box) :: has
    type(penstock_mpi_box) :: gets
  end type

  type :: penstock_mpi_moves
    type(MPI_Comm) :: comm
    integer, allocatable :: sent(:), comes(:), zeros(:) ! of each rank
    type(MPI_Datatype), allocatable :: sent_types(:), types(:)
  end type

  ! What a rank tells all others: dimensions, item_bytes, then start and shape of both boxes.
  integer, parameter, private :: told = 2 + 4*penstock_mpi_dimensions

contains

  ! On failure there is nothing to close.
  integer(c_int) function penstock_mpi_exchange_open(division, comm, moves, error) result(code)
    type(penstock_mpi_division), intent(in) :: division
    type(MPI_Comm), intent(in) :: comm
    type(penstock_mpi_moves), intent(out) :: moves
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t) :: mine(told)
    integer(c_int64_t), allocatable :: all(:, :)
    integer :: ranks
    call MPI_Comm_size(comm, ranks)
    moves%comm = comm
    allocate (moves%sent(ranks), moves%comes(ranks), moves%zeros(ranks), source=0)
    allocate (moves%sent_types(ranks), moves%types(ranks), source=MPI_BYTE)
    allocate (all(told, ranks))
    code = penstock_ok
    if (division%dimensions < 1 .or. division%dimensions > penstock_mpi_dimensions .or. division%item_bytes < 1) then
      code = refuse('dimensions are 1 to 8, and item_bytes of an element; give both', error)
    else if (.not. (is_sound(division%has) .and. is_sound(division%gets))) then
      code = refuse('a box leaves its memory, or is longer than 2147483647; memory_shape has room for memory_start '// &
                    'and shape', error)
    end if
    code = penstock_mpi_agreed(code, comm, error)
    if (code == penstock_ok) then
      mine = [division%dimensions, division%item_bytes, division%has%start, division%has%shape, &
              division%gets%start, division%gets%shape]
      call MPI_Allgather(mine, told, MPI_INTEGER8, all, told, MPI_INTEGER8, comm)
      code = penstock_mpi_agreed(plan(division, all, moves, error), comm, error)
    end if
    if (code /= penstock_ok) call penstock_mpi_exchange_close(moves)
  end function

  ! from: of the first element of the array that this rank has in memory, halo included; to: of the one that it gets.
  ! What lies around the boxes stays as it is.
  subroutine penstock_mpi_exchange_move(moves, from, to)
    type(penstock_mpi_moves), intent(in) :: moves
    type(c_ptr), intent(in) :: from, to
    integer(c_int8_t), pointer, contiguous :: source(:), target(:)
    call c_f_pointer(from, source, [1])
    call c_f_pointer(to, target, [1])
    call MPI_Alltoallw(source, moves%sent, moves%zeros, moves%sent_types, target, moves%comes, moves%zeros, &
                       moves%types, moves%comm)
  end subroutine

  subroutine penstock_mpi_exchange_close(moves)
    type(penstock_mpi_moves), intent(inout) :: moves
    if (.not. allocated(moves%sent)) return
    call no_types(moves%sent, moves%sent_types)
    call no_types(moves%comes, moves%types)
    deallocate (moves%sent, moves%comes, moves%zeros, moves%sent_types, moves%types)
  end subroutine

  subroutine no_types(counts, types)
    integer, intent(in) :: counts(:)
    type(MPI_Datatype), intent(inout) :: types(:)
    integer :: rank
    do rank = 1, size(counts)
      if (counts(rank) /= 0) call MPI_Type_free(types(rank))
    end do
  end subroutine

  logical function is_sound(box)
    type(penstock_mpi_box), intent(in) :: box
    integer(c_int64_t), parameter :: most = huge(1)
    is_sound = all(box%start >= 1 .and. box%shape >= 0 .and. box%shape <= most .and. box%memory_shape <= most)
    is_sound = is_sound .and. all(box%memory_start >= 1 .and. box%memory_start <= most)
    is_sound = is_sound .and. all(merge(box%memory_start == 1, &
                                        box%memory_start - 1 + box%shape <= box%memory_shape, box%memory_shape == 0))
  end function

  ! Start and shape of what two boxes have in common, each given as start and shape.
  function common_part(one, other) result(common)
    integer(c_int64_t), intent(in) :: one(:), other(:)
    integer(c_int64_t) :: common(2*penstock_mpi_dimensions)
    integer, parameter :: n = penstock_mpi_dimensions
    common(:n) = max(one(:n), other(:n))
    common(n + 1:) = max(0_c_int64_t, min(one(:n) + one(n + 1:), other(:n) + other(n + 1:)) - common(:n))
  end function

  ! The elements `common` of a box, where they lie in memory.
  type(MPI_Datatype) function place_of(box, division, common)
    type(penstock_mpi_box), intent(in) :: box
    type(penstock_mpi_division), intent(in) :: division
    integer(c_int64_t), intent(in) :: common(:)
    integer, dimension(penstock_mpi_dimensions) :: sizes, shape, start
    type(MPI_Datatype) :: item
    integer :: n
    n = int(division%dimensions)
    sizes = int(merge(box%memory_shape, box%shape, box%memory_shape /= 0))
    shape = int(common(penstock_mpi_dimensions + 1:))
    start = int(box%memory_start - 1 + common(:penstock_mpi_dimensions) - box%start)
    call MPI_Type_contiguous(int(division%item_bytes), MPI_BYTE, item)
    call MPI_Type_create_subarray(n, sizes(:n), shape(:n), start(:n), MPI_ORDER_FORTRAN, item, place_of)
    call MPI_Type_commit(place_of)
    call MPI_Type_free(item)
  end function

  ! Requires: a division that is sound. all: what each rank told.
  integer(c_int) function plan(division, all, moves, error) result(code)
    type(penstock_mpi_division), intent(in) :: division
    integer(c_int64_t), intent(in) :: all(:, :)
    type(penstock_mpi_moves), intent(inout) :: moves
    type(penstock_error), intent(inout) :: error
    integer(c_int64_t) :: common(2*penstock_mpi_dimensions), both(2*penstock_mpi_dimensions), coming
    integer :: mine, other, before, n
    integer, parameter :: has = 3, gets = 3 + 2*penstock_mpi_dimensions
    integer, parameter :: last = told
    n = int(division%dimensions)
    call MPI_Comm_rank(moves%comm, mine)
    mine = mine + 1
    coming = 0
    code = penstock_ok
    do other = 1, size(all, 2)
      if (any(all(:2, other) /= all(:2, mine))) then
        code = refuse('ranks have elements or dimensions that differ; give all the same', error)
        return
      end if
      common = common_part(all(has:gets - 1, mine), all(gets:last, other))
      if (elements(common) /= 0) then
        moves%sent(other) = 1
        moves%sent_types(other) = place_of(division%has, division, common)
      end if
      common = common_part(all(has:gets - 1, other), all(gets:last, mine))
      if (elements(common) == 0) cycle
      coming = coming + elements(common)
      moves%comes(other) = 1
      moves%types(other) = place_of(division%gets, division, common)
      do before = 1, other - 1
        both = common_part(all(has:gets - 1, before), common)
        if (elements(both) == 0) cycle
        code = refuse('two ranks have the same element; give each element to one', error)
        return
      end do
    end do
    if (coming == product(division%gets%shape(:n))) return
    code = refuse('a rank gets elements that no rank has; give each element to one', error)

  contains

    integer(c_int64_t) function elements(box)
      integer(c_int64_t), intent(in) :: box(:)
      elements = product(box(penstock_mpi_dimensions + 1:penstock_mpi_dimensions + n))
    end function
  end function

  integer(c_int) function refuse(words, error) result(code)
    character(len=*), intent(in) :: words
    type(penstock_error), intent(inout) :: error
    integer :: i
    character(len=:), allocatable :: text
    text = 'exchange boxes: '//words
    code = penstock_invalid_argument
    error%code = code
    error%message = c_null_char
    do i = 1, min(len(text), size(error%message) - 1)
      error%message(i) = text(i:i)
    end do
  end function
end module
