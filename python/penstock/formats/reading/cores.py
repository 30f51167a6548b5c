"""Decoding on the cores of the host: from streams in scratch, which the engine filled, to elements in their places.

The core decodes the chunks of a batch on all cores at once. Chunks whose target the host can write go there; for a GPU
the selected elements go to pinned memory, and the device fetches boxes from there. What must stay true: a damaged chunk
is an Error that names file, dataset, chunk and bytes, and nothing of its batch reaches a GPU.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.faults import no_memory
from penstock.formats.model import Filter
from penstock.formats.reading.kept import is_little, keys_of
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.pieces import Packed, c_strides

# What decodes the codecs; Penstock itself undoes the other filters.
_LIBRARIES = {
    **{"deflate": "libdeflate", "zlib": "libdeflate", "gzip": "libdeflate", "zstd": "libzstd"},
    **{"lz4": "liblz4", "hdf5-lz4": "liblz4", "bz2": "libbz2"},
}


class CodedStreams(NamedTuple):
    """Chunks of one dataset, and where their streams lie in memory of the host (int64 [n])."""

    files: Sequence[str]
    packed: Packed
    memory: _core.Buffer
    at: np.ndarray


class Limits(NamedTuple):
    """What ends the work early."""

    stop: _core.Stop
    timeout_s: float | None


def decoder_of(packed: Packed) -> str:
    return decoder_name(packed.filters)


def decoder_name(filters: Sequence[Filter]) -> str:
    """As evidence says it."""
    names = dict.fromkeys(_LIBRARIES[one.name] for one in filters if one.name in _LIBRARIES)
    return f"host by {' and '.join(names) or 'Penstock'}"


def place_kept(mover: Mover, files: Sequence[str], packed: Packed, memory: Any) -> tuple[Packed, int]:
    """Puts what was selected of chunks that an earlier read left into their target. Returns the others, and the bytes
    that were put."""
    if not is_little(packed):
        return packed, 0
    found = [None if key is None else mover.kept.find(key) for key in keys_of(files, packed)]
    for row, chunk in enumerate(found):
        if chunk is not None:
            _put(mover, packed.part(row, row + 1), chunk, memory)
    left = packed.of(np.array([chunk is None for chunk in found], bool))
    return left, packed.selected_bytes - left.selected_bytes


def decode(mover: Mover, streams: CodedStreams, memory: Any, limits: Limits) -> bool:
    """Puts what was selected of the chunks into their target. False: it was stopped, or took too long."""
    packed = streams.packed
    if is_little(packed):
        keys = keys_of(streams.files, packed)
        if any(key is not None for key in keys):
            return _decode_and_keep(mover, streams, memory, (limits, keys))
    if mover.emulated:
        return _decode(mover, streams, (memory, packed.boxes, packed.item_bytes, packed.swap_bytes), limits)
    to, back = _dense(packed)
    staging = mover.take_scratch(packed.selected_bytes, "pinned")
    try:
        if not _decode(mover, streams, (staging, to, packed.item_bytes, packed.swap_bytes), limits):
            return False
        _core.copy_boxes(mover.raw, memory, staging, back, packed.item_bytes)
    finally:
        mover.give_back(staging)
    return True


def _decode_and_keep(
    mover: Mover, streams: CodedStreams, memory: Any, how: tuple[Limits, list[Hashable | None]]
) -> bool:
    """As decode(), of whole chunks, which are kept."""
    packed, (limits, keys) = streams.packed, how
    size = packed.chunk_bytes
    plain = np.empty((packed.count, size), np.uint8)
    lines = np.array([[row * size, 0, size, 1, 1] for row in range(packed.count)], np.int64)
    whole = streams._replace(packed=replace(packed, each=None))
    if not _decode(mover, whole, (plain, lines, 1, 0), limits):
        return False
    for row, key in enumerate(keys):
        _put(mover, packed.part(row, row + 1), plain[row], memory)
        if key is not None:
            mover.kept.keep(key, plain[row] if packed.count == 1 else plain[row].copy())
    return True


def _put(mover: Mover, one: Packed, chunk: np.ndarray, memory: Any) -> None:
    """The boxes of one decoded chunk."""
    if mover.emulated:
        _core.copy_boxes(mover.raw, memory, chunk, one.boxes, one.item_bytes, one.swap_bytes)
        return
    staging = mover.take_scratch(chunk.nbytes, "pinned")
    try:
        np.asarray(memoryview(staging))[: chunk.nbytes] = chunk
        _core.copy_boxes(mover.raw, memory, staging, one.boxes, one.item_bytes, one.swap_bytes)
    finally:
        mover.give_back(staging)


def _dense(packed: Packed) -> tuple[np.ndarray, np.ndarray]:
    """Boxes from chunks to staging, in which selected elements follow each other, and from there to the target."""
    ndim = packed.origin.shape[1]
    counts = packed.boxes[:, 2 : 2 + ndim]
    strides = c_strides(counts, packed.item_bytes)
    size = counts.prod(axis=1) * packed.item_bytes
    to, back = packed.boxes.copy(), packed.boxes.copy()
    to[:, 0] = back[:, 1] = np.cumsum(size) - size
    to[:, 2 + ndim : 2 + 2 * ndim] = back[:, 2 + 2 * ndim :] = strides
    return to, back


def _decode(mover: Mover, streams: CodedStreams, target: tuple[Any, np.ndarray, int, int], limits: Limits) -> bool:
    """`target`: memory, boxes, bytes of an item and of its words to swap."""
    packed, swap_bytes = streams.packed, target[3]
    columns = [streams.at, packed.sizes, packed.skipped, *([] if packed.each is None else [packed.each])]
    table = np.column_stack(columns)
    assert packed.pipeline is not None
    source, to = (streams.memory, table), target[:3]
    try:
        done, row, fault = _core.decode_chunks(
            mover.raw, packed.pipeline, source, to, swap_bytes, limits.stop, limits.timeout_s
        )
    except MemoryError as error:
        cause = f"there is no memory to decode chunks of {packed.chunk_bytes} bytes in"
        raise no_memory(mover.name, cause, packed.dataset) from error
    if fault:
        raise Error(
            code="damaged",
            operation=f"decode dataset {packed.dataset!r} of",
            file=streams.files[int(packed.file[row])],
            offset_bytes=int(packed.offset[row]),
            length_bytes=int(packed.sizes[row]),
            cause=f"its chunk at {packed.origin[row].tolist()} is damaged: {fault}",
            advice="the file was cut short or is damaged: write it again",
        )
    return done == packed.count
