"""Decoding on the device: from streams in scratch to elements in their places, all in memory of the device.

Streams are put where the decoder wants them, decoded, the bytes of shuffled elements put together again, and boxes of
the chunks copied to the targets. All chunks of a batch with one codec are decoded at once, whatever datasets they are
of. What must stay true: nothing is copied to a target before all chunks of the batch were found whole: decoded without
a fault, to exactly their size, and with the checksum that their format stores.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.model import Recipe
from penstock.formats.reading.decoders.decoding import STREAM_ALIGNMENT, DeviceDecoder, Streams
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.pieces import Packed


class _Placed(NamedTuple):
    """Chunks of one dataset, and where they lie in work memory: int64 [n] each."""

    packed: Packed
    scratch: np.ndarray  # streams as they were read, in scratch
    streams: np.ndarray
    plain: np.ndarray  # decoded
    turned: np.ndarray  # with the bytes of elements together; over the streams, which are decoded by then


def unpack(
    mover: Mover,
    files: Sequence[str],
    unpacks: Sequence[tuple[Packed, np.ndarray]],
    scratch: _core.Buffer,
    memory_of: Callable[[int], Any],
) -> int:
    """Decodes the chunks of a batch, and puts what was selected of them into their targets (`memory_of` their
    numbers). Returns the bytes of the decoded chunks."""
    decoder = mover.device_decoder()
    assert not isinstance(decoder, str)
    placed, bytes = _place(unpacks)
    work = mover.take_scratch(bytes)
    try:
        lines = [_lines(one.streams, one.scratch, one.packed.stream_bytes) for one in placed]
        _core.copy_boxes(mover.raw, work, scratch, np.concatenate(lines), 1)
        for codec in dict.fromkeys(one.packed.recipe.codec for one in placed):
            _decode(decoder, files, [one for one in placed if one.packed.recipe.codec == codec], work)
        for kind in dict.fromkeys(one.packed.recipe.checksum for one in placed):
            if kind:
                _verify(mover, files, [one for one in placed if one.packed.recipe.checksum == kind], (work, scratch))
        for one in placed:
            _put(mover, one, work, memory_of(one.packed.target))
    finally:
        mover.give_back(work)
    return sum(len(one.plain) * one.packed.chunk_bytes for one in placed)


def _place(unpacks: Sequence[tuple[Packed, np.ndarray]]) -> tuple[list[_Placed], int]:
    """Places in work memory, and its size: streams, or turned chunks, and behind them decoded ones."""
    stream_bytes = sum(int(_aligned(packed.stream_bytes).sum()) for packed, _ in unpacks)
    plain_bytes = sum(packed.count * _aligned(packed.chunk_bytes) for packed, _ in unpacks)
    is_turned = any(packed.recipe.shuffle_bytes > 1 for packed, _ in unpacks)
    first = max(stream_bytes, plain_bytes if is_turned else 0)
    placed, stream, plain = [], 0, 0
    for packed, scratch in unpacks:
        room, each = _aligned(packed.stream_bytes), _aligned(packed.chunk_bytes)
        turned = plain + np.arange(packed.count, dtype=np.int64) * each
        placed.append(_Placed(packed, scratch, stream + np.cumsum(room) - room, first + turned, turned))
        stream, plain = stream + int(room.sum()), plain + packed.count * each
    return placed, first + plain_bytes


def _aligned(bytes: Any) -> Any:
    return -(-bytes // STREAM_ALIGNMENT) * STREAM_ALIGNMENT


def _lines(to: np.ndarray, source: np.ndarray, size: np.ndarray) -> np.ndarray:
    ones = np.ones(len(size), np.int64)
    return np.column_stack([to, source, size, ones, ones])


def _put(mover: Mover, one: _Placed, work: _core.Buffer, memory: Any) -> None:
    packed, boxes = one.packed, one.packed.boxes.copy()
    is_turned = packed.recipe.shuffle_bytes > 1
    if is_turned:
        _core.copy_boxes(mover.raw, work, work, _planes(one), 1)
    boxes[:, 1] += (one.turned if is_turned else one.plain)[packed.chunk_of_box]
    _core.copy_boxes(mover.raw, memory, work, boxes, packed.item_bytes, packed.swap_bytes)


def _planes(one: _Placed) -> np.ndarray:
    """Boxes that take byte after byte of an element out of the planes that hold one byte of each."""
    item = one.packed.recipe.shuffle_bytes
    items = one.packed.chunk_bytes // item
    table = np.empty((len(one.plain), 8), np.int64)
    table[:, 0], table[:, 1], table[:, 2:] = one.turned, one.plain, (items, item, item, 1, 1, items)
    return table


def _decode(decoder: DeviceDecoder, files: Sequence[str], placed: Sequence[_Placed], work: _core.Buffer) -> None:
    """Chunks of one codec."""
    room = np.concatenate([np.full(len(one.plain), one.packed.chunk_bytes, np.int64) for one in placed])
    streams, sizes, plain = (
        np.concatenate(columns)
        for columns in zip(*((one.streams, one.packed.stream_bytes, one.plain) for one in placed), strict=True)
    )
    decoded = decoder.decode(Streams(placed[0].packed.recipe.codec, work, streams, sizes, plain, room))
    faults = dict(decoded.faults)
    for row in np.flatnonzero(decoded.bytes != room).tolist():
        faults.setdefault(row, f"it decodes to {int(decoded.bytes[row])} bytes, its shape says {int(room[row])}")
    if faults:
        row = min(faults)
        raise _damaged(files, placed, row, f"{faults[row]} ({decoder.name})")


def _verify(
    mover: Mover, files: Sequence[str], placed: Sequence[_Placed], memories: tuple[_core.Buffer, _core.Buffer]
) -> None:
    """Decoders look at no checksum, and promise nothing about damaged streams."""
    work, scratch = memories
    recipe = placed[0].packed.recipe
    at = np.concatenate([one.scratch + one.packed.sizes - recipe.check_at for one in placed])
    ranges = np.concatenate(
        [np.column_stack([one.plain, np.full(len(one.plain), one.packed.chunk_bytes, np.int64)]) for one in placed]
    )
    found = np.frombuffer(_core.checksums(mover.raw, work, ranges, recipe.checksum), np.uint32)
    stored = _words(mover, scratch, at, recipe.check_order)
    starts = np.concatenate([one.scratch for one in placed])
    sizes = np.concatenate([one.packed.sizes for one in placed])
    for row in np.flatnonzero(found != stored).tolist():
        chunk = np.empty(int(sizes[row]), np.uint8)
        mover.raw.copy_to_host(chunk, scratch.slice(int(starts[row]), len(chunk)))
        if host_checksum(recipe, chunk.tobytes(), int(ranges[row, 1])) == int(found[row]):
            continue  # more follows the stream than its checksum, which zlib allows
        fault = f"its {recipe.checksum} is {int(found[row]):08x}, the file says {int(stored[row]):08x}"
        decoder = mover.device_decoder()
        assert not isinstance(decoder, str)
        raise _damaged(files, placed, row, f"{fault} (decoded on the {decoder.name})")


def host_checksum(recipe: Recipe, chunk: bytes, limit: int) -> int | None:
    """What zlib finds behind the stream, wherever that ends; None: nothing good, or more than `limit` bytes in it."""
    if recipe.codec != "deflate":
        return _of_members(chunk, limit)
    stream = zlib.decompressobj(-15)
    try:
        stream.decompress(chunk, limit + 1)
    except zlib.error:
        return None
    return int.from_bytes(stream.unused_data[:4], "big") if stream.eof and len(stream.unused_data) >= 4 else None


def _of_members(chunk: bytes, limit: int) -> int | None:
    """Of all members of gzip, each verified by zlib."""
    crc = 0
    while chunk.strip(b"\0"):
        member = zlib.decompressobj(31)
        try:
            plain = member.decompress(chunk, limit + 1)
        except zlib.error:
            return None
        if not member.eof or len(plain) > limit:
            return None
        crc, limit, chunk = zlib.crc32(plain, crc), limit - len(plain), member.unused_data
    return crc


def _words(mover: Mover, scratch: _core.Buffer, at: np.ndarray, order: str) -> np.ndarray:
    """uint32 at these places, fetched to the host."""
    count = len(at)
    column = mover.take_scratch(4 * count)
    try:
        to = np.arange(count, dtype=np.int64) * 4
        _core.copy_boxes(mover.raw, column, scratch, _lines(to, at, np.full(count, 4, np.int64)), 1)
        words = np.empty(count, f"{order}u4")
        mover.raw.copy_to_host(words, column.slice(0, 4 * count))
    finally:
        mover.give_back(column)
    return words


def _damaged(files: Sequence[str], placed: Sequence[_Placed], row: int, fault: str) -> Error:
    for one in placed:
        if row < len(one.plain):
            break
        row -= len(one.plain)
    packed = one.packed
    return Error(
        code="damaged",
        operation=f"decode dataset {packed.dataset!r} of",
        file=files[int(packed.file[row])],
        offset_bytes=int(packed.offset[row]),
        length_bytes=int(packed.sizes[row]),
        cause=f"its chunk at {packed.origin[row].tolist()} is damaged: {fault}",
        advice='decode="host" asks the format\'s own library',
    )
