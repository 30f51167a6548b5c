"""What `dataset[...]` asks for: NumPy's indexing as numbers, one lattice of elements per dimension.

Besides, one dimension may name its elements by a list or a mask (Picks), or a mask of the whole shape names single
elements. Pure: needs a shape, no file, and a context only where a list lies in memory of a GPU, from where it is copied
once. What must stay true: a Selection of shape S with index I has the shape that NumPy gives `empty(S)[I]`, and names
the same elements in the same order. In one case that is h5py's order: a dimension with a list stays where it is, also
where an integer and a slice stand between.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock import _core
from penstock._arrays.dtype import DType

if TYPE_CHECKING:
    import numpy as np

Shape = tuple[int, ...]
_ON_GPU = (2, 13)  # kinds of memory, as DLPack numbers them: CUDA, and managed by CUDA
_OF_HOST = (int, slice, list, tuple, range, memoryview, str, type(None), type(...))  # parts of an index


class Copier(Protocol):
    """A context that reaches the memory of its device."""

    def copy_to_host(self, host: Any, device: Any) -> None: ...


class Box(NamedTuple):
    """A rectangular part of a dataset: per dimension, [start, stop)."""

    start: Shape
    stop: Shape

    def chunks(self, shape: Shape) -> list[range]:
        """Of chunks of this shape, those that the box meets: for each dimension their numbers in the grid."""
        return [range(low // size, -(-high // size)) for low, high, size in zip(*self, shape, strict=True)]


@dataclass(frozen=True, eq=False)
class Picks:
    """Elements by number, in any order, each as often as it is named. `numbers` are of dimension `axis` (int64 [n]), or
    of all dimensions (int64 [n, ndim]): then they name single elements, which are counted in dimension `axis`."""

    axis: int
    numbers: np.ndarray

    @property
    def single(self) -> bool:
        return self.numbers.ndim == 2

    @property
    def transposed(self) -> Picks:
        """`numbers` of all dimensions, the other way round."""
        return replace(self, axis=self.numbers.shape[1] - 1 - self.axis, numbers=self.numbers[:, ::-1])


@dataclass(frozen=True)
class Selection:
    """Per dimension: elements first, first + step, ... (`counts` of them; step may be negative), and whether the
    dimension goes, as it does for an integer index. Where there are `picks`, those say which elements are meant: of
    their dimension first is 0 and step 1, and of single elements all dimensions but one are dropped."""

    first: Shape
    counts: Shape
    steps: Shape
    dropped: tuple[bool, ...]
    picks: Picks | None = field(default=None, compare=False)

    @classmethod
    def all_of(cls, shape: Shape) -> Selection:
        return cls((0,) * len(shape), shape, (1,) * len(shape), (False,) * len(shape))

    @property
    def shape(self) -> Shape:
        """Shape of the array that the selection gives."""
        return tuple(n for n, gone in zip(self.counts, self.dropped, strict=True) if not gone)

    @property
    def size(self) -> int:
        size = 1
        for count in self.counts:
            size *= count
        return size

    @property
    def box(self) -> Box:
        """The smallest box that holds all selected elements."""
        low, high = [], []
        for first, count, step in zip(self.first, self.counts, self.steps, strict=True):
            last = first + (count - 1) * step
            low.append(min(first, last) if count else first)
            high.append(max(first, last) + 1 if count else first)
        picks = self.picks
        if picks is not None and picks.single and self.size:
            return Box(tuple(picks.numbers.min(axis=0).tolist()), tuple((picks.numbers.max(axis=0) + 1).tolist()))
        if picks is not None and self.size:
            low[picks.axis], high[picks.axis] = int(picks.numbers.min()), int(picks.numbers.max()) + 1
        return Box(tuple(low), tuple(high))

    @property
    def transposed(self) -> Selection:
        """The same selection in the transposed dataset."""
        picks = self.picks
        if picks is not None:
            picks = picks.transposed if picks.single else replace(picks, axis=len(self.first) - 1 - picks.axis)
        return Selection(self.first[::-1], self.counts[::-1], self.steps[::-1], self.dropped[::-1], picks)


def select(shape: Shape, index: Any, context: Copier | None = None) -> Selection:
    """The selection that `dataset[index]` makes. `context`: of the device where lists and masks may lie. Raises
    IndexError and TypeError as NumPy does."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(_copied(part, context) if _is_on_gpu(part) else part for part in parts)
    if len(parts) == 1 and len(shape) > 1 and getattr(parts[0], "ndim", 1) > 1 and is_list(parts[0]):
        return _of_mask(shape, parts[0])
    found, picks = [], None
    for axis, (part, extent) in enumerate(zip(_spread(shape, parts), shape, strict=True)):
        one = _one(part, extent, axis)
        if one is None:
            if picks is not None:
                raise IndexError(
                    f"an index can have one list or mask: dimensions {picks.axis} and {axis} have one each; read with "
                    "the first list, then index the array that comes back by the other"
                )
            picks = Picks(axis, _numbers(part, extent, axis))
            one = 0, len(picks.numbers), 1, False
        found.append(one)
    first, counts, steps, dropped = zip(*found, strict=True) if found else ((), (), (), ())
    return Selection(first, counts, steps, dropped, picks)


