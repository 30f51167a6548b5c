"""Arrays that are put into a history: what they are as memory, and how the next one like them is known."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock import _core
from penstock._arrays.dtype import DType
from penstock.formats.reading.target import Target
from penstock.formats.writing import value_of


class PutField(NamedTuple):
    """What arrays of a variable must be."""

    dtype: DType
    shape: tuple[int, ...]  # halo included
    stored: str  # the type in the file


class SeenArray(NamedTuple):
    """An array that was put: what is like it needs no second look."""

    key: tuple[Any, ...]
    strides: list[int]


class PlainArray(NamedTuple):
    """What an array says of itself to all libraries."""

    key: tuple[Any, ...]  # class of the array, type, shape and strides
    address: int  # of its first element
    stream: Any  # that its owner names


def plain(array: Any) -> PlainArray | None:
    """None: the array shares no memory in this way."""
    import numpy as np

    if isinstance(array, np.ndarray):  # its __array_interface__ takes longer than all else here
        try:
            address = _core.address_of(array)
        except (ValueError, BufferError):  # dates are no buffer
            return None
        return PlainArray((type(array), array.dtype, array.shape, array.strides), address, None)
    try:
        told = getattr(array, "__cuda_array_interface__", None)
    except (RuntimeError, TypeError):  # a tensor that needs its gradient
        return None
    if not isinstance(told, dict) or not isinstance(told.get("data"), tuple):
        return None
    key = type(array), told["typestr"], told["shape"], told.get("strides"), getattr(array, "device", None)
    return PlainArray(key, told["data"][0], told.get("stream"))


def numbers(variable: str, array: Any, stream: int | None = None) -> Target:
    """The array as memory."""
    found = value_of(array, stream)
    if not isinstance(found, Target):
        raise TypeError(f"variable {variable!r}: this is text, and a history has numbers")
    return found
