"""Array: typed, shaped memory of a device, which array libraries take without a copy.

It is what reading a dataset gives. It knows no arithmetic: NumPy, CuPy, PyTorch and JAX do, and none of them is needed
here. DLPack serves them all; `__cuda_array_interface__` serves Numba and CuPy on a GPU, the buffer protocol and
`__array_interface__` serve NumPy on the host device. What must stay true: an export shares the memory and keeps it
alive; nothing is converted or moved unless the name of the function says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from penstock import _core
from penstock._arrays.as_number import AsNumber
from penstock._arrays.dtype import DType
from penstock._core import Buffer

if TYPE_CHECKING:
    import numpy

    from penstock._arrays.selection import Picks, Selection

Shape = tuple[int, ...]
_BOXES_AT_ONCE = 1 << 16  # of a gather
_ON_GPU = (2, 13)  # kinds of memory, as DLPack numbers them: CUDA, and managed by CUDA


def c_strides(shape: Shape, itemsize: int) -> Shape:
    """Bytes from element to element, per dimension, of a C-contiguous array."""
    strides, next = [], itemsize
    for extent in reversed(shape):
        strides.append(next)
        next *= max(1, extent)
    return tuple(reversed(strides))


def product(numbers: Shape) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


class Array(AsNumber, _core.ArrayBase):
    """Typed, shaped memory of a device: what reading gives. NumPy, CuPy, PyTorch and JAX take it without a copy.

    Args:
        buffer: the memory; it is kept alive.
        dtype: anything DType.of takes.
        shape: elements per dimension.
        offset_bytes: of the first element in the buffer.
        strides: bytes from element to element, per dimension; C order when left out.

    Raises ValueError when an element would lie outside of the buffer.
    """

    __slots__ = ()  # what it holds is in its base, which exports it

    buffer: Buffer
    dtype: DType
    offset_bytes: int
    shape: Shape
    strides: Shape

    def __init__(
        self, buffer: Buffer, dtype: Any, shape: Shape, offset_bytes: int = 0, strides: Shape | None = None
    ) -> None:
        self.buffer = buffer
        self.dtype = DType.of(dtype)
        self.shape = tuple(int(extent) for extent in shape)
        self.offset_bytes = offset_bytes
        self.strides = c_strides(self.shape, self.dtype.itemsize) if strides is None else tuple(strides)
        low, high = self._span()
        if self.size and not 0 <= offset_bytes + low <= offset_bytes + high <= buffer.bytes:
            raise ValueError(
                f"an array of shape {self.shape} of {self.dtype} at offset {offset_bytes} with strides {self.strides} "
                f"leaves the {buffer.bytes} bytes of its buffer"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """For copy.copy(), which shares the memory. Buffers refuse to be pickled."""
        return Array, (self.buffer, self.dtype, self.shape, self.offset_bytes, self.strides)

    def _span(self) -> tuple[int, int]:
        """Bytes around the first element: [low, high)."""
        reaches = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        return sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches) + self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return product(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        """As Context takes it: "host" or "cuda:N"."""
        kind, index = self.buffer.__dlpack_device__()
        return f"cuda:{index}" if kind in _ON_GPU else "host"

    @property
    def on_host(self) -> bool:
        """The CPU can address it."""
        return self.device == "host"

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self.buffer.address + self.offset_bytes

    @property
    def is_contiguous(self) -> bool:
        """In C order without gaps."""
        expected = c_strides(self.shape, self.dtype.itemsize)
        if self.strides == expected:
            return True
        pairs = zip(self.shape, self.strides, expected, strict=True)
        return self.size == 0 or all(extent == 1 or stride == wanted for extent, stride, wanted in pairs)

    @property
    def T(self) -> Array:  # noqa: N802 - NumPy's name
        """Dimensions in reverse order, without a copy."""
        return Array(self.buffer, self.dtype, self.shape[::-1], self.offset_bytes, self.strides[::-1])

    def as_bytes(self) -> Buffer:
        """The memory as plain bytes, without a copy. ValueError when the array is not contiguous."""
        if not self.is_contiguous:
            raise ValueError(f"an array of shape {self.shape} with strides {self.strides} is not contiguous")
        return self.buffer.slice(self.offset_bytes, self.nbytes)

    def view(self, dtype: Any) -> Array:
        """The same bytes as another type of the same size, or, when contiguous, of a size that divides the last
        dimension's bytes."""
        other = DType.of(dtype)
        if other.itemsize == self.dtype.itemsize:
            return Array(self.buffer, other, self.shape, self.offset_bytes, self.strides)
        shape = self.shape or (1,)
        last = shape[-1] * self.dtype.itemsize
        if not self.is_contiguous or last % other.itemsize:
            raise ValueError(f"{last} contiguous bytes of {self.dtype} a row cannot be seen as {other}")
        return Array(self.buffer, other, (*shape[:-1], last // other.itemsize), self.offset_bytes)

    def reshape(self, *shape: Any) -> Array:
        """The same elements in C order in another shape, without a copy; one extent may be -1."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if -1 in wanted:
            rest = product(tuple(extent for extent in wanted if extent != -1))
            if rest and self.size % rest == 0:
                wanted = tuple(self.size // rest if extent == -1 else extent for extent in wanted)
        if product(wanted) != self.size or min(wanted, default=0) < 0:
            raise ValueError(f"{self.size} elements of shape {self.shape} have no shape {shape}")
        self.as_bytes()
        return Array(self.buffer, self.dtype, wanted, self.offset_bytes)

    def field(self, name: str) -> Array:
        """A member of compound elements. A view where strides can say it; where they cannot (members that are not at
        whole multiples of their size, or big-endian), a copy gathered on the device. KeyError lists the members."""
        member = self.dtype.member(name)
        item = member.dtype.itemsize
        shape, strides = self.shape + member.shape, self.strides + c_strides(member.shape, item)
        view = Array(self.buffer, member.dtype, shape, self.offset_bytes + member.offset, strides)
        aligned = all(stride % item == 0 for stride in (*self.strides, view.offset_bytes))
        return view if aligned and not member.dtype.big_endian else view.contiguous()

    def members(self, names: Sequence[str]) -> Array:
        """The same elements with these members alone, in this order: a view. KeyError lists the members."""
        fields = tuple(self.dtype.member(name) for name in names)
        return Array(self.buffer, replace(self.dtype, fields=fields), self.shape, self.offset_bytes, self.strides)

    def contiguous(self) -> Array:
        """Itself when it is in C order and in the byte order of this machine; else a copy that is, made on the
        device."""
        if self.is_contiguous and not self.dtype.big_endian:
            return self
        import numpy as np

        context = self.buffer.context
        buffer = _core.allocate(context, max(1, self.nbytes), self.buffer.kind, "none")
        fresh = Array(buffer, self.dtype.native, self.shape)
        if self.size:
            row = [0, self.offset_bytes, *self.shape, *fresh.strides, *self.strides]
            table = np.array([row], np.int64)
            _core.copy_boxes(context, buffer, self.buffer, table, self.dtype.itemsize, self.dtype.swap_bytes)
        return fresh

    def to_numpy(self) -> numpy.ndarray:
        """A copy in host memory."""
        import numpy as np

        source = self.contiguous()
        host = np.empty(self.shape, source.dtype.dtype)
        if self.nbytes:
            self.buffer.context.copy_to_host(host.reshape(-1).view(np.uint8), source.as_bytes())
        return host

    def __getitem__(self, index: Any) -> Array:
        """A view by integers, slices and '...'; or, of compound elements, field(name). A list of integers or a mask, of
        one dimension or of all, gives a copy, gathered on the device."""
        if isinstance(index, str):
            return self.field(index)
        from penstock._arrays.selection import select

        chosen = select(self.shape, index, self.buffer.context)
        if chosen.picks is not None:
            return self._gathered(chosen, chosen.picks)
        pairs = list(zip(chosen.first, self.strides, strict=True))
        kept = [axis for axis, gone in enumerate(chosen.dropped) if not gone]
        strides = tuple(self.strides[axis] * chosen.steps[axis] for axis in kept)
        offset = self.offset_bytes + (sum(first * stride for first, stride in pairs) if chosen.size else 0)
        return Array(self.buffer, self.dtype, chosen.shape, offset, strides)

    def _gathered(self, chosen: Selection, picks: Picks) -> Array:
        """Elements by number, in C order and in the byte order of this machine."""
        import numpy as np

        context, item, shape = self.buffer.context, self.dtype.itemsize, chosen.shape
        buffer = _core.allocate(context, max(1, chosen.size * item), self.buffer.kind, "none")
        fresh = Array(buffer, self.dtype.native, shape)
        kept = [axis for axis, gone in enumerate(chosen.dropped) if not gone]
        others = [(place, axis) for place, axis in enumerate(kept) if axis != picks.axis]
        if picks.single:
            sources = picks.numbers @ np.array(self.strides, np.int64)
        else:
            first = sum(at * stride for at, stride in zip(chosen.first, self.strides, strict=True))
            sources = first + picks.numbers * self.strides[picks.axis]
        counts = [shape[place] for place, _ in others] or [1]
        into = [fresh.strides[place] for place, _ in others] or [item]
        out_of = [self.strides[axis] * chosen.steps[axis] for _, axis in others] or [item]
        step = fresh.strides[kept.index(picks.axis)]
        for begin in range(0, len(sources) if chosen.size else 0, _BOXES_AT_ONCE):
            part = sources[begin : begin + _BOXES_AT_ONCE]
            table = np.empty((len(part), 2 + 3 * len(counts)), np.int64)
            table[:, 0] = (begin + np.arange(len(part))) * step
            table[:, 1] = self.offset_bytes + part
            table[:, 2:] = (*counts, *into, *out_of)
            _core.copy_boxes(context, buffer, self.buffer, table, item, self.dtype.swap_bytes)
        return fresh

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    def item(self) -> Any:
        """The one element as a Python number."""
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements has no single one")
        return self.to_numpy().reshape(-1)[0].item()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        """DLPack. Raises BufferError for compound and big-endian elements, which DLPack does not have."""
        item = self.dtype.itemsize
        if any(stride % item for stride in self.strides):
            raise BufferError(f"strides of {self.strides} bytes are not whole elements of {self.dtype}")
        try:
            type = self.dtype.dlpack
        except TypeError as error:
            raise BufferError(str(error)) from None
        strides = tuple(stride // item for stride in self.strides)
        return _core.export_dlpack(self.buffer, self.offset_bytes, self.shape, strides, type, **keywords)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.on_host:
            raise AttributeError("__cuda_array_interface__: this is not GPU memory")
        try:
            self.dtype.need_on_gpu()
        except TypeError as error:
            raise AttributeError(f"__cuda_array_interface__: {error}") from None
        return self._described() | {"stream": None}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        dtype = self.dtype
        if not dtype.fields and dtype.kind != "E":
            element = (self.offset_bytes, dtype.typestr, dtype.itemsize)
            found = _core.array_interface(self.buffer, self.shape, self.strides, element)
            if found is not None:
                return found
        if self.buffer.__dlpack_device__()[0] in _ON_GPU:
            raise AttributeError("__array_interface__: the CPU cannot address GPU memory; use to_numpy() for a copy")
        if self.dtype.fields:
            raise AttributeError("__array_interface__ cannot say where compound elements have gaps; __array__ can")
        return self._described()

    def _described(self) -> dict[str, Any]:
        try:
            typestr, members = self.dtype.typestr, self.dtype.descr
        except TypeError as error:
            raise AttributeError(str(error)) from None
        return {
            "shape": self.shape,
            "typestr": typestr,
            "descr": members or [("", typestr)],
            "data": (self.address, False),
            "strides": None if self.is_contiguous else self.strides,
            "version": 3,
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """NumPy asks here for what `__array_interface__` cannot say."""
        if not self.on_host:
            raise TypeError(f"the array is on {self.device}: to_numpy() copies it, cupy.asarray() shares it")
        import numpy as np

        plain = np.asarray(Array(self.buffer, DType.raw(self.itemsize), self.shape, self.offset_bytes, self.strides))
        plain = plain.view(self.dtype.dtype)
        return plain.astype(dtype or plain.dtype, copy=bool(copy)) if copy or dtype else plain

    def _refuse_export(self) -> NoReturn:
        """Why the buffer protocol cannot have it: BufferError."""
        if not self.on_host:
            raise BufferError(f"the CPU cannot address memory on {self.device}; use to_numpy() for a copy")
        if not self.size:  # memoryview knows no shape with a zero in it, and NumPy would take its word
            raise BufferError("an empty array has no buffer; numpy.asarray(array) can take it")
        try:
            self.as_bytes()
            cause = f"{self.dtype.buffer_format!r} is not what was asked for"
        except (TypeError, ValueError) as error:
            cause = str(error)
        raise BufferError(f"{cause}; numpy.asarray(array) can take it")

    def __repr__(self) -> str:
        return f"<penstock.Array {self.shape} {self.dtype} on {self.device}>"

    def __str__(self) -> str:
        """The elements as NumPy prints them, long arrays in short: only what is shown is copied from the device."""
        import numpy as np

        options = np.get_printoptions()
        try:
            if self.size <= options["threshold"]:
                return str(self.to_numpy())
            return np.array2string(self._edges(options["edgeitems"]), threshold=0)
        except TypeError:  # elements that NumPy does not have
            return repr(self)

    def _edges(self, count: int) -> numpy.ndarray:
        """The first and last elements of each long dimension, and one between that stands for all that are left out."""
        import numpy as np

        pairs: list[list[slice]] = []
        for extent in self.shape:
            long = extent > 2 * count + 1
            pairs.append([slice(0, count + 1), slice(extent - count, extent)] if long else [slice(0, extent)])
        places = [[slice(0, count + 1), slice(count + 1, None)] if len(one) > 1 else [slice(None)] for one in pairs]
        shape = [min(extent, 2 * count + 1) for extent in self.shape]
        found = np.empty(shape, self.dtype.native.dtype)
        for source, place in zip(itertools.product(*pairs), itertools.product(*places), strict=True):
            found[place] = self[source].to_numpy()
        return found
