"""Which chunk files of a Zarr array exist, and how long they are.

Few are asked for by name; of many, the folders are listed, so that a sparse array of any shape costs what it has in
files. What must stay true: only regular files count; memory is bounded by the number of files, never by the shape.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.formats.model import ChunkTable
from penstock.formats.zarr.array import ChunkKeys

_ASKED = 20_000  # chunks up to this number are asked for one by one
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")

Index = tuple[int, ...]


class ChunkFiles(NamedTuple):
    """Chunk files in order of their place: `index` int64 [n, rank], in chunks; `paths`; `sizes` in bytes."""

    index: np.ndarray
    paths: list[str]
    sizes: np.ndarray


def find_chunks(folder: str, keys: ChunkKeys, ranges: Sequence[range], moved: Mapping[Index, str]) -> ChunkFiles:
    """Chunk files with places in the ranges. `moved`: those that lie elsewhere, being written. Raises ValueError where
    something else than a file has the name of one, and OSError."""
    if math.prod(map(len, ranges)) <= _ASKED:
        rows = _asked(folder, keys, ranges, moved)
    else:
        listed = {index: (path, size) for index, path, size in _listed(folder, keys, ranges)}
        listed |= {index: (path, _size(path)) for index, path in moved.items() if _within(index, ranges)}
        rows = [(index, *listed[index]) for index in sorted(listed)]
    index = np.array([row[0] for row in rows], np.int64).reshape(len(rows), len(ranges))
    return ChunkFiles(index, [row[1] for row in rows], np.array([row[2] for row in rows], np.int64))


def _asked(
    folder: str, keys: ChunkKeys, ranges: Sequence[range], moved: Mapping[Index, str]
) -> list[tuple[Index, str, int]]:
    rows = []
    for index in itertools.product(*ranges):
        path = moved.get(index) or f"{folder}/{keys.path(index)}"
        size = _size(path)
        if size is not None:
            rows.append((index, path, size))
    return rows


def _size(path: str) -> int | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands a call
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):  # noqa: PTH114 - as above
            raise OSError(errno.ENOENT, f"the chunk {path} is a link that leads nowhere") from None
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} has the name of a chunk and is not a regular file")
    return status.st_size


def _listed(folder: str, keys: ChunkKeys, ranges: Sequence[range]) -> Iterator[tuple[Index, str, int]]:
    if keys.separator == "." or not ranges:
        yield from _flat(folder, keys, ranges)
        return
    base = f"{folder}/{keys.prefix}" if keys.prefix else folder
    yield from _nested(base, (), ranges)


def _flat(folder: str, keys: ChunkKeys, ranges: Sequence[range]) -> Iterator[tuple[Index, str, int]]:
    head = f"{keys.prefix}{keys.separator}" if keys.prefix else ""
    for entry in _entries(folder):
        if not entry.name.startswith(head):
            continue
        parts = entry.name[len(head) :].split(keys.separator)
        if len(parts) == len(ranges) and all(map(_NUMBER.fullmatch, parts)):
            index = tuple(map(int, parts))
            if _within(index, ranges):
                yield index, entry.path, _entry_size(entry)


def _nested(folder: str, before: Index, ranges: Sequence[range]) -> Iterator[tuple[Index, str, int]]:
    last = len(before) == len(ranges) - 1
    for entry in _entries(folder):
        if not _NUMBER.fullmatch(entry.name) or int(entry.name) not in ranges[len(before)]:
            continue
        index = (*before, int(entry.name))
        if last:
            yield index, entry.path, _entry_size(entry)
        elif entry.is_dir():
            yield from _nested(entry.path, index, ranges)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):
        return


def _entry_size(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink() and (size := _size(entry.path)) is not None:
        return size
    if not entry.is_file():
        raise ValueError(f"{entry.path} has the name of a chunk and is not a regular file")
    return entry.stat().st_size


def _within(index: Index, ranges: Sequence[range]) -> bool:
    return all(number in one for number, one in zip(index, ranges, strict=True))


def together(tables: Sequence[ChunkTable]) -> ChunkTable:
    """One table; a chunk that meets several boxes is in it once."""
    files: dict[str, int] = {}
    rows: dict[tuple[int, int], tuple[Any, ...]] = {}
    for table in tables:
        columns = zip(
            table.file_index.tolist(), table.origin, table.offset_bytes, table.bytes, table.encoded, strict=True
        )
        for file, *rest in columns:
            number = files.setdefault(table.files[file], len(files))
            rows[(number, int(rest[1]))] = (number, *rest)
    parts = list(zip(*rows.values(), strict=True)) if rows else [()] * 5
    rank = tables[0].origin.shape[1]
    return ChunkTable(
        tuple(files),
        np.array(parts[0], np.int32),
        np.array(parts[1], np.int64).reshape(-1, rank),
        np.array(parts[2], np.int64),
        np.array(parts[3], np.int64),
        np.array(parts[4], bool),
    )
