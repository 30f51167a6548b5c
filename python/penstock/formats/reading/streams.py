"""Encoded chunks as columns: where their streams lie, and where their elements go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penstock.formats.model import Recipe


@dataclass(frozen=True)
class Packed:
    """Chunks of one dataset. Columns: one row a chunk."""

    dataset: str
    recipe: Recipe
    chunk_bytes: int  # decoded
    target: int
    item_bytes: int
    swap_bytes: int
    file: np.ndarray  # int64 [n]
    offset: np.ndarray  # int64 [n], of the stream in the file
    bytes: np.ndarray  # int64 [n], of the stream and what follows it
    origin: np.ndarray  # int64 [n, ndim], for messages
    boxes: np.ndarray  # int64 [n, 2 + 3 ndim], as _core.copy_boxes takes them; sources count from the decoded chunk

    @property
    def stream_bytes(self) -> np.ndarray:
        """int64 [n]."""
        return self.bytes - self.recipe.trailer_bytes

    def of(self, keep: slice) -> Packed:
        columns = {name: getattr(self, name)[keep] for name in ("file", "offset", "bytes", "origin", "boxes")}
        return replace(self, **columns)


class Unpack(NamedTuple):
    """Chunks of a batch, and where their streams lie in its scratch."""

    packed: Packed
    streams: np.ndarray  # int64 [n]
