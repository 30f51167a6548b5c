"""Zarr's data types and fill values, to and from DType and the bytes of one element.

What must stay true: a fill value becomes exactly the bytes that the store's own writers would have stored (of text and
bytes of any length, its own bytes); a type that is not known is refused by name.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock._arrays.dtype import DType, Field
from penstock._files.documents import Unsupported, named, short

_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LETTERS = {"float16": "e", "float32": "f", "float64": "d"}
_COMPLEX = {"complex64": "f", "complex128": "d", "complex_float32": "f", "complex_float64": "d"}
_ALIASES = {"complex_float32": "complex64", "complex_float64": "complex128"}
_LARGEST_ELEMENT = 1 << 20
_TEXTS = {"fixed_length_utf32": ("U", 4), "null_terminated_bytes": ("S", 1)}
_TIMES = {"numpy.datetime64": "M", "numpy.timedelta64": "m"}
_UNITS = {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as"}
# Types with names of their own that are plain, and what they are.
_KNOWN = {
    *(
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ),
    *("complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"),
}


def parse_type(value: Any) -> DType:
    """From `data_type` of zarr.json, in little-endian order. Raises Unsupported and ValueError."""
    name, configuration = named(value, "the data type")
    name = _ALIASES.get(name, name)
    if name in _KNOWN:
        return DType.of(name)
    bits = re.fullmatch(r"r([1-9][0-9]{0,8})", name)
    if bits is not None and int(bits[1]) % 8 == 0:
        return _raw(int(bits[1]) // 8)
    if name == "raw_bytes":
        return _raw(configuration.get("length_bytes"))
    make = _MADE.get(name)
    if make is None:
        raise Unsupported(f"its elements are of type {name!r}, which Penstock does not know")
    return make(name, configuration)


def _objects(name: str, _: dict[str, Any]) -> DType:
    return DType.objects("text" if name == "string" else "bytes")


def _text(name: str, configuration: dict[str, Any]) -> DType:
    letter, character_bytes = _TEXTS[name]
    count, rest = divmod(_raw(configuration.get("length_bytes")).itemsize, character_bytes)
    if rest or not count:
        raise ValueError(f"text of {short(configuration['length_bytes'])} bytes has no whole characters")
    return DType.of(f"{letter}{count}")


def _time(name: str, configuration: dict[str, Any]) -> DType:
    letter = _TIMES[name]
    unit, scale = configuration.get("unit"), configuration.get("scale_factor", 1)
    if unit == "generic":
        return DType.of(f"{letter}8")
    if not isinstance(unit, str) or unit not in _UNITS or type(scale) is not int or not 0 < scale < 1 << 31:
        raise ValueError(f"the unit of times is {short(scale)} {short(unit)}")
    return DType.of(f"{letter}8[{scale}{unit}]")


def _structured(_: str, configuration: dict[str, Any]) -> DType:
    """Members without gaps."""
    value = configuration.get("fields")
    pairs = [tuple(one.values()) if isinstance(one, dict) else one for one in value] if isinstance(value, list) else []
    if not 0 < len(pairs) <= 1000 or not all(map(_is_pair, pairs)):
        raise ValueError(f"the fields of its elements are {short(value)}")
    fields, end = [], 0
    for name, kind in pairs:
        fields.append(Field(name, parse_type(kind), end))
        end += fields[-1].bytes
    if any(one.dtype.host_only for one in fields):
        raise Unsupported("its elements have members of no fixed size")
    return replace(_raw(end), fields=tuple(fields))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str)


_MADE: dict[str, Callable[[str, dict[str, Any]], DType]] = {
    **dict.fromkeys(("string", "bytes", "variable_length_bytes"), _objects),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_TIMES, _time),
    **dict.fromkeys(("structured", "struct"), _structured),
}


def _raw(length: Any) -> DType:
    if type(length) is not int or not 0 < length <= _LARGEST_ELEMENT:
        raise ValueError(f"elements of {short(length)} bytes; 1 to {_LARGEST_ELEMENT} are possible")
    return DType(f"void{8 * length}", length, "V")


def with_order(dtype: DType, big_endian: bool) -> DType:
    swapped = big_endian and dtype.word_bytes > 1 and dtype.kind not in "VO"
    if big_endian and dtype.fields:
        raise Unsupported("its elements have members, and are big-endian")
    return DType(dtype.name, dtype.itemsize, dtype.kind, swapped, dtype.fields)


def type_document(dtype: DType) -> str | dict[str, Any]:
    """`data_type` of zarr.json. Raises ValueError where Zarr has none. Raw bytes are called as zarr-python calls them,
    which does not know the r40 of the specification."""
    if dtype.name in _KNOWN:
        return dtype.name
    if dtype == DType.objects("text"):
        return "string"
    if dtype.kind == "V" and not dtype.fields:
        return {"name": "raw_bytes", "configuration": {"length_bytes": dtype.itemsize}}
    other = "write its members as arrays of their own" if dtype.fields else f"write {dtype.bytes_view}"
    raise ValueError(f"Zarr has no type for {dtype}; {other}")


def parse_fill(value: Any, dtype: DType) -> bytes:
    """One element as stored, from `fill_value`; of a type of no fixed size its bytes. Raises ValueError."""
    try:
        plain = _fill(value, dtype)
    except (TypeError, OverflowError, struct.error, binascii.Error):
        raise ValueError(f"the fill value {short(value)} is no {dtype.name}") from None
    word = dtype.word_bytes
    if not dtype.big_endian or dtype.host_only:
        return plain
    return b"".join(plain[at : at + word][::-1] for at in range(0, len(plain), word))


def _fill(value: Any, dtype: DType) -> bytes:
    """Little-endian."""
    if dtype.kind == "b":
        if not isinstance(value, bool):
            raise TypeError
        return bytes([value])
    if dtype.kind in "iu":
        return _integer(value).to_bytes(dtype.itemsize, "little", signed=dtype.kind == "i")
    if dtype.kind in "OSUMm":
        return _other(value, dtype)
    if dtype.kind == "f":
        return _float(value, dtype)
    if dtype.kind == "c":
        if not isinstance(value, list) or len(value) != 2:
            raise TypeError
        half = DType.of("float32" if dtype.itemsize == 8 else "float64")
        return b"".join(_float(part, half) for part in value)
    return _small_float(value, dtype) if dtype.kind == "E" else _raw_fill(value, dtype)


def _other(value: Any, dtype: DType) -> bytes:
    """Text and times."""
    if dtype.kind in "Mm":
        number = -1 << 63 if value == "NaT" else _integer(value)
        return number.to_bytes(8, "little", signed=True)
    if value is None or value == 0:
        value = ""
    if not isinstance(value, str):
        raise TypeError
    if dtype.name == "text":
        return value.encode("utf-8", "surrogateescape")
    raw = value.encode("utf-32-le") if dtype.kind == "U" else base64.b64decode(value, validate=True)
    if dtype.kind == "O":
        return raw
    if len(raw) > dtype.itemsize:
        raise TypeError
    return raw.ljust(dtype.itemsize, b"\0")


def _integer(value: Any) -> int:
    """Old writers say 0.0 for integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise TypeError
    return value


