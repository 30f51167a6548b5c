"""Containers of contiguous datasets of one file: what raw files, NPY and safetensors have in common.

What must stay true: every extent was compared with the size of the file when it was opened, and is again when asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock._error import Error
from penstock.formats.faults import damaged, unknown
from penstock.formats.model import Box, ChunkTable, DatasetInfo


def extent_table(file: str, ndim: int, offset_bytes: int, bytes: int) -> ChunkTable:
    """The table of one plain range."""
    return ChunkTable(
        (file,),
        np.zeros(1, np.int32),
        np.zeros((1, ndim), np.int64),
        np.array([offset_bytes], np.int64),
        np.array([bytes], np.int64),
        np.zeros(1, bool),
    )


def file_bytes(name: str) -> int:
    try:
        return Path(name).stat().st_size
    except OSError as error:
        raise Error.of(error, "look at", name, "check the name and its permissions") from error


@dataclass
class ContiguousFile:
    """A container made of (description, file offset) of each dataset."""

    name: str
    format: str
    datasets: Mapping[str, tuple[DatasetInfo, int]]
    file_attributes: Mapping[str, Any] = field(default_factory=dict)

    def names(self) -> Sequence[str]:
        return tuple(self.datasets)

    def info(self, name: str) -> DatasetInfo:
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[DatasetInfo, int]:
        if name not in self.datasets:
            raise unknown(self.name, name, self.datasets)
        return self.datasets[name]

    def table(self, name: str, box: Box) -> ChunkTable:
        info, offset = self._find(name)
        size, end = bytes_of(info), file_bytes(self.name)
        if offset + size > end:
            raise damaged(self.name, f"its data reach to byte {offset + size}, the file ends at {end}", name)
        return extent_table(self.name, info.ndim, offset, size)

    def decode(self, name: str, box: Box) -> bytes:
        raise AssertionError(f"{self.format} encodes nothing")

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if group.strip("/"):
            raise KeyError(f"{self.name} has no group {group!r}")
        return self.file_attributes

    def close(self) -> None:
        """Nothing is held open."""


def bytes_of(info: DatasetInfo) -> int:
    size = info.dtype.itemsize
    for extent in info.shape:
        size *= extent
    return size
