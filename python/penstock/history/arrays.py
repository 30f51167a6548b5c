"""Arrays that are put into a history: what they are as memory, and how the next one like them is known."""

from __future__ import annotations

from typing import Any, NamedTuple

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

    protocol = "__array_interface__" if isinstance(array, np.ndarray) else "__cuda_array_interface__"
    try:
        told = getattr(array, protocol, None)
    except (RuntimeError, TypeError):  # a tensor that needs its gradient
        return None
    if not isinstance(told, dict) or not isinstance(told.get("data"), tuple):
        return None
    place = None if protocol == "__array_interface__" else getattr(array, "device", None)
    key = type(array), told["typestr"], told["shape"], told.get("strides"), place
    return PlainArray(key, told["data"][0], told.get("stream"))


def numbers(variable: str, array: Any, stream: int | None = None) -> Target:
    """The array as memory."""
    found = value_of(array, stream)
    if not isinstance(found, Target):
        raise TypeError(f"variable {variable!r}: this is text, and a history has numbers")
    return found
