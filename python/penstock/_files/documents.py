"""Documents of JSON that tell of stores, read with suspicion: whatever the bytes are, the answer is plain values or a
ValueError.

What must stay true: a document has at most LARGEST_DOCUMENT_BYTES; no key appears twice; numbers that become shapes
are integers of at least a given value below 2**63.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any

from penstock._files.descriptor import close_read, read_at
from penstock._files.open_files import with_room

LARGEST_DOCUMENT_BYTES = 64 << 20
MOST_RANK = 32
LARGEST = 1 << 63


class Unsupported(Exception):
    """The document may be right, but names what Penstock does not do."""


def read_document(path: str) -> bytes | None:
    """The bytes of a regular file; None where there is none. Raises ValueError and OSError."""
    try:
        descriptor = with_room(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        if status.st_size > LARGEST_DOCUMENT_BYTES:
            raise ValueError(f"it has {status.st_size} bytes; no metadata have more than {LARGEST_DOCUMENT_BYTES}")
        return read_at(descriptor, status.st_size, 0)
    finally:
        close_read(descriptor)


def parse(raw: bytes) -> dict[str, Any]:
    """The object that a document is."""
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return found


def member(document: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """A member that must be there, of that JSON type."""
    if key not in document:
        raise ValueError(f"it has no {key!r}")
    value = document[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise ValueError(f"{key!r} is {short(value)}")
    return value


def integers(value: Any, what: str, least: int) -> tuple[int, ...]:
    """A list of integers, as shapes are. `least`: the smallest that is allowed."""
    if not isinstance(value, list) or len(value) > MOST_RANK:
        raise ValueError(f"{what} is {short(value)}; a list of at most {MOST_RANK} integers is expected")
    for number in value:
        if type(number) is not int or not least <= number < LARGEST:
            raise ValueError(f"{what} is {short(value)}; integers from {least} to 2**63-1 are expected")
    return tuple(value)


def texts(value: Any, what: str, count: int) -> tuple[str | None, ...]:
    """A list of `count` texts or nulls."""
    if not isinstance(value, list) or len(value) != count or not all(isinstance(one, str | None) for one in value):
        raise ValueError(f"{what} is {short(value)}; {count} names or nulls are expected")
    return tuple(value)


def named(value: Any, what: str) -> tuple[str, dict[str, Any]]:
    """Name and configuration of an extension point: an object with both, or the name alone."""
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {short(value)}; a name is expected")
    unknown = sorted(set(value) - {"name", "configuration", "must_understand"})
    if unknown:
        raise ValueError(f"{what} has unknown members {short(unknown)}")
    name = member(value, "name", str)
    configuration = value.get("configuration", {})
    if not isinstance(configuration, dict):
        raise ValueError(f"the configuration of {what} {name!r} is {short(configuration)}")
    return name, configuration


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
