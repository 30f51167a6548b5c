"""New chunk files of a Zarr array that is written: made with their whole size, and with the index of a shard.

Chunks of a shard lie at multiples of 4096, which the format allows. What must stay true: a file is made under a name
that no reader looks at, unless its whole array is still hidden; where a chunk will be written in part, the rest reads
as the fill value; the index of a shard is right from the beginning and never changes in place.

Places in a shard for chunks that an array may grow into are in its index at once: what is stored there is not seen
before the shape grows, and then no index has to be rewritten.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from penstock._error import Error
from penstock._files.descriptor import close_read, read_at, write_at
from penstock._files.open_files import with_room
from penstock.formats.faults import damaged
from penstock.formats.model import Box, Shape
from penstock.formats.new_file import reserve
from penstock.formats.zarr.array import ArrayMeta
from penstock.formats.zarr.codecs import Sharding
from penstock.formats.zarr.decode import NOT_STORED
from penstock.formats.zarr.shard import Indices, encode_index

_ALIGNMENT = 4096
_WRITE_BYTES = 4 << 20

Index = tuple[int, ...]


class Older(NamedTuple):
    """A shard that a new one replaces: its path, and where those of its chunks that are stored are, by number."""

    path: str
    chunks: dict[int, tuple[int, int]]


class Slots(NamedTuple):
    """The places of a new shard: where inner chunk 0 is, how far apart they are, how long, how many; where the index
    is, and where the file ends."""

    begin: int
    stride: int
    chunk_bytes: int
    count: int
    index_at: int
    end: int


def make_chunk(path: str, meta: ArrayMeta, *, prefill: bool) -> None:
    """A chunk file that is one chunk."""
    size = math.prod(meta.file_chunk) * meta.dtype.itemsize
    descriptor = _create(path)
    try:
        reserve(descriptor, path, 0, size)
        if prefill and any(meta.fill):
            _fill(descriptor, meta.fill, 0, size)
    finally:
        os.close(descriptor)


def make_shard(path: str, meta: ArrayMeta, used: Sequence[int], older: Older | None = None) -> None:
    """A chunk file with places for the inner chunks of the numbers in `used` (in order). Those of an older shard are
    copied, the others read as the fill value."""
    sharding = meta.pipeline.sharding
    assert sharding is not None
    slots = _slots(meta, sharding)
    numbers = np.array(used, np.int64)
    entries = np.full((slots.count, 2), NOT_STORED, np.uint64)
    entries[numbers, 0], entries[numbers, 1] = slots.begin + numbers * slots.stride, slots.chunk_bytes
    kept = older.chunks if older is not None else {}
    descriptor = _create(path)
    try:
        os.ftruncate(descriptor, slots.end)
        for first, last in _runs(used):
            reserve(descriptor, path, slots.begin + first * slots.stride, (last - first) * slots.stride)
        write_at(descriptor, encode_index(sharding, entries), slots.index_at)
        for number in used if any(meta.fill) else ():
            if number not in kept:
                _fill(descriptor, meta.fill, slots.begin + number * slots.stride, slots.chunk_bytes)
        if older is not None:
            _copy(descriptor, older, slots)
    except OSError as error:
        raise Error.of(error, "make the shard", path, "check the space of the file system") from error
    finally:
        os.close(descriptor)


def older_shard(path: str, meta: ArrayMeta) -> Older:
    """What a shard holds, to be replaced."""
    sharding = meta.pipeline.sharding
    assert sharding is not None
    try:
        found = Indices().entries(path, sharding, meta.pipeline.stored_shape(meta.file_chunk))
        entries = found.all
        found.need_inside(entries)
    except ValueError as error:
        raise damaged(path, str(error)) from None
    stored = np.flatnonzero(entries[:, 0] != NOT_STORED).tolist()
    chunks = {number: (int(entries[number, 0]), int(entries[number, 1])) for number in stored}
    wanted = math.prod(sharding.shape) * meta.dtype.itemsize
    if any(length != wanted for _, length in chunks.values()):
        raise damaged(path, f"an inner chunk has not the {wanted} bytes of its shape")
    return Older(path, chunks)


def make_packed(path: str, size: int) -> None:
    """A chunk file for so many encoded bytes; one that was made before, and is not published, is emptied first."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC
        descriptor = with_room(lambda: os.open(path, flags, 0o666))
    except OSError as error:
        raise Error.of(error, "create", path, "check the folder and its permissions") from error
    try:
        reserve(descriptor, path, 0, size)
    finally:
        os.close(descriptor)


