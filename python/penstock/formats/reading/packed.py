"""Encoded chunks that a device decodes: where their streams lie in files, and where their elements go.

Pure, as `pieces` and `batches`. Whole chunks are read and decoded, however little of them is selected. What must stay
true: only the stream of a chunk is read, and the checksum behind it; a batch decodes to at most what it may, unless a
single chunk is larger; boxes take from a decoded chunk what the selection holds of it, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock._error import Error
from penstock.formats.model import ChunkTable, Recipe
from penstock.formats.reading import pieces
from penstock.formats.reading.batches import BATCH_FILES, GAP_BYTES, Batch, ScratchRanges
from penstock.formats.reading.pieces import Part, Wanted
from penstock.formats.reading.streams import Packed, Unpack

# That one batch decodes to, at most: a GPU takes long for a chunk, and hardly longer for a thousand of them.
DECODED_BYTES = 1 << 30
BATCH_CHUNKS = 1 << 16


def packed_of(wanted: Wanted, table: ChunkTable, part: Part) -> Packed:
    """`part`: chunks that the recipe of the dataset fits. `file` numbers are those of the table."""
    info, selection, side = wanted
    recipe, item = info.recipe, info.dtype.itemsize
    assert isinstance(recipe, Recipe)
    stored = np.asarray(table.bytes, np.int64)[part.rows]
    framing = max(recipe.header_bytes + recipe.trailer_bytes, recipe.check_at)
    if (stored <= framing).any():
        raise _short(wanted, table, int(part.rows[int(np.argmax(stored <= framing))]), framing)
    steps = np.abs(np.array(selection.steps, np.int64))
    strides = pieces.c_strides(part.extents, item)
    boxes = np.empty((len(stored), 2 + 3 * info.ndim), np.int64)
    near, far, ndim = pieces.memory_strides(selection, side), strides * steps, info.ndim
    boxes[:, 0] = pieces.memory_offset(selection, side, part.at)
    boxes[:, 1] = (part.inside * strides).sum(axis=1)
    boxes[:, 2 : 2 + ndim], boxes[:, 2 + ndim : 2 + 2 * ndim], boxes[:, 2 + 2 * ndim :] = part.counts, near, far
    return Packed(
        dataset=info.name,
        recipe=recipe,
        chunk_bytes=info.chunk_bytes,
        target=side.target,
        item_bytes=item,
        swap_bytes=info.dtype.swap_bytes,
        file=np.asarray(table.file_index, np.int64)[part.rows],
        offset=np.asarray(table.offset_bytes, np.int64)[part.rows] + recipe.header_bytes,
        bytes=stored - recipe.header_bytes,
        origin=np.asarray(table.origin, np.int64)[part.rows],
        boxes=boxes,
    )


def _short(wanted: Wanted, table: ChunkTable, row: int, framing: int) -> Error:
    return Error(
        code="damaged",
        operation=f"decode dataset {wanted.info.name!r} of",
        file=table.files[int(table.file_index[row])],
        offset_bytes=int(table.offset_bytes[row]),
        length_bytes=int(table.bytes[row]),
        cause=f"its chunk at {np.asarray(table.origin)[row].tolist()} is too short: its framing alone takes {framing}",
        advice="the file was cut short or is damaged: write it again",
    )


def batches(packed: Sequence[Packed], decoded_bytes: int) -> Iterator[Batch]:
    """All chunks, in batches that decode to `decoded_bytes`; a batch may hold chunks of several datasets."""
    parts: list[Packed] = []
    room, chunks, files = decoded_bytes, BATCH_CHUNKS, set[int]()
    for one in packed:
        at = 0
        while at < len(one.file):
            fits = min(chunks, max(room // one.chunk_bytes, 0 if parts else 1))
            part = one.of(slice(at, at + fits))
            part = part.of(slice(0, _of_few_files(part.file, files)))
            count = len(part.file)
            if count == 0:
                yield _batch(parts)
                parts, room, chunks, files = [], decoded_bytes, BATCH_CHUNKS, set()
                continue
            parts.append(part)
            at, room, chunks = at + count, room - count * one.chunk_bytes, chunks - count
    if parts:
        yield _batch(parts)


def _of_few_files(file: np.ndarray, seen: set[int]) -> int:
    """How many rows, from the first on, come before the first file too many. Adds the files to `seen`."""
    found, first = np.unique(file, return_index=True)
    for at in np.argsort(first).tolist():
        number = int(found[at])
        if number not in seen and len(seen) == BATCH_FILES:
            return int(first[at])
        seen.add(number)
    return len(file)


def _batch(parts: list[Packed]) -> Batch:
    scratch = ScratchRanges(parts, GAP_BYTES)
    unpacks = [Unpack(*pair) for pair in zip(parts, scratch.offsets, strict=True)]
    return Batch(staged=scratch.table, scratch_bytes=scratch.bytes, unpacks=unpacks)
