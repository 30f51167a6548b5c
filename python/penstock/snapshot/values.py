"""What the calls of a snapshot take besides arrays, as the core takes it: attributes, names of types, boxes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from penstock._arrays.dtype import DType
from penstock._text import need_characters
from penstock.formats.reading.target import target_of

_LARGEST_INT64 = 2**63 - 1

Attribute = tuple[str, str, list[int], Any]  # name, type, shape, bytes; of text no type, and a list of texts


def attributes_of(attrs: Mapping[str, Any]) -> list[Attribute]:
    if not isinstance(attrs, Mapping):
        raise TypeError(f"attributes are a dict of names and values, not {type(attrs).__name__}")
    return [_attribute(name, value) for name, value in attrs.items()]


def _attribute(name: str, value: Any) -> Attribute:
    if not isinstance(name, str):
        raise TypeError(f"the name of an attribute is a str, not {type(name).__name__}")
    need_characters("the name of an attribute", name)
    if isinstance(value, (str, bytes)):
        return name, "", [], [_text(name, value)]
    import numpy as np

    if isinstance(value, int) and not isinstance(value, bool) and value > _LARGEST_INT64:
        value = np.uint64(value)
    if hasattr(value, "__cuda_array_interface__"):
        raise TypeError(f"attribute {name!r} lies on a GPU: attributes take values of the host")
    array = np.asarray(value)
    shape = list(array.shape)
    if array.dtype.kind in "SUT" or (array.dtype.kind == "O" and all(isinstance(one, str) for one in array.flat)):
        return name, "", shape, [_text(name, one) for one in array.ravel().tolist()]
    if array.dtype.kind not in "biufc" or array.dtype.name not in _NUMBERS:
        raise TypeError(f"attribute {name!r} is {value!r}; give text, a number, or an array of those")
    return name, array.dtype.name, shape, array.astype(array.dtype.newbyteorder("="), copy=False).tobytes()


_NUMBERS = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
}


def _text(name: str, value: str | bytes) -> str:
    if isinstance(value, str):
        need_characters(f"attribute {name!r}: its text", value)
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"attribute {name!r} is {value!r}, which is no UTF-8: give numbers") from None


def type_name(path: str, dtype: DType) -> str:
    """As the core names it."""
    if dtype.big_endian:
        raise TypeError(f"dataset {path!r} has {dtype} elements: give them in the order of this machine")
    if dtype.kind == "S":
        return f"S{dtype.itemsize}"
    if dtype.kind in "VUMmO":
        raise TypeError(f"dataset {path!r} has elements of {dtype}: give numbers, or text of fixed length (numpy S)")
    return dtype.name


def box_of(size: float | Sequence[float]) -> list[float]:
    """Three lengths; one number is a cube."""
    given: Any = size  # also a number, or an array, of NumPy
    lengths = list(given) if hasattr(given, "__len__") else [given] * 3
    if len(lengths) != 3 or any(one is None for one in lengths):  # noqa: PLR2004 - of space
        raise ValueError(f"box_size is {size!r}; give one length, or three")
    return [float(one) for one in lengths]


def cells_of(cells: Sequence[int]) -> list[int]:
    given: Any = cells  # also an array of NumPy
    along = list(given) if hasattr(given, "__len__") and not isinstance(given, str) else []
    if len(along) != 3 or not all(map(_is_count, along)):  # noqa: PLR2004 - of space
        raise ValueError(f"cells are {cells!r}; give three numbers of cells, one for each dimension")
    return [int(one) for one in along]


def _is_count(one: Any) -> bool:
    """Whether it is a whole number that the core takes; one of NumPy's floats may be whole, too."""
    try:
        return one == int(one) and 0 < one < 2**64
    except (TypeError, ValueError, OverflowError):
        return False


def particle_type(kind: Any) -> int:
    try:
        number = operator.index(kind)
    except TypeError:
        raise TypeError(f"a type of particles is its number, such as 0 of PartType0, not {kind!r}") from None
    if not 0 <= number < 2**32:
        raise ValueError(f"there are no particles of type {number}; give the N of PartTypeN")
    return number


def numbers_of(positions: Any) -> tuple[str, Any]:
    """Positions as the core takes them: the name of their type, and an array of the host in C order."""
    import numpy as np

    if hasattr(positions, "__cuda_array_interface__"):
        raise TypeError("positions lie on a GPU, and the host finds this order; give a copy of them there")
    array = np.ascontiguousarray(positions)
    _need_positions(array.dtype, array.shape)
    return array.dtype.name, array


def positions_of(positions: Any) -> tuple[str, Any]:
    """As numbers_of, of positions where they lie: those of a GPU stay there, and need C order."""
    if not hasattr(positions, "__cuda_array_interface__"):
        return numbers_of(positions)
    target = target_of(positions)
    _need_positions(target.dtype, target.shape)
    if not target.is_order("C"):
        raise ValueError("positions of a GPU are not in C order; give a contiguous copy")
    return target.dtype.name, positions


def _need_positions(dtype: Any, shape: tuple[int, ...]) -> None:
    if dtype not in ("float32", "float64") or len(shape) != 2 or shape[1] != 3:  # noqa: PLR2004 - of space
        raise ValueError(f"positions are {dtype} {shape}; give float32 or float64 (n, 3)")


def masses_of(table: Sequence[float]) -> list[float]:
    masses = [float(one) for one in table]
    if len(masses) > _MOST_MASSES:
        raise ValueError(f"mass_table has {len(masses)} masses; give one for each type, {_MOST_MASSES} at most")
    return masses


_MOST_MASSES = 7
