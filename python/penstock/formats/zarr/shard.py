"""Shards: the indices of chunk files that hold many chunks, read, verified and turned into rows of a table.

What must stay true: an index is as long as shape and metadata say, and inside its file, before it is read; every entry
that is used lies inside the file, and no other is judged: a running model writes those of later steps; an index that
was read is used again only while its file is the same.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock._files.descriptor import close_read, read_at
from penstock._files.open_files import with_room
from penstock.formats.crc32c import crc32c
from penstock.formats.zarr.codecs import Sharding
from penstock.formats.zarr.decode import NOT_STORED, need_places, parse_index

_KEPT_BYTES = 64 << 20


class Rows(NamedTuple):
    """Inner chunks that are stored: `index` int64 [n, rank] in inner chunks from the shard's first one."""

    index: np.ndarray
    offset_bytes: np.ndarray
    bytes: np.ndarray


class Entries(NamedTuple):
    """The index of one shard: uint64 [n, 2], and the bytes that the file had."""

    all: np.ndarray
    file_bytes: int

    def need_inside(self, chosen: np.ndarray) -> None:
        """Raises ValueError of one of them that is neither empty nor lies in the file."""
        need_places(chosen)
        chosen = chosen[chosen[:, 0] != NOT_STORED]
        over = (chosen > self.file_bytes).any(axis=1)
        over |= ~over & (chosen[:, 0] + np.where(over, 0, chosen[:, 1]) > self.file_bytes)
        if over.any():
            first, length = chosen[int(np.argmax(over))].tolist()
            raise ValueError(f"an inner chunk of {length} bytes begins at {first}, the shard ends at {self.file_bytes}")


class Indices:
    """Indices of shards that were read lately."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int, int], Entries] = OrderedDict()
        self._bytes = 0

    def entries(self, path: str, sharding: Sharding, outer: tuple[int, ...]) -> Entries:
        """The index of one shard. Raises ValueError and OSError."""
        descriptor = with_room(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        try:
            status = os.fstat(descriptor)
            key = (path, status.st_ino, status.st_size, status.st_mtime_ns)
            if key not in self._kept:
                self._keep(key, _read_index(descriptor, status.st_size, sharding, outer))
            self._kept.move_to_end(key)
            return self._kept[key]
        finally:
            close_read(descriptor)

    def _keep(self, key: tuple[str, int, int, int], entries: Entries) -> None:
        self._kept[key] = entries
        self._bytes += entries.all.nbytes
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.all.nbytes


def _read_index(descriptor: int, file_bytes: int, sharding: Sharding, outer: tuple[int, ...]) -> Entries:
    size = sharding.index_bytes(outer)
    if size > file_bytes:
        raise ValueError(f"the shard has {file_bytes} bytes, its index alone {size}")
    raw = read_at(descriptor, size, 0 if sharding.index_at_start else file_bytes - size)
    if len(raw) != size:
        raise ValueError("the shard became shorter while it was read")
    return Entries(parse_index(sharding, raw), file_bytes)


def rows_of(entries: Entries, grid: tuple[int, ...], turned: bool, ranges: Sequence[range]) -> Rows:
    """Entries with places in the ranges (in inner chunks, from the shard's first one). `turned`: the index has its
    dimensions the other way round. Raises ValueError of one that is not in the file."""
    table = entries.all.reshape(*(grid[::-1] if turned else grid), 2)
    if turned:
        table = table.transpose(*range(len(grid))[::-1], len(grid))
    part = table[tuple(slice(one.start, one.stop) for one in ranges)]
    entries.need_inside(part.reshape(-1, 2))
    index = np.argwhere(part[..., 0] != NOT_STORED)
    chosen = part[tuple(index.T)].reshape(len(index), 2)
    first = np.array([one.start for one in ranges], np.int64).reshape(1, len(ranges))
    return Rows(index + first, chosen[:, 0].astype(np.int64), chosen[:, 1].astype(np.int64))


def encode_index(sharding: Sharding, entries: np.ndarray) -> bytes:
    """The bytes of an index: uint64 [n, 2]."""
    body = entries.astype(">u8" if sharding.index_big_endian else "<u8").tobytes()
    return body + crc32c(body).to_bytes(4, "little") if sharding.index_checked else body
