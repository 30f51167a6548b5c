"""Decoding on the device: from streams in scratch to elements in their places, all in memory of the device.

Streams are put where the decoder wants them, decoded, the bytes of shuffled elements put together again, and boxes of
the chunks copied to the targets. What must stay true: no chunk is copied to a target before all chunks of its dataset
in the batch were found whole: decoded without a fault, to exactly their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.decoding import STREAM_ALIGNMENT, DeviceDecoder, Streams
from penstock.formats.packed import Packed, Unpack

if TYPE_CHECKING:
    from penstock.formats.mover import Mover


def unpack(mover: Mover, files: Sequence[str], one: Unpack, scratch: _core.Buffer, memory: Any) -> int:
    """Decodes chunks, and puts what was selected of them into `memory`. Returns the bytes of the decoded chunks."""
    decoder, packed, count = mover.device_decoder(), one.packed, len(one.streams)
    assert not isinstance(decoder, str)
    room = _aligned(packed.bytes)
    plain = np.arange(count, dtype=np.int64) * int(_aligned(packed.chunk_bytes))
    plain_bytes = int(_aligned(packed.chunk_bytes)) * count
    turned = packed.recipe.shuffle_bytes > 1
    first = max(int(room.sum()), plain_bytes if turned else 0)  # streams; and when they are decoded, turned elements
    work = mover.take_scratch(first + plain_bytes)
    try:
        streams = Streams(
            packed.recipe.codec, work, np.cumsum(room) - room, packed.bytes, first + plain, packed.chunk_bytes
        )
        _core.copy_boxes(mover.raw, work, scratch, _lines(streams.offset, one.streams, packed.bytes), 1)
        _decode(decoder, files, packed, streams)
        if turned:
            _core.copy_boxes(mover.raw, work, work, _planes(plain, streams.to, packed), 1)
        boxes = packed.boxes.copy()
        boxes[:, 1] += plain if turned else streams.to
        _core.copy_boxes(mover.raw, memory, work, boxes, packed.item_bytes, packed.swap_bytes)
    finally:
        mover.give_back(work)
    return count * packed.chunk_bytes


def _aligned(bytes: Any) -> Any:
    return -(-bytes // STREAM_ALIGNMENT) * STREAM_ALIGNMENT


def _lines(to: np.ndarray, source: np.ndarray, size: np.ndarray) -> np.ndarray:
    ones = np.ones(len(size), np.int64)
    return np.column_stack([to, source, size, ones, ones])


def _planes(to: np.ndarray, source: np.ndarray, packed: Packed) -> np.ndarray:
    """Boxes that take byte after byte of an element out of the planes that hold one byte of each."""
    item = packed.recipe.shuffle_bytes
    items = packed.chunk_bytes // item
    table = np.empty((len(to), 8), np.int64)
    table[:, 0], table[:, 1], table[:, 2:] = to, source, (items, item, item, 1, 1, items)
    return table


def _decode(decoder: DeviceDecoder, files: Sequence[str], packed: Packed, streams: Streams) -> None:
    decoded = decoder.decode(streams)
    faults = dict(decoded.faults)
    for row in np.flatnonzero(decoded.bytes != packed.chunk_bytes).tolist():
        faults.setdefault(row, f"it decodes to {int(decoded.bytes[row])} bytes, its shape says {packed.chunk_bytes}")
    if not faults:
        return
    row = min(faults)
    raise Error(
        code="damaged",
        operation=f"decode dataset {packed.dataset!r} of",
        file=files[int(packed.file[row])],
        offset_bytes=int(packed.offset[row]),
        length_bytes=int(packed.bytes[row]),
        cause=f"its chunk at {packed.origin[row].tolist()} is damaged: {faults[row]} ({decoder.name})",
        advice='decode="host" asks the format\'s own library',
    )
