"""Decoding on the cores of the host: from streams in scratch, which the engine filled, to elements in their places.

The core decodes the chunks of a batch on all cores at once. Chunks whose target the host can write go there; for a GPU
the threads decode to pinned memory, and the device copies from there while they decode the next chunks. Chunks in the
page cache are read by the threads that decode them. What must stay true: a damaged chunk is an Error that names
file, dataset, chunk and bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.faults import no_memory
from penstock.formats.model import Filter
from penstock.formats.reading.kept import is_little, keys_of
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.pieces import Packed

# What decodes the codecs; Penstock itself undoes the other filters.
_LIBRARIES = {
    **{"deflate": "libdeflate", "zlib": "libdeflate", "gzip": "libdeflate", "zstd": "libzstd"},
    **{"lz4": "liblz4", "hdf5-lz4": "liblz4", "bz2": "libbz2"},
}
_MOST_STAGING = 64 << 20  # bytes
_MOST_MIRROR = 16 << 20  # bytes that are decoded to their places and copied together
_MOST_STREAM = 4 << 20  # bytes of a chunk that a thread reads by itself


class CodedStreams(NamedTuple):
    """Chunks of one dataset, and where their streams lie in memory of the host (int64 [n]). `began_ns`: since 1970,
    before the first of them was read."""

    files: Sequence[str]
    packed: Packed
    memory: _core.Buffer
    at: np.ndarray
    began_ns: int


class Limits(NamedTuple):
    """What ends the work early."""

    stop: _core.Stop
    timeout_s: float | None


class Read(NamedTuple):
    """What became of chunks that were read by those who decode them."""

    rest: Packed  # the chunks that are not done
    left: bool  # a transfer has to read them


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
    keys = keys_of(mover.kept, files, packed, time.time_ns())
    found = [None if key is None else mover.kept.find(key) for key in keys]
    for row, chunk in enumerate(found):
        if chunk is not None:
            _put(mover, packed.part(row, row + 1), chunk, memory)
    left = packed.of(np.array([chunk is None for chunk in found], bool))
    return left, packed.selected_bytes - left.selected_bytes


def decode(mover: Mover, streams: CodedStreams, memory: Any, limits: Limits) -> bool:
    """Puts what was selected of the chunks into their target. False: it was stopped, or took too long."""
    packed = streams.packed
    if is_little(packed):
        keys = keys_of(mover.kept, streams.files, packed, streams.began_ns)
        if any(key is not None for key in keys):
            return _decode_and_keep(mover, streams, memory, (limits, keys))
    if mover.emulated:
        return _decode(mover, streams, (memory, packed.boxes, packed.item_bytes, packed.swap_bytes), limits)
    staging = mover.take_scratch(_staging_bytes(packed), "pinned")
    try:
        return _decode(mover, streams, (memory, packed.boxes, packed.item_bytes, packed.swap_bytes, staging), limits)
    finally:
        mover.give_back(staging)


def _staging_bytes(packed: Packed) -> int:
    """As much as is selected, or two places for each thread that decodes, if that is not much."""
    places = min(2 * len(os.sched_getaffinity(0)), packed.count + 1)
    lanes = max(1, min(places, _MOST_STAGING // packed.chunk_bytes)) * packed.chunk_bytes
    return max(lanes, packed.selected_bytes if packed.selected_bytes <= _MOST_MIRROR else 0)


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
            mover.kept.keep(key, plain[row])
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


_Target = tuple[Any, np.ndarray, int, int] | tuple[Any, np.ndarray, int, int, _core.Buffer]


def _decode(mover: Mover, streams: CodedStreams, target: _Target, limits: Limits) -> bool:
    """`target`: memory, boxes, bytes of an item and of its words to swap; and where the host does not reach the memory,
    pinned memory to decode to."""
    packed = streams.packed
    assert packed.pipeline is not None
    source, to = (streams.memory, _table(packed, streams.at)), (*target[:3], *target[4:])
    with _memory_for_chunks(mover, packed):
        done, row, fault = _core.decode_chunks(mover.raw, packed.pipeline, source, to, target[3], *limits)
    if fault:
        raise _damaged(streams.files, packed, row, fault)
    return done == packed.count


def may_read(packed: Packed) -> bool:
    """Whether the threads that decode its chunks may read them: they lie in one file, and none takes long to read."""
    return packed.pipeline is not None and not is_little(packed) and _in_one_file(packed) and packed.count > 1


def few_left(packed: Packed) -> int:
    """How many chunks a transfer may have to read while the threads go on with the others."""
    return packed.count // 8


def _in_one_file(packed: Packed) -> bool:
    return bool((packed.file == packed.file[0]).all()) and int(packed.sizes.max()) <= _MOST_STREAM


def read(mover: Mover, file: tuple[str, _core.File], packed: Packed, how: tuple[Any, Limits, _core.SmallTally]) -> Read:
    """Chunks of one file, as may_read() says. `how`: memory of the target, limits, and what counts the reads."""
    memory, limits, tally = how
    assert packed.pipeline is not None
    source = (file[1], _table(packed, packed.offset), tally)
    target = (memory, packed.boxes, packed.item_bytes)
    staging = None if mover.emulated else mover.take_scratch(_staging_bytes(packed), "pinned")
    try:
        to = target if staging is None else (*target, staging)
        with _memory_for_chunks(mover, packed):
            done, left, row, fault = _core.read_chunks(
                mover.raw, packed.pipeline, source, to, packed.swap_bytes, (*limits, few_left(packed))
            )
    finally:
        if staging is not None:
            mover.give_back(staging)
    if fault:
        raise _damaged([file[0]] * (int(packed.file[0]) + 1), packed, row, fault)
    return Read(packed.of(np.frombuffer(done, np.uint8) == 0), left)


def _table(packed: Packed, at: np.ndarray) -> np.ndarray:
    columns = [at, packed.sizes, packed.skipped, *([] if packed.each is None else [packed.each])]
    return np.column_stack(columns)


@contextmanager
def _memory_for_chunks(mover: Mover, packed: Packed) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        cause = f"there is no memory to decode chunks of {packed.chunk_bytes} bytes in"
        raise no_memory(mover.name, cause, packed.dataset) from error


def _damaged(files: Sequence[str], packed: Packed, row: int, fault: str) -> Error:
    return Error(
        code="damaged",
        operation=f"decode dataset {packed.dataset!r} of",
        file=files[int(packed.file[row])],
        offset_bytes=int(packed.offset[row]),
        length_bytes=int(packed.sizes[row]),
        cause=f"its chunk at {packed.origin[row].tolist()} is damaged: {fault}",
        advice="the file was cut short or is damaged: write it again",
    )
