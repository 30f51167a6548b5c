"""A Zarr store as it is being written, to be read: names and shapes of the writer, and chunks as they lie now.

The writer's own `table` gives places to chunks that are not stored. What must stay true: reading never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.formats.model import Box, ChunkTable, DatasetInfo

if TYPE_CHECKING:
    from penstock.formats.zarr.write import ZarrWriter


class Reading:
    """A Container over a writer."""

    format = "zarr"

    def __init__(self, writer: ZarrWriter) -> None:
        self._writer, self.name = writer, writer.name

    def names(self) -> Sequence[str]:
        return self._writer.names()

    def info(self, name: str) -> DatasetInfo:
        return self._writer.info(name)

    def table(self, name: str, box: Box) -> ChunkTable:
        return self._writer.container.table(name, box)

    def decode(self, name: str, box: Box) -> memoryview:
        return self._writer.container.decode(name, box)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return self._writer.attributes(group)

    def close(self) -> None:
        """The writer ends by publish or abandon."""
