"""Sizes from text, as the command takes them, with one more answer than the library's: a number that is too large.

The library refuses what it cannot hold as "not a number"; whoever typed 2^64 bytes must read that this is too many.
"""

from __future__ import annotations

import operator
import re
from typing import Any

from penstock import _core
from penstock._error import Error

MOST_BYTES = (1 << 63) - 1  # what off_t holds
MOST_FLOAT = 9e18  # beyond this the library takes whole numbers without a unit only
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Bytes of "4096", "64KiB", "16G" (binary), "1.5GB" (decimal). Raises Error for what is none, or beyond 2^63-1."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    try:
        value = _core.parse_bytes(text)
    except Error:
        if not _beyond(text):
            raise
        value = MOST_BYTES + 1
    if value <= MOST_BYTES:
        return value
    raise Error(
        operation="parse size",
        cause=f"'{text}' is too large",
        advice="use at most 2^63-1 bytes, which is what a file can hold",
    )


def byte_count(name: str, value: Any) -> int:
    """Bytes that an argument of this name says, as a whole number or as a text. TypeError for anything else."""
    if isinstance(value, str):
        return parse_bytes(value)
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    kind = type(value).__name__
    raise TypeError(f"{name} must be a whole number of bytes, or a text like '4 KiB', not {kind}")


def _beyond(text: str) -> bool:
    """Whether the text would be a size if its number were smaller."""
    number = _NUMBER.match(text)
    if number is None:
        return False
    try:
        unit = _core.parse_bytes("1" + text[number.end() :])
    except Error:
        return False
    return float(number[0]) * unit > MOST_FLOAT


def lengths_of(what: str, given: Any) -> list[int]:
    """Whole numbers of 0 or more. TypeError and ValueError name what they are of."""
    try:
        numbers = [operator.index(one) for one in given]
    except TypeError:
        raise TypeError(f"{what} is a list of whole numbers, not {given!r:.100}") from None
    if numbers and not 0 <= min(numbers) <= max(numbers) < 1 << 63:
        raise ValueError(f"{what} is {given!r:.100}; numbers are from 0 to 2^63-1")
    return numbers
