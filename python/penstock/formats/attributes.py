"""Attributes of a dataset, a group or a file, as a mapping; assigning to it writes them, where the file is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from penstock._text import need_characters
from penstock.formats.format import Format

Write = Callable[[Mapping[str, Any]], None]


def may_be_name(name: str) -> bool:
    """Whether a file may have the name: half characters stand for bytes that are no UTF-8, others for nothing."""
    if name.isascii():
        return True
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def need_utf8(format: Format, what: str, value: Any) -> None:
    """ValueError of text, also inside a list or a dict, that the format cannot keep."""
    if isinstance(value, str):
        need_characters(what, value, "surrogateescape" if format.keeps_bytes else "strict")
    elif isinstance(value, Mapping):
        for key, one in value.items():
            need_utf8(format, what, key)
            need_utf8(format, f"{what} {key!r}: its text", one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            need_utf8(format, what, one)


class Attributes(MutableMapping[str, Any]):
    """Values are what the format's library gives: numbers, text, NumPy arrays."""

    def __init__(self, values: Mapping[str, Any], write: Write | None = None) -> None:
        self._values, self._write = values, write
        self._written: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str):
            raise TypeError(f"names of attributes are text, not {name!r}")
        if name in self._written:
            return self._written[name]
        try:
            if not name.isascii() and name not in list(self._values):
                raise KeyError(name)  # HDF5 takes some for damage, others for no name
            return self._values[name]
        except KeyError:
            raise KeyError(f"no attribute {name!r}; there are {', '.join(self) or 'none'}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        if self._write is None:
            raise TypeError("these attributes are read-only: open the file with write=True, or create it")
        self._write({name: value})
        self._written[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("attributes cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._values, *self._written]))

    def __len__(self) -> int:
        return len(set(self._values) | set(self._written))

    def __repr__(self) -> str:
        return f"<attributes {dict(self)}>"