def _float(value: Any, dtype: DType) -> bytes:
    if isinstance(value, str) and value.startswith("0x"):
        return _hexadecimal(value, dtype)
    if isinstance(value, str):
        value = _SPECIAL.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return struct.pack("<" + _LETTERS[dtype.name], value)


def _hexadecimal(value: str, dtype: DType) -> bytes:
    if not re.fullmatch(rf"0x[0-9a-fA-F]{{{2 * dtype.itemsize}}}", value):
        raise TypeError
    return bytes.fromhex(value[2:])[::-1]


def _small_float(value: Any, dtype: DType) -> bytes:
    """bfloat16 is the upper half of a float32; of the others only what needs no rounding of ours."""
    if isinstance(value, str) and value.startswith("0x"):
        return _hexadecimal(value, dtype)
    if dtype.name == "bfloat16":
        bits = int.from_bytes(_float(value, DType.of("float32")), "little")
        if bits & 0x7FFFFFFF > 0x7F800000:
            return (0x7FC0 | bits >> 31 << 15).to_bytes(2, "little")
        return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).to_bytes(2, "little")
    if value == 0 and dtype.name != "float8_e8m0fnu":
        return b"\0"
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError(f"the fill value of {dtype.name} needs: pip install ml_dtypes") from None
    number = _SPECIAL.get(value, value) if isinstance(value, str) else value
    return np.array(number, getattr(ml_dtypes, dtype.name)).tobytes()


def _raw_fill(value: Any, dtype: DType) -> bytes:
    if isinstance(value, dict) and dtype.fields:
        return _members_fill(value, dtype.fields)
    if isinstance(value, list) and all(type(byte) is int for byte in value):
        raw = bytes(value) if all(0 <= byte < 256 for byte in value) else b""
    elif isinstance(value, str):
        raw = base64.b64decode(value, validate=True)
    else:
        raise TypeError
    if len(raw) != dtype.itemsize:
        raise TypeError
    return raw


def _members_fill(value: dict[str, Any], fields: Sequence[Field]) -> bytes:
    """Each member by its name, without gaps between them. A member that is not named has what zarr-python takes: no
    time, no text, zero."""
    if not value.keys() <= {field.name for field in fields}:
        raise TypeError
    absent = {field.name: "NaT" for field in fields if field.dtype.kind in "Mm"}
    known = {**absent, **value}
    return b"".join(
        _fill(known[field.name], field.dtype) if field.name in known else bytes(field.bytes) for field in fields
    )
