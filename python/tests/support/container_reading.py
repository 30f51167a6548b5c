"""Reads and writes through containers and writers with NumPy and pread alone: no mover, no device.

The simplest thing that can be right, so that a format is judged without the code that moves bytes. Shared by the tests
of several formats.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, Writer


def whole(shape: tuple[int, ...]) -> Box:
    return Box((0,) * len(shape), tuple(shape))


def read(container: Container, name: str, box: Box | None = None) -> np.ndarray:
    """The box of a dataset, in the machine's byte order, as the user sees it."""
    info = container.info(name)
    assert not info.refusal, info.refusal
    box = box or whole(info.shape)
    kind = np.dtype(info.dtype)
    lengths = tuple(stop - start for start, stop in zip(box.start, box.stop, strict=True))
    out = np.zeros(lengths, kind)
    if info.fill is not None:
        out[...] = np.frombuffer(info.fill, kind)[0]
    table = container.table(name, box)
    if table.encoded.any():
        raw = container.decode(name, box)
        out = np.frombuffer(raw, kind).reshape(lengths)
    else:
        for row in range(len(table.offset_bytes)):
            _place(out, box, table.origin[row], _stored(table, row, info))
    plain = out.astype(kind.newbyteorder("="))
    return plain.T if info.order == "F" else plain


def write(writer: Writer, table: ChunkTable, info: DatasetInfo, data: Any) -> None:
    """Puts data (of the whole dataset, as the user sees it) into the chunks of the table."""
    kind = np.dtype(info.dtype)
    data = np.asarray(data).astype(kind)
    for row in range(len(table.offset_bytes)):
        origin = tuple(table.origin[row])
        extents = _extents(info, table.origin[row])
        part = data[tuple(slice(first, first + n) for first, n in zip(origin, extents, strict=True))]
        chunk = np.zeros(extents, kind)
        chunk[tuple(slice(0, n) for n in part.shape)] = part
        assert int(table.bytes[row]) == chunk.nbytes
        descriptor = os.open(table.files[table.file_index[row]], os.O_WRONLY)
        assert os.pwrite(descriptor, chunk.tobytes(), int(table.offset_bytes[row])) == chunk.nbytes
        os.close(descriptor)


def _stored(table: ChunkTable, row: int, info: DatasetInfo) -> np.ndarray:
    descriptor = os.open(table.files[table.file_index[row]], os.O_RDONLY)
    try:
        raw = os.pread(descriptor, int(table.bytes[row]), int(table.offset_bytes[row]))
    finally:
        os.close(descriptor)
    assert len(raw) == table.bytes[row], "an extent reaches over the end of its file"
    return np.frombuffer(raw, np.dtype(info.dtype)).reshape(_extents(info, table.origin[row]))


def _extents(info: DatasetInfo, origin: np.ndarray) -> tuple[int, ...]:
    """Extents of a stored chunk."""
    if not info.edge_cut:
        return info.chunk_shape
    pairs = zip(info.chunk_shape, info.shape, origin.tolist(), strict=True)
    return tuple(min(n, end - first) for n, end, first in pairs)


def _place(out: np.ndarray, box: Box, origin: np.ndarray, chunk: np.ndarray) -> None:
    source, target = [], []
    for first, length, start, stop in zip(origin.tolist(), chunk.shape, box.start, box.stop, strict=True):
        low, high = max(first, start), min(first + length, stop)
        if low >= high:
            return
        source.append(slice(low - first, high - first))
        target.append(slice(low - start, high - start))
    out[tuple(target)] = chunk[tuple(source)]


def every_origin(shape: tuple[int, ...], chunk: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(0, n, step) for n, step in zip(shape, chunk, strict=True))))
