"""From a header as data to the bytes of a classic netCDF file, and from Python values to attributes.

The reverse of `netcdf3/header`. What must stay true: a header that was parsed is written back byte for byte, except for
the redundant sizes of variables, which are computed; what the version of the format cannot say is refused, never
changed to something near it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.formats.netcdf3.header import (
    CHAR,
    TYPES,
    Attribute,
    ClassicDimension,
    Header,
    Variable,
    name_bytes,
    padded,
)

_SIZE_UNKNOWN = (1 << 32) - 1  # what the format says of sizes that 32 bits cannot hold
_CODES = {kind.name: code for code, kind in TYPES.items()} | {"bytes8": CHAR}  # as read; raw bytes are taken too


def type_code(name: str, version: int) -> int | None:
    """The format's number for a type; None: this version does not have it."""
    code = _CODES.get(name)
    return None if code is None or (code > 6 and version != 5) else code


def encode(header: Header) -> bytes:
    """The bytes of the header."""
    writer = _Encoder(header)
    return writer.bytes()


def encode_records(header: Header) -> bytes:
    """The bytes at offset 4 that say how many records there are."""
    return (header.records or 0).to_bytes(8 if header.version == 5 else 4, "big")


class _Encoder:
    def __init__(self, header: Header) -> None:
        self._header = header
        self._wide = header.version == 5

    def bytes(self) -> bytes:
        header = self._header
        parts = [b"CDF", bytes([header.version]), encode_records(header)]
        parts += self._list(10, [self._dimension(one) for one in header.dimensions])
        parts += self._attributes(header.attributes)
        parts += self._list(11, [self._variable(one) for one in header.variables])
        return b"".join(parts)

    def _list(self, tag: int, entries: list[bytes]) -> list[bytes]:
        return [(tag if entries else 0).to_bytes(4, "big"), self._number(len(entries)), *entries]

    def _dimension(self, dimension: ClassicDimension) -> bytes:
        return self._text(dimension.name) + self._number(dimension.length)

    def _attributes(self, attributes: tuple[Attribute, ...]) -> list[bytes]:
        return self._list(12, [self._attribute(one) for one in attributes])

    def _attribute(self, attribute: Attribute) -> bytes:
        count = len(attribute.payload) // TYPES[attribute.type].itemsize
        kind = attribute.type.to_bytes(4, "big")
        return self._text(attribute.name) + kind + self._number(count) + _pad(attribute.payload)

    def _variable(self, variable: Variable) -> bytes:
        size = padded(self._header.row_bytes(variable))
        begin = variable.begin.to_bytes(4 if self._header.version == 1 else 8, "big")
        indices = [self._number(len(variable.dimensions)), *map(self._number, variable.dimensions)]
        size_bytes = size.to_bytes(8, "big") if self._wide else min(size, _SIZE_UNKNOWN).to_bytes(4, "big")
        kind = variable.type.to_bytes(4, "big")
        parts = [self._text(variable.name), *indices, *self._attributes(variable.attributes), kind, size_bytes, begin]
        return b"".join(parts)

    def _text(self, text: str) -> bytes:
        raw = name_bytes(text)
        return self._number(len(raw)) + _pad(raw)

    def _number(self, value: int) -> bytes:
        return value.to_bytes(8 if self._wide else 4, "big")


def _pad(raw: bytes) -> bytes:
    return raw.ljust(padded(len(raw)), b"\0")


def encode_attribute(name: str, value: Any, version: int, type: int | None = None) -> Attribute:
    """Text, a number, or numbers of one type. `type`: the type it must have (a fill value has that of its variable).
    Raises ValueError saying what cannot be stored."""
    if isinstance(value, str):
        return Attribute(name, CHAR, value.encode("utf-8"))
    if isinstance(value, bytes):
        return Attribute(name, CHAR, value)
    numbers = _numbers(value, version)
    code = type if type is not None else type_code(numbers.dtype.newbyteorder("=").name, version)
    if numbers.ndim > 1 or code is None:
        hint = "join texts into one" if numbers.dtype.kind in "OUS" else "use text, a number, or a list of numbers"
        raise ValueError(
            f"attribute {name!r}: CDF-{version} cannot store {numbers.dtype} of {numbers.ndim} dimensions; {hint}"
        )
    if code == CHAR:
        return Attribute(name, CHAR, numbers.tobytes())
    stored = np.atleast_1d(numbers).astype(">" + np.dtype(TYPES[code].name).str[1:])
    if type is not None and not _same(stored, np.atleast_1d(numbers)):
        raise ValueError(f"attribute {name!r}: {value!r} is no {TYPES[code].name}, which its variable is")
    return Attribute(name, code, stored.tobytes())


def _same(stored: np.ndarray, given: np.ndarray) -> bool:
    """Floats may be rounded, not overflow; integers must be what they were."""
    if stored.dtype.kind == "f":
        return bool(np.array_equal(np.isfinite(stored), np.isfinite(given)))
    return bool(np.array_equal(stored, given))


def _numbers(value: Any, version: int) -> np.ndarray:
    """Python's integers as 32 bits where they fit (classic netCDF's usual type), truth values as 8."""
    numbers = np.asarray(value)
    if numbers.dtype.kind == "b":
        return numbers.astype(np.int8)
    is_plain = not hasattr(value, "dtype") and numbers.dtype.kind in "iu"
    if is_plain and np.array_equal(numbers.astype(np.int32), numbers):
        return numbers.astype(np.int32)
    return numbers