def is_list(part: Any) -> bool:
    """Whether a part of an index may name elements one by one: a list, a range, or an array of any library."""
    if isinstance(part, (list, range, memoryview)):
        return True
    arrays = ("__array__", "__array_interface__", "__dlpack__", "__cuda_array_interface__")
    return any(hasattr(part, name) for name in arrays) and getattr(part, "ndim", 1) > 0


def _is_on_gpu(part: Any) -> bool:
    if isinstance(part, _OF_HOST) or type(part).__module__ == "numpy":
        return False
    if hasattr(part, "__cuda_array_interface__"):
        return True
    return hasattr(part, "__dlpack_device__") and part.__dlpack_device__()[0] in _ON_GPU


def _copied(part: Any, context: Copier | None) -> Any:
    """A list or mask in memory of a GPU as an array of NumPy, after the work that its library has queued on it. Itself
    where there is no context that could copy it."""
    import numpy as np

    if isinstance(part, _core.ArrayBase):
        return part.to_numpy()  # type: ignore[attr-defined]  # a penstock.Array, whose buffer has a context of its own
    if type(part).__module__.partition(".")[0] == "cupy":  # of any of its devices, and with gaps too
        return part.get()
    if context is None:
        return part
    told = getattr(part, "__cuda_array_interface__", None)
    memory = part if told is not None else _core.describe_dlpack(part)
    kind = np.dtype(told["typestr"]) if told is not None else DType.of_dlpack(*memory.dtype).dtype
    host = np.empty(told["shape"] if told is not None else memory.shape, kind)
    context.copy_to_host(host.reshape(-1).view(np.uint8), memory)
    return host


def _of_mask(shape: Shape, mask: Any) -> Selection:
    import numpy as np

    array = _array(mask, "all dimensions")
    if array.dtype != bool:
        raise IndexError(f"index arrays of {array.ndim} dimensions cannot select here: name elements of one dimension")
    if array.shape != shape:
        raise IndexError(f"a mask of shape {array.shape} does not fit the dataset, whose shape is {shape}")
    numbers, last = np.argwhere(array), len(shape) - 1
    counts = (*(1 for _ in range(last)), len(numbers))
    dropped = (*(True for _ in range(last)), False)
    return Selection((0,) * len(shape), counts, (1,) * len(shape), dropped, Picks(last, numbers.astype(np.int64)))


def _numbers(part: Any, extent: int, axis: int) -> np.ndarray:
    """Numbers of the elements of one dimension that a list or mask names."""
    import numpy as np

    array = _array(part, f"dimension {axis}")
    if array.ndim != 1:
        raise IndexError(f"a list of indices has one dimension, that of dimension {axis} has {array.ndim}")
    if array.dtype == bool:
        if len(array) != extent:
            raise IndexError(f"a mask of {len(array)} elements does not fit dimension {axis} of extent {extent}")
        return np.flatnonzero(array).astype(np.int64)
    if not len(array):
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, those of dimension {axis} are {array.dtype}")
    for at in (int(array.min()), int(array.max())):
        if not -extent <= at < extent:
            raise IndexError(f"index {at} is out of bounds for dimension {axis} of extent {extent}")
    numbers = array.astype(np.int64, copy=False)
    numbers[numbers < 0] += extent
    return numbers


def _array(part: Any, where: str) -> np.ndarray:
    """A copy, which is looked at several times: others may write to the memory of `part` meanwhile."""
    import numpy as np

    try:
        return np.asarray(part).copy()
    except Exception as error:  # of lists in lists, and of arrays on a GPU; any library may be asked
        raise TypeError(f"the indices of {where} are no array on the host: {error}") from error


def _spread(shape: Shape, parts: tuple[Any, ...]) -> list[Any]:
    """One part a dimension: the Ellipsis, written or not, becomes whole dimensions."""
    for part in parts:
        if part is None:
            raise TypeError("None (newaxis) adds no dimension here; reshape the array that was read")
    ellipses = sum(part is Ellipsis for part in parts)
    if ellipses > 1:
        raise IndexError("an index can have only one Ellipsis ('...')")
    given = len(parts) - ellipses
    if given > len(shape):
        raise IndexError(f"too many indices: the dataset has {len(shape)} dimensions, the index {given}")
    whole = [slice(None)] * (len(shape) - given)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return [*parts[:at], *whole, *parts[at + 1 :]]


def _one(part: Any, extent: int, axis: int) -> tuple[int, int, int, bool] | None:
    """(first, count, step, dropped) of one dimension. None: the part is a list or a mask."""
    if isinstance(part, slice):
        start, stop, step = part.indices(extent)
        count = len(range(start, stop, step))
        return (start if count else 0), count, step, False
    if isinstance(part, tuple):
        return None
    if isinstance(part, bool) or type(part).__name__ in ("bool_", "bool"):
        raise TypeError("True and False are not indices here; use integers and slices")
    if getattr(part, "ndim", 0):
        if is_list(part):
            return None
        raise TypeError(_advice(part))
    try:
        at = operator.index(part)
    except TypeError:
        if is_list(part):
            return None
        raise TypeError(_advice(part)) from None
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for dimension {axis} of extent {extent}")
    return at % extent, 1, 1, True


def _advice(part: Any) -> str:
    return f"an index is made of integers, slices, lists of integers, masks and '...', not of {type(part).__name__}"
