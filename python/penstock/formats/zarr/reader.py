"""Zarr version 3 (and plain version 2) in a folder, as a container: where the bytes of its chunks lie.

Uncompressed chunks go to a device as they are: one file a chunk, or ranges of shards. Compressed ones are decoded here,
on the host, in parallel. What must stay true: names of arrays never lead out of the folder, and arrays behind symbolic
links inside it are not part of the store (chunk files may be links: the user put them there); nothing is allocated
because a document says so, only because files are as long.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock._error import Error
from penstock._files.descriptor import close_read, read_at
from penstock._files.open_files import with_room
from penstock.formats.faults import damaged, unknown, unsupported
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, FilePart, Shape
from penstock.formats.reading.aside import Threads
from penstock.formats.simple.single import need_same
from penstock.formats.zarr.array import ArrayMeta, Storage, pipeline_of, recipe_of, storage_of
from penstock.formats.zarr.chunks import Index, find_chunks
from penstock.formats.zarr.codecs import Pipeline
from penstock.formats.zarr.decode import Missing, decode_chunk
from penstock.formats.zarr.nodes import Nodes
from penstock.formats.zarr.shard import Indices, rows_of

_THREADS = 8  # that decode


class Zarr(Container):
    """A Zarr store in a folder, opened for reading."""

    format = "zarr"

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self.nodes = Nodes(self.name)
        self.moved: dict[str, dict[Index, str]] = {}  # chunk files of arrays that are being written
        self._indices = Indices()
        self._threads = Threads(min(_THREADS, os.cpu_count() or 1), "penstock-zarr")

    def names(self) -> Sequence[str]:
        return self.nodes.arrays()

    def info(self, name: str) -> DatasetInfo:
        meta = self.meta(name)
        storage = storage_of(meta)
        names = meta.dimensions
        if names is not None and all(one is not None for one in names):
            dimensions: tuple[str, ...] | None = tuple(one or "" for one in names)
        else:
            dimensions = None
        return DatasetInfo(
            name=self.nodes.plain(name),
            shape=storage.stored(meta.shape),
            dtype=meta.dtype,
            chunk_shape=storage.chunk,
            order="F" if storage.backwards else "C",
            fill=meta.fill,
            resizable=(None,) * len(meta.shape),
            dimensions=dimensions,
            filters=meta.pipeline.names,
            layout="sharded" if storage.sharded else "chunked",
            refusal=meta.refusal,
            conversion=f"its elements ({meta.dtype}) have no fixed size" if meta.dtype.host_only else "",
            attributes=meta.attributes,
            recipe=recipe_of(meta),
            pipeline=pipeline_of(meta),
        )

    def meta(self, name: str) -> ArrayMeta:
        meta = self.nodes.array(self.nodes.plain(name))
        if meta is None:
            raise unknown(self.name, name, self.names())
        return meta

    def table(self, name: str, box: Box) -> ChunkTable:
        meta = self.meta(name)
        self._need_readable(name, meta)
        need_same(self.nodes.root, self.nodes.identity)
        try:
            return self._table(name, meta, box)
        except ValueError as error:
            raise damaged(self.name, str(error), name) from None
        except OSError as error:
            raise Error.of(error, f"find chunks of dataset {name!r} of", self.name, "") from error

    def part(self, name: str, box: Box) -> FilePart | None:
        meta, plain = self.meta(name), self.nodes.plain(name)
        storage = storage_of(meta)
        if meta.refusal or storage.packed or storage.sharded or storage.backwards or self.moved.get(plain):
            return None
        index = tuple(start // size for start, size in zip(box.start, meta.file_chunk, strict=True))
        if any((stop - 1) // size != at for stop, size, at in zip(box.stop, meta.file_chunk, index, strict=True)):
            return None
        need_same(self.nodes.root, self.nodes.identity)
        origin = tuple(at * size for at, size in zip(index, meta.file_chunk, strict=True))
        return FilePart(f"{self.nodes.folder(plain)}/{meta.keys.path(index)}", origin, meta.file_chunk)

    def decode(self, name: str, box: Box) -> memoryview:
        return self.decoding(name, box)()

    def decoding(self, name: str, box: Box) -> Callable[[], memoryview]:
        """What is left of decode() when all was asked of this container: it may be made beside anything else."""
        meta = self.meta(name)
        decode = self._decoding(name, box, np.frombuffer(meta.fill, f"V{meta.dtype.itemsize}"))
        return lambda: memoryview(decode().reshape(-1).view(np.uint8))

    def values(self, name: str, box: Box) -> np.ndarray:
        meta, fill = self.meta(name), np.empty(1, object)
        fill[0] = meta.fill.decode("utf-8", "surrogateescape") if meta.dtype.name == "text" else meta.fill
        return self._decoding(name, box, fill)()

    def _decoding(self, name: str, box: Box, fill: np.ndarray) -> Callable[[], np.ndarray]:
        """`fill`: one element, of the type that is made."""
        meta = self.meta(name)
        table = self.table(name, box)
        storage = storage_of(meta)
        pipeline = _chunk_pipeline(meta, storage)

        def decode() -> np.ndarray:
            out = np.empty([stop - start for start, stop in zip(box.start, box.stop, strict=True)], fill.dtype)
            out[...] = fill.reshape(()) if out.ndim == 0 else fill

            def decode_row(row: int) -> None:
                chunk = self._decoded(name, table, row, (pipeline, storage, fill))
                _place(out, box, table.origin[row], chunk)

            self._threads.map(decode_row, len(table.bytes))
            return out

        return decode

    def is_group(self, name: str) -> bool:
        return self.nodes.is_group(name)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return self.nodes.attributes(self.nodes.plain(group))

    def close(self) -> None:
        self._threads.close()

    def _need_readable(self, name: str, meta: ArrayMeta) -> None:
        if meta.refusal:
            raise unsupported(self.name, meta.refusal, "read it with zarr-python", name)

    def stored_bytes(self, name: str) -> int | None:
        info = self.info(name)
        if info.refusal:
            return None
        return int(self.table(name, Box((0,) * info.ndim, info.shape)).bytes.sum())

    def _table(self, name: str, meta: ArrayMeta, box: Box) -> ChunkTable:
        storage = storage_of(meta)
        files = storage.stored(meta.file_chunk)
        ranges = chunk_ranges(box, files)
        folder = self.nodes.folder(self.nodes.plain(name))
        moved = self.moved.get(self.nodes.plain(name), {})
        found = find_chunks(folder, meta.keys, ranges[::-1] if storage.backwards else ranges, moved)
        index = found.index[:, ::-1] if storage.backwards else found.index
        origin = index * np.array(files, np.int64).reshape(1, -1)
        if storage.sharded:
            return self._sharded(meta, storage, box, (found.paths, origin))
        wanted = int(np.prod(files, dtype=object)) * meta.dtype.itemsize
        if not storage.packed:
            _check_sizes(found.paths, found.sizes, wanted)
        numbers = np.arange(len(found.paths), dtype=np.int32)
        encoded = np.full(len(numbers), storage.packed)
        return ChunkTable(tuple(found.paths), numbers, origin, np.zeros(len(numbers), np.int64), found.sizes, encoded)

    def _sharded(self, meta: ArrayMeta, storage: Storage, box: Box, files: tuple[list[str], np.ndarray]) -> ChunkTable:
        sharding = meta.pipeline.sharding
        assert sharding is not None
        outer = storage.stored(meta.file_chunk)
        grid = tuple(n // step for n, step in zip(outer, storage.chunk, strict=True))
        parts: list[tuple[np.ndarray, ...]] = []
        for number, (path, first) in enumerate(zip(files[0], files[1].tolist(), strict=True)):
            entries = self._indices.entries(path, sharding, outer[::-1] if storage.turned else outer)
            inside = Box(
                tuple(max(0, start - at) for start, at in zip(box.start, first, strict=True)),
                tuple(min(n, stop - at) for n, stop, at in zip(outer, box.stop, first, strict=True)),
            )
            rows = rows_of(entries, grid, storage.turned, chunk_ranges(inside, storage.chunk))
            origin = rows.index * np.array(storage.chunk, np.int64).reshape(1, -1) + files[1][number]
            parts.append((np.full(len(origin), number, np.int32), origin, rows.offset_bytes, rows.bytes))
        table = _joined(tuple(files[0]), parts, (len(outer), storage.packed))
        if not storage.packed:
            wanted = int(np.prod(storage.chunk, dtype=object)) * meta.dtype.itemsize
            _check_sizes([table.files[number] for number in table.file_index], table.bytes, wanted)
        return table

    def _decoded(self, name: str, table: ChunkTable, row: int, how: tuple[Pipeline, Storage, np.ndarray]) -> np.ndarray:
        """One chunk, in stored order."""
        pipeline, storage, fill = how
        path = table.files[int(table.file_index[row])]
        offset, length = int(table.offset_bytes[row]), int(table.bytes[row])
        shape = storage.chunk[::-1] if storage.turned else storage.chunk
        try:
            raw = _read(path, offset, length)
            chunk = decode_chunk(pipeline, memoryview(raw), shape, fill)
        except ValueError as error:
            raise damaged(path, f"its chunk at {table.origin[row].tolist()} is damaged: {error}", name) from None
        except Missing as missing:
            cause = f"its chunks are encoded by {missing}, and the package numcodecs is not installed"
            raise unsupported(self.name, cause, "pip install numcodecs", name) from None
        except OSError as error:
            raise Error.of(error, f"read dataset {name!r} of", path, "") from error
        return chunk.T if storage.turned else chunk


def chunk_ranges(box: Box, chunk: Shape) -> list[range]:
    """The places of chunks that meet the box; an empty box meets none."""
    pairs = zip(box.start, box.stop, chunk, strict=True)
    ranges = [range(start // n, -(-stop // n)) if start < stop else range(0) for start, stop, n in pairs]
    return ranges if all(ranges) else [range(0) for _ in ranges]


def _chunk_pipeline(meta: ArrayMeta, storage: Storage) -> Pipeline:
    sharding = meta.pipeline.sharding
    return sharding.inner if storage.sharded and sharding is not None else meta.pipeline


def _check_sizes(paths: Sequence[str], sizes: np.ndarray, wanted: int) -> None:
    wrong = sizes != wanted
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"a chunk in {paths[at]} has {int(sizes[at])} bytes, its shape says {wanted}")


def _joined(files: tuple[str, ...], parts: list[tuple[np.ndarray, ...]], kind: tuple[int, bool]) -> ChunkTable:
    rank, packed = kind
    empty = (np.zeros(0, np.int32), np.zeros((0, rank), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    columns = [np.concatenate(column) for column in zip(*(parts or [empty]), strict=True)]
    return ChunkTable(files, *columns, np.full(len(columns[0]), packed))


def _read(path: str, offset: int, length: int) -> bytes:
    descriptor = with_room(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or offset + length > status.st_size:
            raise ValueError(f"it ends at {offset + length}, the file at {status.st_size}")
        raw = read_at(descriptor, length, offset)
        if len(raw) != length:
            raise ValueError("the file became shorter while it was read")
        return raw
    finally:
        close_read(descriptor)


def _place(out: np.ndarray, box: Box, origin: np.ndarray, chunk: np.ndarray) -> None:
    source, target = [], []
    for first, length, start, stop in zip(origin.tolist(), chunk.shape, box.start, box.stop, strict=True):
        low, high = max(first, start), min(first + length, stop)
        source.append(slice(low - first, high - first))
        target.append(slice(low - start, high - start))
    out[tuple(target)] = chunk[tuple(source)]
