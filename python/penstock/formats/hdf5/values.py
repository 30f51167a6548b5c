"""Elements of HDF5 whose stored bytes are not their values: the HDF5 library makes values of them, as h5py has it.

Two kinds. Numbers in a form that NumPy does not have (12 bits in 16, floats of other layouts) become numbers of its own
types, plain bytes for any device. Text of variable length, lists and references become Python objects in host memory:
text is str, a list an array of NumPy, a reference one of ours. What must stay true: a value is the one that the file
has, or there is none; how much one call makes is bounded by the size of the file, whatever the file says.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5r, h5s, h5t

from penstock._arrays.dtype import DType, Field
from penstock.formats.hdf5.types import UnreadableType
from penstock.formats.model import Box, Filter, Shape
from penstock.formats.reference import Reference

_MOST_SCATTERED = 1 << 22  # elements of a region that is no lattice
_PART = 1 << 14  # elements that are read at a time
# Elements may share their text or list, which could fill any memory; stock writers share fill values alone.
_MOST_BYTES = 1 << 30
_MOST_SHARED = 64


@dataclass(frozen=True)
class Converted:
    """What HDF5 makes of elements. `plain`: NumPy's type as h5py has it, which says what the objects are; `dims`: that
    an array type adds."""

    dtype: DType
    dims: Shape
    plain: np.dtype[Any]

    @property
    def memory(self) -> h5t.TypeID:
        """HDF5's type of the elements in memory."""
        element = h5t.py_create(self.plain)
        return h5t.array_create(element, self.dims) if self.dims else element

    @property
    def why(self) -> str:
        if self.dtype.host_only:
            return f"its elements ({self.dtype}) have no fixed size"
        return f"the HDF5 library makes {self.dtype} of its numbers"


def converted(stored: h5t.TypeID, cause: str) -> Converted:
    """For a type whose bytes are not the values. Raises UnreadableType where h5py has no values either."""
    try:
        plain = stored.dtype
        base, dims = plain.subdtype or (plain, ())
        return Converted(_named(base), tuple(dims), base)
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        raise UnreadableType(f"{cause}, and h5py has no values of them ({error})") from error


def odd_integers(stored: h5t.TypeID) -> Filter | None:
    """What the core makes integers of NumPy of, that have fewer bits than their bytes; None of other types."""
    while stored.get_class() == h5t.ARRAY:
        stored = stored.get_super()
    if stored.get_class() != h5t.INTEGER or stored.get_order() not in (h5t.ORDER_LE, h5t.ORDER_BE):
        return None
    is_big, is_signed = stored.get_order() == h5t.ORDER_BE, stored.get_sign() == h5t.SGN_2
    bits = (int(is_big), stored.get_precision(), stored.get_offset(), int(is_signed))
    return Filter("odd-integers", (stored.get_size(), *bits))


def _named(plain: np.dtype[Any]) -> DType:
    """Our name for a type of h5py."""
    inner, target = _inner(plain), h5py.check_ref_dtype(plain)
    if _is_text(plain):
        return DType.objects("text")
    if inner is not None:
        return DType.objects(f"list of {_named(inner)}")
    if target is not None:
        return DType.objects("reference" if target is h5py.Reference else "region reference")
    if plain.names:
        fields = tuple(_field(name, *plain.fields[name][:2]) for name in plain.names)  # type: ignore[index]
        return replace(DType.raw(plain.itemsize), fields=fields)
    return DType.of(plain)


def _is_text(plain: np.dtype[Any]) -> bool:
    """Of variable length."""
    found = h5py.check_string_dtype(plain)
    return found is not None and found.length is None


def _inner(plain: np.dtype[Any]) -> np.dtype[Any] | None:
    """What the lists are of that are the elements."""
    found = None if _is_text(plain) else h5py.check_vlen_dtype(plain)
    return None if found is None else np.dtype(found)


def _field(name: str, plain: np.dtype[Any], offset: int) -> Field:
    base, shape = plain.subdtype or (plain, ())
    return Field(name, _named(base), offset, tuple(shape))


def write_values(dataset: h5d.DatasetID, how: Converted, box: Box, values: np.ndarray[Any, Any]) -> None:
    """Python objects to a box. HDF5 puts what has no fixed size into heaps of the file."""
    space, counts = dataset.get_space(), values.shape
    if counts:
        space.select_hyperslab(box.start, counts)
    memory = h5s.create_simple(counts) if counts else h5s.create(h5s.SCALAR)
    dataset.write(memory, space, np.ascontiguousarray(values.astype(how.plain)).reshape(counts), how.memory)


def read_values(dataset: h5d.DatasetID, how: Converted, box: Box, file_bytes: int) -> np.ndarray[Any, Any]:
    """The box as Python objects. `file_bytes`: of the file, of which they cannot be many times more."""
    counts = tuple(high - low for low, high in zip(box.start, box.stop, strict=True))
    rank = len(counts) - len(how.dims)
    out = np.empty((*counts[:rank], *how.dims), how.plain)
    left = max(_MOST_BYTES, _MOST_SHARED * file_bytes)
    element = np.dtype((how.plain, how.dims)) if how.dims else how.plain
    for start, part in _parts(counts[:rank]) if out.size else ():
        space = dataset.get_space()
        memory = h5s.create_simple(part) if rank else h5s.create(h5s.SCALAR)
        if rank:
            space.select_hyperslab(tuple(low + at for low, at in zip(box.start, start, strict=False)), part)
        values = np.zeros(part, element)
        dataset.read(memory, space, values, how.memory)
        values = told(values, how.plain, dataset)
        left -= _bytes_of(values, how.plain)
        if left < 0:
            raise MemoryError(f"its elements are more than {_MOST_SHARED} times as many bytes as the file")
        out[(*(slice(at, at + count) for at, count in zip(start, part, strict=True)), ...)] = values
    inside = tuple(slice(*bounds) for bounds in zip(box.start[rank:], box.stop[rank:], strict=True))
    return out[(..., *inside)] if inside else out