def _slots(meta: ArrayMeta, sharding: Sharding) -> Slots:
    outer = meta.pipeline.stored_shape(meta.file_chunk)
    index_bytes = sharding.index_bytes(outer)
    chunk_bytes = math.prod(sharding.shape) * meta.dtype.itemsize
    count = math.prod(sharding.grid(outer))
    stride = _aligned(chunk_bytes)
    begin = _aligned(index_bytes) if sharding.index_at_start else 0
    end = begin + count * stride
    if sharding.index_at_start:
        return Slots(begin, stride, chunk_bytes, count, 0, end)
    return Slots(begin, stride, chunk_bytes, count, end, end + index_bytes)


def used_chunks(meta: ArrayMeta, file_index: Index, growing: Sequence[bool]) -> list[int]:
    """Numbers of the inner chunks of a shard that belong to the array, or may when it grows."""
    sharding = meta.pipeline.sharding
    assert sharding is not None
    inside = []
    for place, axis in enumerate(meta.pipeline.order or range(len(meta.shape))):
        outer, inner = meta.file_chunk[axis], sharding.shape[place]
        origins = file_index[axis] * outer + np.arange(outer // inner) * inner
        inside.append(np.flatnonzero((origins < meta.shape[axis]) | growing[axis]))
    grid = sharding.grid(meta.pipeline.stored_shape(meta.file_chunk))
    wanted = np.zeros(grid, bool)
    wanted[np.ix_(*inside)] = True
    return np.flatnonzero(wanted).tolist()


def file_indices(meta: ArrayMeta, start: Shape, stop: Shape) -> list[Index]:
    """Places of the chunk files that meet a box (in the user's order of dimensions)."""
    if any(first >= last for first, last in zip(start, stop, strict=True)):
        return []
    ranges = [range(a // n, -(-b // n)) for a, b, n in zip(start, stop, meta.file_chunk, strict=True)]
    return list(itertools.product(*ranges))


def _create(path: str) -> int:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return with_room(lambda: os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666))
    except OSError as error:
        raise Error.of(error, "create", path, "check the folder and its permissions") from error


def _aligned(bytes: int) -> int:
    return -(-bytes // _ALIGNMENT) * _ALIGNMENT


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """[first, last) of numbers that follow each other."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs


def _fill(descriptor: int, element: bytes, offset: int, length: int) -> None:
    piece = element * max(1, min(length, _WRITE_BYTES) // len(element))
    for at in range(0, length, len(piece)):
        write_at(descriptor, piece[: length - at], offset + at)


def _copy(descriptor: int, older: Older, slots: Slots) -> None:
    source = with_room(lambda: os.open(older.path, os.O_RDONLY | os.O_CLOEXEC))
    try:
        for number, (offset, length) in older.chunks.items():
            for at in range(0, length, _WRITE_BYTES):
                piece = read_at(source, min(_WRITE_BYTES, length - at), offset + at)
                write_at(descriptor, piece, slots.begin + number * slots.stride + at)
    finally:
        close_read(source)


def covers(box: Box, index: Index, meta: ArrayMeta) -> bool:
    """Whether the box holds all of a chunk that belongs to the array."""
    chunk = [(at * n, min((at + 1) * n, end)) for at, n, end in zip(index, meta.file_chunk, meta.shape, strict=True)]
    return all(
        start <= first and last <= stop for (first, last), start, stop in zip(chunk, box.start, box.stop, strict=True)
    )


def remove_chunk(path: str, top: str) -> None:
    """A chunk file, which may be gone, and the folders between it and its array, as far as nothing is left in them."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    folder = os.path.dirname(path)
    while folder.startswith(top + os.sep):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def grown_boxes(old: Shape, new: Shape) -> list[tuple[Shape, Shape]]:
    """What `new` has more than `old`, without overlaps: one box for each dimension that grew."""
    boxes = []
    for axis, (before, after) in enumerate(zip(old, new, strict=True)):
        if after > before:
            start = (*(0 for _ in old[:axis]), before, *(0 for _ in old[axis + 1 :]))
            boxes.append((start, (*old[:axis], after, *new[axis + 1 :])))
    return boxes
