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
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np

from penstock.formats.model import Filter
from penstock.formats.reading.pieces import Packed

MOST_BYTES = 32 << 20  # of one open file
MOST_CHUNKS = 16 << 10  # of one open file: each takes some 600 bytes beside its own
CALL_BYTES = 16 << 20  # that the chunks of a call decode to, at most, to be kept
Key = tuple[int, ...]  # of a chunk: its kind, then offset, bytes and mask in its file
_SETTLED_NS = 2_000_000_000  # since the last change of the file: some file systems tell times in whole seconds


class KeptChunks:
    """Of one open file, the latest used."""

    def __init__(self) -> None:
        self._chunks: OrderedDict[Key, np.ndarray] = OrderedDict()
        self._bytes = 0
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
        with self._lock:
            chunk = self._chunks.get(key)
            if chunk is not None:
                self._chunks.move_to_end(key)
            return chunk

    def find_all(self, keys: Sequence[Key]) -> list[np.ndarray | None]:
        """As find(), of many: one after the other takes four times as long."""
        with self._lock:
            found = [self._chunks.get(key) for key in keys]
            for key, chunk in zip(keys, found, strict=True):
                if chunk is not None:
                    self._chunks.move_to_end(key)
            return found

    def keep(self, key: Key, chunk: np.ndarray) -> None:
        with self._lock:
            if key not in self._chunks:
                self._chunks[key] = chunk
                self._bytes += chunk.nbytes
            while self._bytes > MOST_BYTES or len(self._chunks) > MOST_CHUNKS:
                self._bytes -= self._chunks.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        with self._lock:
            self._chunks.clear()
            self._kinds.clear()
            self._bytes = 0


class LatelyRead:
    """Which chunks of one dataset were read whole a short time ago: since then, between a half and all of what is kept
    at most were. By two sets of numbers: an order of them takes ten times as long."""

    def __init__(self, chunk_bytes: int) -> None:
        self._most = max(1, min(MOST_BYTES // chunk_bytes, MOST_CHUNKS) // 2)
        self._now: set[int] = set()
        self._before: set[int] = set()

    def again(self, numbers: Sequence[int]) -> list[int]:
        """Those of the chunks, which are read whole now, that were so lately."""
        now, before = self._now, self._before
        found = [number for number in numbers if number in now or number in before]
        now.update(numbers)
        if len(now) > self._most:
            self._before, self._now = now, set()
        return found


def is_little(packed: Packed) -> bool:
    """Whether its chunks are to be kept."""
    whole = packed.count * packed.chunk_bytes
    return 0 < whole <= CALL_BYTES and packed.selected_bytes < whole


def keys_of(kept: KeptChunks, files: Sequence[str], packed: Packed) -> list[Key | None]:
    """What finds each chunk again; None: it is not kept."""
    stamps = {number: _settled(file_stamp(files[number])) for number in set(packed.file.tolist())}
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


def may_keep(stamp: tuple[int, ...], chunk_bytes: int) -> bool:
    """Whether a chunk of which a part was read is to be kept, of a file with this stamp."""
    return chunk_bytes <= CALL_BYTES and _settled(stamp) is not None


def _settled(stamp: tuple[int, ...] | None) -> Hashable | None:
    return None if stamp is None or time.time_ns() - max(stamp[3:]) < _SETTLED_NS else stamp


def file_bytes(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116 - as in other places of the formats
    except OSError:
        return 0