def _parts(counts: Shape) -> Iterator[tuple[Shape, Shape]]:
    """(start, counts) of boxes of at most _PART elements, if a single row of one has no more."""
    if not counts or np.prod(counts, dtype=object) <= _PART:
        yield (0,) * len(counts), counts
        return
    axis = next(axis for axis, count in enumerate(counts) if count > 1)
    rows = max(1, _PART // int(np.prod(counts[axis + 1 :], dtype=object)))
    for at in range(0, counts[axis], rows):
        row = (*counts[:axis], min(rows, counts[axis] - at), *counts[axis + 1 :])
        for start, part in _parts(row) if rows == 1 else (((0,) * len(counts), row),):
            yield (*start[:axis], at + start[axis], *start[axis + 1 :]), part


def told(values: np.ndarray[Any, Any], plain: np.dtype[Any], home: Any) -> np.ndarray[Any, Any]:
    """The same elements as users want them: text as str, references as ours. `home`: an object of the file."""
    if plain.names:
        for name in plain.names:
            base = plain[name].base
            if base.hasobject:
                values[name] = told(values[name], base, home)
        return values
    inner = _inner(plain)
    if inner is not None:
        make = lambda one: _list(one, inner, home)  # noqa: E731 - one of three
    elif _is_text(plain):
        make = _text
    elif h5py.check_ref_dtype(plain) is not None:
        make = lambda one: reference_of(one, home)  # noqa: E731 - one of three
    else:
        return values
    made = np.empty(values.size, object)
    for number, one in enumerate(values.ravel()):
        made[number] = make(one)
    return made.reshape(values.shape)


def blank_of(how: Converted) -> Any:
    """An element where nothing was written."""
    inner = _inner(how.plain)
    if inner is not None:
        return np.empty(0, inner)
    return "" if _is_text(how.plain) else np.zeros((), how.plain)[()]


def _text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value or ""


def _list(value: Any, inner: np.dtype[Any], home: Any) -> np.ndarray[Any, Any]:
    """Where nothing was written there is none."""
    found = value if isinstance(value, np.ndarray) else np.empty(0, inner)
    return told(found, inner, home) if inner.hasobject else in_order(found, inner)


def in_order(values: np.ndarray[Any, Any], stored: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A list of numbers that h5py gives the bytes of the file, and the byte order of this machine."""
    is_wrong = values.dtype != stored and values.dtype == stored.newbyteorder("=") and _forgets_order()
    return values.view(stored) if is_wrong else values


@cache
def _forgets_order() -> bool:
    """Whether this h5py does so, as up to at least 3.16: found out on a small file in memory."""
    swapped = np.dtype("i2").newbyteorder("S")
    with h5py.File(io.BytesIO(), "w") as file:
        probe = file.create_dataset("x", (1,), h5py.vlen_dtype(swapped))
        probe[0] = np.array([1], swapped)
        return int(probe[0][0]) != 1


def _bytes_of(values: np.ndarray[Any, Any], plain: np.dtype[Any]) -> int:
    if plain.names:
        return sum(_bytes_of(values[name], plain[name].base) for name in plain.names if plain[name].hasobject)
    inner = _inner(plain)
    if inner is not None:
        return sum(_bytes_of(one, inner) if inner.hasobject else one.nbytes for one in values.flat)
    return sum(map(len, values.flat)) if _is_text(plain) else 0


def reference_of(value: Any, home: Any) -> Reference:
    """Ours, of one of h5py. What leads nowhere, or to an object that is gone, has no name."""
    if not value:
        return Reference("")
    try:
        name = h5r.get_name(value, home)
    except (ValueError, RuntimeError, OSError):
        name = None
    path = (name or b"").decode("utf-8", "surrogateescape")
    is_region = isinstance(value, h5py.RegionReference)
    return Reference(path, _selection(h5r.get_region(value, home)) if is_region and path else None)


def _selection(space: h5s.SpaceID) -> Any:
    kind = space.get_select_type()
    if kind == h5s.SEL_ALL:
        return (slice(None),) * len(space.shape)
    if kind == h5s.SEL_NONE or not space.get_select_npoints():
        return (slice(0, 0),) * len(space.shape)
    if kind == h5s.SEL_HYPERSLABS and space.is_regular_hyperslab():
        slices = [_slice(*axis) for axis in zip(*space.get_regular_hyperslab(), strict=True)]
        if None not in slices:
            return tuple(slices)
    if space.get_select_npoints() > _MOST_SCATTERED:
        raise ValueError(f"a region of {space.get_select_npoints()} scattered elements; the limit is {_MOST_SCATTERED}")
    if kind == h5s.SEL_POINTS:
        return tuple(space.get_select_elem_pointlist().T.astype(np.int64))
    boxes = [_positions(low, high) for low, high in space.get_select_hyper_blocklist().astype(np.int64)]
    return tuple(np.concatenate(boxes, axis=1))


def _slice(start: int, stride: int, count: int, block: int) -> slice | None:
    if count == 1 or stride == block:
        return slice(int(start), int(start + count * block))
    return slice(int(start), int(start + (count - 1) * stride + 1), int(stride)) if block == 1 else None


def _positions(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of all elements of a box whose last one is at `high`."""
    counts = high - low + 1
    return np.indices(tuple(counts)).reshape(len(low), -1) + low.reshape(-1, 1)
