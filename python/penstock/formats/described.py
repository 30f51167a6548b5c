"""Datasets described in Python: extents of files that something else knows about.

For layouts no format here reads: who can say where the bytes lie (a simulation's own dump, a reference file) gets lazy
datasets, strided selections and device-side byte order for it. It is also the second implementation of the container
protocol, which keeps the seam honest, and what the tests of plan and mover are made with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock._arrays.distinct import distinct
from penstock._error import Error
from penstock.formats.faults import cut_short, unknown
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo
from penstock.formats.simple.single import look_at

Decoder = Callable[[Box], bytes]


@dataclass
class Described(Container):
    """A container of datasets given as (info, table of all its chunks). `decoders` serve those with encoded chunks."""

    name: str
    datasets: Mapping[str, tuple[DatasetInfo, ChunkTable]]
    decoders: Mapping[str, Decoder] = field(default_factory=dict)
    file_attributes: Mapping[str, Any] = field(default_factory=dict)
    format: str = "described"

    def names(self) -> Sequence[str]:
        return tuple(self.datasets)

    def info(self, name: str) -> DatasetInfo:
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[DatasetInfo, ChunkTable]:
        if name not in self.datasets:
            raise unknown(self.name, name, self.datasets)
        return self.datasets[name]

    def table(self, name: str, box: Box) -> ChunkTable:
        info, table = self._find(name)
        start, stop = np.array(box.start, np.int64), np.array(box.stop, np.int64)
        low = table.origin.reshape(len(table.bytes), info.ndim)
        meets = ((low < stop) & (low + np.array(info.chunk_shape, np.int64) > start)).all(axis=1)
        found = ChunkTable(table.files, *(None if column is None else column[meets] for column in _columns(table)))
        ends = found.offset_bytes + found.bytes
        for number in distinct(found.file_index):
            mine = found.file_index == number
            size = look_at(table.files[number]).st_size
            if ends[mine].max() > size:
                cause = f"its data reach to byte {int(ends[mine].max())}, the file ends at {size}"
                raise cut_short(table.files[number], cause, name)
        return found

    def decode(self, name: str, box: Box) -> bytes:
        if name not in self.decoders:
            raise Error(code="unsupported", operation=f"decode dataset {name!r}", cause="it has no decoder")
        return self.decoders[name](box)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return self.file_attributes

    def close(self) -> None:
        """Nothing is held open."""


def _columns(table: ChunkTable) -> tuple[np.ndarray | None, ...]:
    places = (table.file_index, table.origin, table.offset_bytes, table.bytes)
    return (*places, table.encoded, table.host_only, table.skipped)
