"""Fields and attributes of a restart, as the core takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._arrays.array import Array
from penstock._sizes import lengths_of
from penstock._text import need_characters
from penstock.formats.reading.target import Target
from penstock.formats.writing import value_of


def field_of(name: str, array: Any, box: tuple[Sequence[int], Sequence[int]] | None) -> tuple[Any, ...]:
    """(name, type, shape, start, count, memory, bytes to its first element)."""
    _need_name("a field", name)
    target = value_of(array)
    if not isinstance(target, Target):
        raise TypeError(f"field {name!r}: this is text; give it in attrs=")
    if not isinstance(array, (Array,)) and not hasattr(array, "shape"):
        raise TypeError(f"field {name!r} is a {type(array).__name__}; give an array, or a number in attrs=")
    if target.dtype.big_endian:
        raise TypeError(f"field {name!r} has {target.dtype} elements; give them in the order of this machine")
    if not target.is_order("C"):
        raise TypeError(f"field {name!r} does not have its elements one behind the other in C order; pass a copy")
    shape, start = (list(target.shape), [0] * target.ndim) if box is None else _shape_and_start(name, box)
    if len(shape) != target.ndim or len(start) != target.ndim:
        raise ValueError(f"field {name!r} has {target.ndim} dimensions, and its box {len(shape)} and {len(start)}")
    memory = target.memory if target.size else None
    return (
        name,
        target.dtype.name,
        shape,
        start,
        list(target.shape),
        memory,
        target.base,
    )


def _shape_and_start(name: str, box: Any) -> tuple[list[int], list[int]]:
    try:
        shape, start = box
    except (TypeError, ValueError):
        advice = "give (shape of the whole field, where the array begins in it)"
        raise TypeError(f"the box of field {name!r} is {box!r:.100}; {advice}") from None
    return lengths_of(f"the shape of field {name!r}", shape), lengths_of(f"the start of field {name!r}", start)


def attribute_of(name: str, value: Any) -> tuple[str, list[int], Any]:
    """(type, shape, bytes or texts)."""
    import numpy as np

    _need_name("an attribute", name)
    if isinstance(value, str):
        need_characters(f"attribute {name!r}: its text", value)
        return "", [], [value]
    try:
        numbers = np.asarray(value)
    except ValueError:  # rows of several lengths
        numbers = np.asarray(None)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"attribute {name!r} is {value!r:.100}; give text, a number or an array of numbers")
    numbers = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("=")).reshape(numbers.shape)
    return numbers.dtype.name, list(numbers.shape), numbers.tobytes()


def _need_name(of: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of {of} is a str, not {type(name).__name__}")
    need_characters(f"the name of {of}", name)


def attribute_value(told: tuple[str, list[int], Any]) -> Any:
    import numpy as np

    dtype, shape, value = told
    if not dtype:
        return value[0] if not shape else list(value)
    return np.frombuffer(value, dtype).reshape(shape)[()]
