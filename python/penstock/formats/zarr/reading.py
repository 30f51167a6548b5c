"""A Zarr store as it is being written, to be read: names and shapes of the writer, and chunks as they lie now.

The writer's own `table` gives places to chunks that are not stored. What must stay true: reading never does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, Writer

if TYPE_CHECKING:
    import numpy as np


class WriterReading(Container):
    """A Container over a writer, and over what `chunks` gives, a container of the store as it lies."""

    format = "zarr"

    def __init__(self, writer: Writer, chunks: Callable[[], Container]) -> None:
        self._writer, self._chunks, self.name = writer, chunks, writer.name

    def names(self) -> Sequence[str]:
        return self._writer.names()

    def info(self, name: str) -> DatasetInfo:
        return self._writer.info(name)

    def table(self, name: str, box: Box) -> ChunkTable:
        return self._chunks().table(name, box)

    def decode(self, name: str, box: Box) -> bytes | bytearray | memoryview:
        return self._chunks().decode(name, box)

    def values(self, name: str, box: Box) -> np.ndarray:
        return self._chunks().values(name, box)

    def is_group(self, name: str) -> bool:
        return self._chunks().is_group(name) or super().is_group(name)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return self._writer.attributes(group)

    def close(self) -> None:
        """The writer ends by publish or abandon."""
