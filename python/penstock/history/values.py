"""What the calls of a history take besides arrays, as the core takes it: names, widths of halos, attributes, times."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock._sizes import lengths_of
from penstock._text import need_characters

Halo = Sequence[int | tuple[int, int]]

_NUMBERS = ("float32", "float64", "int32")  # types of attributes
_OF_THE_VARIABLE = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range")  # have its type, says CF
_LARGEST_INT32 = 2**31 - 1


def names_of(variable: str, dims: Sequence[str]) -> list[str]:
    if isinstance(dims, str) or not all(isinstance(one, str) for one in dims):
        raise TypeError(f"variable {variable!r}: dims are a list of names, not {dims!r}")
    for one in dims:
        need_characters("the name of a dimension", one)
    return list(dims)


def need_texts(**texts: Any) -> None:
    """ValueError of text that the core cannot take. What is no text is refused by the core."""
    for name, text in texts.items():
        if isinstance(text, str):
            need_characters(f"{name}=", text)


def halo_of(variable: str, halo: Halo, rank: int) -> tuple[list[int], list[int]]:
    """Widths before and behind, of each dimension."""
    if isinstance(halo, int) or (halo and len(halo) != rank):
        raise ValueError(f"variable {variable!r}: halo is {halo!r}; give a width for each of {rank} dimensions")
    pairs = [(one, one) if isinstance(one, int) else tuple(one) for one in halo or (0,) * rank]
    if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError(f"variable {variable!r}: halo is {halo!r}; widths are 0 or more, of one or both sides")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def whole_shape(variable: str, given: Sequence[int] | None, around: list[int], *, has_halo: bool) -> tuple[int, ...]:
    """Lengths of the array in memory. `around`: elements of the halo along each dimension."""
    shape = lengths_of(f"variable {variable!r}: its shape", () if given is None else given)
    if len(shape) != len(around):
        raise ValueError(f"variable {variable!r} has {len(shape)} dimensions and {len(around)} names of them")
    return tuple(n if has_halo else n + more for n, more in zip(shape, around, strict=True))


def plain_name(variable: str, dtype: DType) -> str:
    if dtype.big_endian:
        advice = "give arrays in the order of this machine: the format has its own"
        raise Error(operation="define", cause=f"variable {variable!r} has {dtype} elements", advice=advice)
    return dtype.name


def compression_of(name: str | None, level: int | None, shuffle: bool | None) -> tuple[str, int, bool]:
    """(name, level, shuffle); 0 is the usual level."""
    need_texts(compression=name)
    if name in (None, "none") and (level is not None or shuffle is not None):
        given = "compression_level" if level is not None else "shuffle"
        raise ValueError(f"{given}= is for a history or a variable with compression=")
    if level is not None and level < 1:
        raise ValueError(f"compression_level is {level}; levels begin with 1")
    return name or "none", level or 0, shuffle is not False


def attributes_of(attrs: Mapping[str, Any], of_type: str) -> list[tuple[str, str, Any]]:
    """(name, type, value) of each; the type of text is empty."""
    if not isinstance(attrs, Mapping):
        raise TypeError(f"attributes are a dict of names and values, not {type(attrs).__name__}")
    return [_attribute(name, value, of_type) for name, value in attrs.items()]


def _attribute(name: str, value: Any, of_type: str) -> tuple[str, str, Any]:
    if not isinstance(name, str):
        raise TypeError(f"the name of an attribute is a str, not {type(name).__name__}")
    need_characters("the name of an attribute", name)
    if isinstance(value, str):
        need_characters(f"attribute {name!r}: its text", value)
        return name, "", str(value)
    import numpy as np

    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf" or numbers.ndim > 1 or not numbers.size:
        raise TypeError(f"attribute {name!r} is {value!r}; give text, a number or a list of numbers")
    kind = numbers.dtype.name
    if name in _OF_THE_VARIABLE and of_type in _NUMBERS and not isinstance(value, (np.ndarray, np.generic)):
        kind = of_type
    elif numbers.dtype.kind in "iu" and abs(numbers.astype(float)).max() <= _LARGEST_INT32:
        kind = "int32"
    if kind not in _NUMBERS:
        cause = f"attribute {name!r} is {value!r} of {kind}"
        raise Error(operation="define", cause=cause, advice=f"attributes have {', '.join(_NUMBERS)}, or are text")
    return name, kind, [float(one) for one in numbers.ravel()]


def number_of(time: Any, units: str, calendar: str) -> float:
    """A time in the units of the history."""
    is_date = hasattr(time, "timetuple") or type(time).__name__ == "datetime64"
    if isinstance(time, (str, bytes, bytearray)):  # float() would make a number of "1"
        raise TypeError(f"a time is a number or a date, not {type(time).__name__}")
    if not is_date:
        try:
            return float(time)
        except (TypeError, ValueError):
            raise TypeError(f"a time is a number or a date, not {type(time).__name__}") from None
        except OverflowError:
            raise ValueError("the time is larger than any float64; give a finite time") from None
    if time != time:  # NaT, of NumPy or pandas, is no time
        raise ValueError("the time is NaT, which is no date")
    if not units:
        raise ValueError("a date was given, and the history has no units of time: give History(time_units=...)")
    try:
        import cftime
    except ImportError:
        raise TypeError("a date takes the package cftime to become a number: pip install cftime") from None
    if type(time).__name__ == "datetime64":
        given, time = time, _datetime_of(time)
        if not isinstance(time, datetime.datetime):
            raise ValueError(f"the time is {given}: dates of numpy.datetime64 are of the years 1 to 9999 here")
    if not hasattr(time, "hour"):
        raise TypeError(f"the time is {time}, a {type(time).__name__} without a time of day: give a datetime.datetime")
    return float(cftime.date2num(time, units, calendar))


def _datetime_of(time: Any) -> Any:
    """A datetime.datetime; a number or None of a datetime64 that is beyond those."""
    try:
        return time.astype("datetime64[us]").astype(datetime.datetime)
    except OverflowError:  # older NumPys wrap around
        return None
