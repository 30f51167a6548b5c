"""What it takes to decode chunks, on all cores of the host and on the device: guessed first, then learned from reads.

1. Chunks are of one Kind where they have the codec, the size and, nearly, the stored size in common.
2. The guess has the figures of one machine (docs/decisions/0060): a device takes long for one chunk and hardly longer
   for many, cores take as long for each.
3. What reads took, in proportion to the guess, corrects it for that kind and about as many chunks. One read lowers a
   correction as far as it goes, but raises it by a tenth at most: a read that was held up tells nothing of a decoder.
4. `choose` takes the side that is faster by all this. A side that was hardly tried, and may be the faster one, is tried
   first; later it is tried once in many calls, for machines change.

What must stay true: a side that is much slower, by the guess or by what was learned, is not tried.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

Side = Literal["cores", "device"]
_SIDES: tuple[Side, Side] = ("cores", "device")

_MIB = 1 << 20
_TRIES = 3  # of a side, until what it takes is believed; the first of a device loads its code
_AGAIN = 64  # calls, between two tries of a side that is slower
_MAYBE = 1.8  # times the seconds of the other side: what takes longer is much slower
_RISE = 1.1  # of a correction, by one read
_MOST = 4096  # kinds that are kept, for one side
_DECODED = 3  # times as long as its bytes move, a read decodes: else it tells of storage
_START_S: dict[Side, float] = {"cores": 1.2e-3, "device": 2.5e-3}  # of a call
_DEVICE_RATE = 20e9  # bytes/s, of many chunks
_LIBRARY_RATE = 0.25e9  # bytes/s of a format's library, which decodes one chunk after the other
# By codec: seconds of a device for a chunk, for each MiB that it becomes; bytes/s of a core. Others are deflate.
_FIGURES = {"zstd": (6e-3, 1e9), "lz4": (6e-3, 2e9)}
_DEFLATE = (45e-3, 0.65e9)


class Kind(NamedTuple):
    """Chunks that take alike."""

    codec: str
    chunk_bytes: int  # decoded
    stored_bytes: int  # of their mean, the next power of two


class ChunkWork(NamedTuple):
    """Chunks of one call."""

    kind: Kind
    chunks: int


def kind_of(codec: str, chunk_bytes: int, sizes: np.ndarray) -> Kind:
    """`sizes`: of the stored chunks, in bytes, at least one."""
    return Kind(codec, chunk_bytes, 1 << round(math.log2(max(1.0, float(sizes.mean())))))


class Verdict(NamedTuple):
    """The side that decodes, and why in words."""

    side: Side
    why: str


@dataclass
class _Correction:
    """Of one side, for one kind and about as many chunks."""

    correction: float | None = None  # of the guess; None: no read told of it
    tried: int = 0


@dataclass
class DecodeRates:
    """What one context learned, for `cores` of its host. Threads may share it."""

    cores: int
    _known: dict[tuple[Side, Kind], dict[int, _Correction]] = field(default_factory=dict)  # by about how many chunks
    _calls: dict[tuple[Kind, int], int] = field(default_factory=dict)
    _loaded: set[str] = field(default_factory=set)  # codecs that the device has decoded
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, work: ChunkWork, by_cores: bool) -> Verdict:
        """`by_cores`: else the host decodes by the library of the format."""
        if not by_cores:
            return self._by_library(work)
        with self._lock:
            took = {side: self._guess(side, work) * self._correction(side, work) for side in _SIDES}
            faster, slower = sorted(_SIDES, key=lambda side: took[side])
            call = self._calls[work.kind, _near(work)] = self._calls.get((work.kind, _near(work)), 0) + 1
            is_open = self._at(slower, work).tried < _TRIES or call % _AGAIN == 0
            is_tried = is_open and took[slower] < _MAYBE * took[faster]
            side = slower if is_tried else faster
            self._at(side, work).tried += 1
            return Verdict(side, self._words(work, took, is_tried))

    def took(self, side: Side, work: ChunkWork, seconds: float) -> None:
        """A read of these chunks, which waited for no storage."""
        with self._lock:
            if side == "device" and work.kind.codec not in self._loaded:
                self._loaded.add(work.kind.codec)
                return
            known, found = self._at(side, work), seconds / self._guess(side, work)
            known.correction = found if known.correction is None else min(found, known.correction * _RISE)

    def _guess(self, side: Side, work: ChunkWork) -> float:
        """Seconds."""
        alone_s, rate = _FIGURES.get(work.kind.codec, _DEFLATE)
        bytes = work.chunks * work.kind.chunk_bytes
        if side == "cores":
            rounds = math.ceil(work.chunks / self.cores)
            return _START_S[side] + rounds * work.kind.chunk_bytes / rate
        return _START_S[side] + alone_s * work.kind.chunk_bytes / _MIB + bytes / _DEVICE_RATE

    def _correction(self, side: Side, work: ChunkWork) -> float:
        """Of about as many chunks, or else of the nearest number that was read."""
        found = [
            (abs(near - _near(work)), known.correction)
            for near, known in self._known.get((side, work.kind), {}).items()
            if known.correction is not None
        ]
        return min(found)[1] if found else 1.0

    def _at(self, side: Side, work: ChunkWork) -> _Correction:
        if len(self._known) > _MOST:
            self._known.clear()
            self._calls.clear()
        return self._known.setdefault((side, work.kind), {}).setdefault(_near(work), _Correction())

    def _words(self, work: ChunkWork, took: dict[Side, float], is_tried: bool) -> str:
        if is_tried:
            return "to measure what it takes"
        known = all(self._at(side, work).correction is not None for side in took)
        return _compared(took["cores"] / took["device"], "measured" if known else "estimated")

    def _by_library(self, work: ChunkWork) -> Verdict:
        here, there = work.chunks * work.kind.chunk_bytes / _LIBRARY_RATE, self._guess("device", work)
        return Verdict("cores" if here < there else "device", _compared(here / there, "estimated"))


@dataclass
class Spent:
    """What one read took to decode. The host reads from the page cache meanwhile; a device waits for the bytes."""

    _chunks: dict[Side, int] = field(default_factory=dict)
    _seconds: dict[Side, float] = field(default_factory=dict)
    _moved_s: float = 0.0  # by the transfers that came before the first batch was decoded

    def moved(self, seconds: float) -> None:
        """By a transfer that is over. Later ones run while the device decodes."""
        self._moved_s += 0.0 if self._chunks else seconds

    @contextmanager
    def timed(self, side: Side, chunks: int) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._seconds[side] = self._seconds.get(side, 0.0) + time.perf_counter() - began
        self._chunks[side] = self._chunks.get(side, 0) + chunks

    def teach(self, rates: DecodeRates, kind: Kind | None) -> None:
        """Not of a read that waited for storage, which is that of both sides."""
        if kind is None or len(self._chunks) != 1:
            return
        ((side, chunks),) = self._chunks.items()
        if self._moved_s * _DECODED < self._seconds[side]:
            rates.took(side, ChunkWork(kind, chunks), self._seconds[side] + self._moved_s)


def _near(work: ChunkWork) -> int:
    """Numbers of chunks that count as one."""
    return work.chunks.bit_length()


def _compared(ratio: float, how: str) -> str:
    return f"the host takes about {ratio:.1g} of the GPU's time ({how})"
