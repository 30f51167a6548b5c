"""What a file keeps between reads of its datasets, so that `file["name"][i]` in a loop finds it: each time that is
another Dataset.

What must stay true: nothing here is of a file that is open for writing; readers look themselves whether the file is
still the one that they know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from penstock import _core
from penstock.formats.reading.rows import KnownRows

Found = tuple[_core.SmallReader | None, bool]  # and whether it knows all of the dataset
MOST_DATASETS = 256  # whose readers are kept; a reader knows where all chunks of its dataset lie


class QuickReads:
    """Readers of one dataset that need no plan: of small parts, which was looked for `looked` times, and of rows."""

    __slots__ = ("looked", "reader", "rows")

    def __init__(self) -> None:
        self.looked = 0
        self.reader: _core.SmallReader | None = None
        self.rows: KnownRows | Literal[False] | None = None

    def small(self, make: Callable[[bool], Found]) -> _core.SmallReader | None:
        """`make(first)` is asked twice at most: the first read of a dataset may be its last, and then gets a reader of
        that part alone, which is not kept."""
        if self.reader is None and self.looked < 2:
            self.looked += 1
            reader, is_of_all = make(self.looked == 1)
            if not is_of_all:
                return reader
            self.reader = reader
        return self.reader


class QuickReadsOfFile:
    """Readers of the datasets that a program read last."""

    def __init__(self) -> None:
        self._kept: dict[str, QuickReads] = {}

    def of(self, path: str) -> QuickReads:
        """Those of the dataset at `path`. Threads may ask at once: then one of theirs is kept."""
        found = self._kept.pop(path, None) or QuickReads()
        self._kept[path] = found  # the last of the dictionary now
        if len(self._kept) > MOST_DATASETS:
            for oldest in list(self._kept)[:-MOST_DATASETS]:  # a list: another thread may change the dictionary
                self._kept.pop(oldest, None)
        return found
