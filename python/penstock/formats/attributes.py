"""Attributes of a dataset, a group or a file, as a mapping; assigning to it writes them, where the file is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

Write = Callable[[Mapping[str, Any]], None]


class Attributes(MutableMapping[str, Any]):
    """Values are what the format's library gives: numbers, text, NumPy arrays."""

    def __init__(self, values: Mapping[str, Any], write: Write | None = None) -> None:
        self._values, self._write = values, write
        self._written: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._written:
            return self._written[name]
        try:
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
