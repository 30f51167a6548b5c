"""Chunks that a write encodes on its way, as columns: which elements of memory each consists of.

What must stay true: the selection is made of whole chunks; a part has the chunks of ENCODE_BYTES of elements at
most, or one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace

import numpy as np

from penstock import _core
from penstock.formats.model import Filter, Places, Writer
from penstock.formats.reading.pieces import Wanted, c_strides, memory_offset, memory_strides

ENCODE_BYTES = 32 << 20  # of elements, at a time; two such parts are under way
# The last part is written when no other is encoded, so few cores get small ones. They are also what the page cache
# takes at once.
_CORE_BYTES = 8 << 20
MOST_FILE_BYTES = 16 << 20  # of a chunk that is a file, and that the thread writes which encodes it


class Placing:
    """Where chunks of a file go, as a write comes to them."""

    def __init__(self, writer: Callable[[], AbstractContextManager[Writer]]) -> None:
        self._writer = writer

    def places(self, name: str, origin: np.ndarray, sizes: np.ndarray) -> Places:
        """As Writer.place."""
        with self._writer() as writer:
            return writer.place(name, origin, sizes)

    def files(self, name: str, origin: np.ndarray) -> Sequence[str] | None:
        """As Writer.chunk_files."""
        with self._writer() as writer:
            return writer.chunk_files(name, origin)


@dataclass(frozen=True)
class Encoding:
    """Whole chunks of one dataset. Columns: one row a chunk."""

    dataset: str
    filters: tuple[Filter, ...]  # none: its chunks are written as they are
    placing: Placing
    chunk_bytes: int
    target: int
    item_bytes: int
    swap_bytes: int
    fill: bytes  # one element as stored, for what of a chunk lies beyond the dataset
    origin: np.ndarray  # int64 [n, ndim]
    boxes: np.ndarray  # int64 [n, 2 + 3 ndim], as _core.copy_boxes takes them; destinations count from the chunk

    @property
    def count(self) -> int:
        return len(self.origin)

    @property
    def bytes(self) -> int:
        """That the elements take."""
        ndim = self.origin.shape[1]
        return int(self.boxes[:, 2 : 2 + ndim].prod(axis=1).sum()) * self.item_bytes

    @property
    def encoder_name(self) -> str:
        """As evidence says it."""
        return encoder_name(self.filters)

    def parts(self) -> Iterator[Encoding]:
        """As many chunks as are encoded at a time."""
        most = min(ENCODE_BYTES, _CORE_BYTES * len(os.sched_getaffinity(0)))
        step = max(1, most // self.chunk_bytes)
        for start in range(0, self.count, step):
            rows = slice(start, start + step)
            yield replace(self, origin=self.origin[rows], boxes=self.boxes[rows])


def joined(encodings: Sequence[Encoding]) -> list[Encoding]:
    """The same chunks, in as few: those that differ in their chunks alone are one."""
    groups: dict[tuple[object, ...], list[Encoding]] = {}
    for one in encodings:
        groups.setdefault(_common(one), []).append(one)
    return [group[0] if len(group) == 1 else _together(group) for group in groups.values()]


def _common(one: Encoding) -> tuple[object, ...]:
    names = (field.name for field in fields(one) if field.name not in ("origin", "boxes"))
    return tuple(getattr(one, name) for name in names)


def _together(group: Sequence[Encoding]) -> Encoding:
    origin, boxes = (np.concatenate([getattr(one, name) for one in group]) for name in ("origin", "boxes"))
    return replace(group[0], origin=origin, boxes=boxes)


def encoder_name(filters: tuple[Filter, ...]) -> str:
    """Name of the encoder that applies the filters, as evidence says it."""
    told = _core.encoding_libraries([(one.name, one.values) for one in filters])
    return f"host by {' and '.join(dict.fromkeys(filter(None, told))) or 'Penstock'}"


def encoding_of(wanted: Wanted, filters: tuple[Filter, ...], placing: Placing) -> Encoding:
    """Requires: the selection is made of whole chunks."""
    info, selection = wanted.info, wanted.selection
    low, counts = np.array(selection.box.start, np.int64), np.array(selection.counts, np.int64)
    chunk = np.array(info.chunk_shape, np.int64)
    grid = np.indices(tuple((-(-counts // chunk)).tolist()), np.int64).reshape(info.ndim, -1).T
    at = grid * chunk
    extents = np.minimum(chunk, counts - at)
    item = info.dtype.itemsize
    ndim = info.ndim
    boxes = np.empty((len(at), 2 + 3 * ndim), np.int64)
    boxes[:, 0], boxes[:, 1] = 0, memory_offset(wanted, at)
    boxes[:, 2 : 2 + ndim] = extents
    boxes[:, 2 + ndim : 2 + 2 * ndim] = c_strides(chunk.reshape(1, -1), item)
    boxes[:, 2 + 2 * ndim :] = memory_strides(wanted)
    swap, fill = info.dtype.swap_bytes, info.fill or bytes(item)
    return Encoding(info.name, filters, placing, info.chunk_bytes, wanted.target, item, swap, fill, at + low, boxes)
