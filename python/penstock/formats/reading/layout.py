"""Where datasets that are read together lie in one new buffer.

Pure. Datasets that follow each other in a file follow each other in memory, so that a whole safetensors file is one
range of one transfer; others begin at a place that copies and direct I/O like. What must stay true: each dataset is
aligned for its type, and none overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PAGE_BYTES = 4096
SMALL_BYTES = 64 << 10  # below this, the place in a page does not matter
ALIGNMENT = 256  # of the first element, as GPU libraries expect of an allocation


class Stored(NamedTuple):
    """What will be read of one dataset; `file` is "" where it is not one range of a file."""

    file: str
    offset_bytes: int
    bytes: int
    word_bytes: int  # alignment that its type needs


def arrange(stored: Sequence[Stored]) -> tuple[list[int], int]:
    """(byte offset of each dataset, bytes of the buffer)."""
    order = sorted(range(len(stored)), key=lambda i: (stored[i].file == "", stored[i].file, stored[i].offset_bytes))
    places, end, before = [0] * len(stored), 0, None
    for number in order:
        one = stored[number]
        follows = before is not None and one.file and one.file == before.file
        touches = follows and before is not None and one.offset_bytes == before.offset_bytes + before.bytes
        if not touches or end % one.word_bytes:
            end = _begin(one, end)
        places[number] = end
        end += one.bytes
        before = one
    return places, end


def _begin(one: Stored, end: int) -> int:
    """The next good place. A large range begins where it begins in a page of its file, if that is aligned enough."""
    if one.bytes < SMALL_BYTES or not one.file:
        return -(-end // ALIGNMENT) * ALIGNMENT
    phase = one.offset_bytes % PAGE_BYTES
    return -(-end // PAGE_BYTES) * PAGE_BYTES + (phase if phase % 64 == 0 else 0)
