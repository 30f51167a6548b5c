"""Shards whose chunks are compressed: each is written whole, one chunk behind the other, and the index behind them.

How long a chunk becomes is known when it is encoded, so its place is given then. What must stay true: a shard is made
under a name that no reader looks at, unless its whole array is hidden; whenever places were given, the index at the end
of the file names all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from penstock._error import Error
from penstock._files.descriptor import write_at
from penstock._files.open_files import with_room
from penstock.formats.model import Places
from penstock.formats.new_file import reserve
from penstock.formats.zarr.allocate import Index
from penstock.formats.zarr.array import ArrayMeta
from penstock.formats.zarr.codecs import Sharding
from penstock.formats.zarr.decode import NOT_STORED
from penstock.formats.zarr.shard import encode_index

_PAGE = 4096  # on which a chunk of that size or more begins

PathOf = Callable[[Index], str]


class _Shard:
    """One that is being filled: its index, and where its chunks end."""

    def __init__(self, path: str, sharding: Sharding, outer: tuple[int, ...]) -> None:
        self.path, self.sharding, self.outer = path, sharding, outer
        self.empty()

    def empty(self) -> None:
        count = int(np.prod(self.sharding.grid(self.outer)))
        self.entries = np.full((count, 2), NOT_STORED, np.uint64)
        self.begin = self.sharding.index_bytes(self.outer) if self.sharding.index_at_start else 0
        self.end, self.is_new = self.begin, True

    def add(self, number: int, size: int) -> int:
        """The place of a chunk. One that has a place already begins the shard anew."""
        if self.entries[number, 0] != NOT_STORED:
            self.empty()
        offset = -(-self.end // _PAGE) * _PAGE if size >= _PAGE else self.end
        self.entries[number] = offset, size
        self.end = offset + size
        return offset

    def store(self) -> None:
        """Makes room for the chunks, and writes the index."""
        flags = os.O_CREAT | (os.O_TRUNC if self.is_new else 0) | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            descriptor = with_room(lambda: os.open(self.path, flags, 0o666))
        except OSError as error:
            raise Error.of(error, "create", self.path, "check the folder and its permissions") from error
        try:
            index = encode_index(self.sharding, self.entries)
            at_start = self.sharding.index_at_start
            reserve(descriptor, self.path, 0, self.end + (0 if at_start else len(index)))
            write_at(descriptor, index, 0 if at_start else self.end)
        except OSError as error:
            raise Error.of(error, "make the shard", self.path, "check the space of the file system") from error
        finally:
            os.close(descriptor)
        self.is_new = False


class PackedShards:
    """Those that a writer fills and did not publish, by their files."""

    def __init__(self) -> None:
        self._shards: dict[str, _Shard] = {}

    def place(self, meta: ArrayMeta, chunks: tuple[np.ndarray, np.ndarray], path_of: PathOf) -> Places:
        """`chunks`: first elements and bytes."""
        sharding = meta.pipeline.sharding
        assert sharding is not None
        origin, sizes = chunks
        file_chunk, grid = np.array(meta.file_chunk, np.int64), sharding.grid(meta.file_chunk)
        inside = origin % file_chunk // np.array(sharding.shape, np.int64)
        numbers = np.ravel_multi_index(tuple(inside.T), grid) if grid else np.zeros(len(origin), np.int64)
        shards: dict[Index, _Shard] = {}
        files: dict[Index, int] = {}
        rows, offsets = np.empty(len(origin), np.int64), np.empty(len(origin), np.int64)
        for row, index in enumerate(map(tuple, (origin // file_chunk).tolist())):
            if index not in shards:
                files[index] = len(shards)
                shards[index] = self._of(path_of(index), sharding, meta.file_chunk)
            rows[row] = files[index]
            offsets[row] = shards[index].add(int(numbers[row]), int(sizes[row]))
        for shard in shards.values():
            shard.store()
        return Places(tuple(shard.path for shard in shards.values()), rows, offsets)

    def _of(self, path: str, sharding: Sharding, outer: tuple[int, ...]) -> _Shard:
        return self._shards.setdefault(path, _Shard(path, sharding, outer))
