"""Decoded chunks that are kept for the next read: rows of one chunk, read one after the other, decode it once.

Only calls that touch little keep chunks: those of which they take a part, and those that they take whole and that an
earlier call has taken whole lately. What must stay true: memory is bounded, that of what is noted about chunks too; a
chunk is found again only while its file is as it was, which its size and times tell; of a file that changed just now
nothing is kept, because the next change might not show in its times.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np

from penstock import _core
from penstock.formats.model import Filter
from penstock.formats.reading.pieces import Packed

MOST_BYTES = 32 << 20  # of one open file
MOST_CHUNKS = 16 << 10  # of one open file: each takes some 150 bytes beside its own
CALL_BYTES = 16 << 20  # that the chunks of a call decode to, at most, to be kept
Key = tuple[int, ...]  # of a chunk: its kind, then offset, bytes and mask in its file
_NEVER_NS = (1 << 63) - 1
_SETTLED_NS = 2_000_000_000  # since the last change of the file: some file systems tell times in whole seconds


class KeptChunks:
    """Of one open file, the latest used. Native readers share `chunks`, and need no lock of Python for them."""

    def __init__(self) -> None:
        self.chunks = _core.KeptChunks(MOST_BYTES, MOST_CHUNKS)
        self._kinds: OrderedDict[Hashable, int] = OrderedDict()  # of chunks: keys have their numbers, and are short
        self._numbers = itertools.count()  # of kinds: none is given twice
        self._lock = threading.Lock()

    def kind(self, file: tuple[str, Hashable], filters: tuple[Filter, ...], chunk_bytes: int) -> int:
        """A number for chunks of a file, by its name and its stamp, that are decoded alike to as many bytes. Each file
        of a store is a kind, and so is each state of a file that grows: one that was not asked for while MOST_CHUNKS
        others were gets another number, and its chunks are not found again."""
        kind = (*file, filters, chunk_bytes)
        with self._lock:
            number = self._kinds.pop(kind, None)
            self._kinds[kind] = number = next(self._numbers) if number is None else number
            if len(self._kinds) > MOST_CHUNKS:
                self._kinds.popitem(last=False)
            return number

    def find(self, key: Key) -> np.ndarray | None:
        """uint8, read-only: memory that readers share."""
        chunk = self.chunks.find(key)
        return None if chunk is None else np.frombuffer(chunk, np.uint8)

    def keep(self, key: Key, chunk: np.ndarray) -> None:
        """A copy of it."""
        self.chunks.keep(key, chunk)

    def close(self) -> None:
        with self._lock:
            self.chunks.close()
            self._kinds.clear()


def is_little(packed: Packed) -> bool:
    """Whether its chunks are to be kept."""
    whole = packed.count * packed.chunk_bytes
    return 0 < whole <= CALL_BYTES and packed.selected_bytes < whole


def keys_of(kept: KeptChunks, files: Sequence[str], packed: Packed, began_ns: int) -> list[Key | None]:
    """What finds each chunk again; None: it is not kept. `began_ns`: since 1970, before the first byte was read. A file
    that changed since then is as it is now, and its chunks may be as they were."""
    stamps = {number: _settled(file_stamp(files[number]), began_ns) for number in set(packed.file.tolist())}
    rows = zip(
        packed.file.tolist(), packed.offset.tolist(), packed.sizes.tolist(), packed.skipped.tolist(), strict=True
    )
    kinds = {
        number: kept.kind((files[number], stamp), packed.filters, packed.chunk_bytes)
        for number, stamp in stamps.items()
        if stamp is not None
    }
    return [(kinds[file], *where) if file in kinds else None for file, *where in rows]


def file_stamp(file: str) -> tuple[int, ...] | None:
    """What changes with the file; None where there is none."""
    try:
        status = os.stat(file)  # noqa: PTH116 - in each small read
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def settles_ns(stamp: tuple[int, ...], chunk_bytes: int) -> int:
    """From when on, in nanoseconds since 1970, chunks of a file with this stamp may be kept."""
    return max(stamp[3:]) + _SETTLED_NS if chunk_bytes <= CALL_BYTES else _NEVER_NS


def _settled(stamp: tuple[int, ...] | None, began_ns: int) -> Hashable | None:
    return None if stamp is None or began_ns < max(stamp[3:]) + _SETTLED_NS else stamp


def file_bytes(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116 - as in other places of the formats
    except OSError:
        return 0
