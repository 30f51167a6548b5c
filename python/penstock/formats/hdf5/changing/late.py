"""Chunks that were given their places one by one, and are not in the index of their dataset yet.

To put one row into the columns of an index copies them. A writer of many small chunks does that once for many rows:
when the index is asked for. What must stay true: a chunk is in the index, or here, or has no place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.formats.hdf5.index import ChunkIndex
from penstock.formats.model import Shape

_Row = tuple[Shape, int, int]  # first element, offset in the file, bytes


@dataclass
class LateChunks:
    """Of all datasets of a file, by name."""

    _rows: dict[str, dict[int, _Row]] = field(default_factory=dict)

    def add(self, name: str, cell: int, row: _Row) -> None:
        self._rows.setdefault(name, {})[cell] = row

    def taken_into(self, name: str, index: ChunkIndex) -> ChunkIndex:
        """The index with the chunks of the dataset, which are here no longer."""
        late = self._rows.pop(name, None)
        if not late:
            return index
        cell = np.array(sorted(late), np.int64)
        cell = cell[index.rows_of(cell) < 0]  # HDF5 was asked for the index meanwhile, and knows them
        if not len(cell):
            return index
        origins, offsets, sizes = zip(*(late[one] for one in cell.tolist()), strict=True)
        columns = (np.array(column, np.int64) for column in (origins, offsets, sizes))
        return index.plus(cell, *columns)

    def clear(self) -> None:
        self._rows.clear()
