"""Chunks of text of variable length, as zarr-python writes them: how many there are, and each behind its length.

What must stay true: a chunk file is made whole and anew, under the name that path_of() gives, so readers see the older
one or the new one; what the box leaves of a chunk stays as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from penstock._error import Error
from penstock._files.descriptor import write_at
from penstock._files.open_files import with_room
from penstock.formats.faults import unsupported
from penstock.formats.model import Box
from penstock.formats.zarr.allocate import Index, covers, file_indices, make_packed
from penstock.formats.zarr.array import ArrayMeta

_ADVICE = "check the folder, its permissions and its space"


def need_plain(file: str, name: str, meta: ArrayMeta) -> None:
    """Error of text that goes through more than its own codec."""
    pipeline = meta.pipeline
    if pipeline.sharding is not None or pipeline.packers or pipeline.orders or pipeline.objects != "utf8":
        cause = "its text is compressed, sharded or turned, or it is no text"
        raise unsupported(file, cause, "write it with zarr-python, or as a new array", name)


def write_texts(
    meta: ArrayMeta,
    text: tuple[Box, np.ndarray],
    current: Callable[[Box], np.ndarray],
    path_of: Callable[[Index], str],
) -> list[str]:
    """Writes the chunks that meet the box; their files. `current`: what a box holds now."""
    box, values = text
    made = []
    for index in file_indices(meta, box.start, box.stop):
        sides = zip(index, meta.file_chunk, meta.shape, strict=True)
        whole = [(at * size, min((at + 1) * size, end)) for at, size, end in sides]
        chunk = np.full(meta.file_chunk, meta.fill.decode("utf-8", "surrogateescape"), object)
        if not covers(box, index, meta):
            held = current(Box(tuple(low for low, _ in whole), tuple(high for _, high in whole)))
            chunk[tuple(slice(0, high - low) for low, high in whole)] = held
        to, source = [], []
        for (low, high), start, stop in zip(whole, box.start, box.stop, strict=True):
            first, last = max(low, start), min(high, stop)
            to.append(slice(first - low, last - low))
            source.append(slice(first - start, last - start))
        chunk[tuple(to)] = values[tuple(source)]
        path = path_of(index)
        _write(path, _encoded(chunk))
        made.append(path)
    return made


def _encoded(chunk: np.ndarray) -> bytes:
    texts = [one.encode("utf-8", "surrogateescape") for one in chunk.reshape(-1)]
    parts = [len(texts).to_bytes(4, "little")]
    for one in texts:
        parts += [len(one).to_bytes(4, "little"), one]
    return b"".join(parts)


def _write(path: str, content: bytes) -> None:
    make_packed(path, len(content))
    try:
        descriptor = with_room(lambda: os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC))
        try:
            write_at(descriptor, content, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Error.of(error, "write", path, _ADVICE) from error
