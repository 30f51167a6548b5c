"""Damaged files for fuzz tests, and the judge of what a parser may do with them.

Damage is deterministic: the same seed gives the same bytes. A parser may give data, or raise penstock.Error, ValueError
or KeyError with a text; anything else is a failure that says which damage it was: another exception, more time than
`LIMIT_S`, more memory than the file explains. PENSTOCK_FUZZ_SECONDS makes the random part go on for that long.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import penstock

LIMIT_S = 10
FREE_BYTES = 3 << 20  # of modules, caches and buffers that any file may take
BYTES_A_BYTE = 100  # of Python objects for each byte of a file
_EXTREMES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_EXTREMES_64 = (*_EXTREMES, (1 << 32) + 4, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def seconds() -> float:
    return float(os.environ.get("PENSTOCK_FUZZ_SECONDS", "0"))


def some(cases: Iterator[bytes], every: int) -> Iterator[bytes]:
    """One of `every` cases; all of them in the long mode."""
    return itertools.islice(cases, 0, None, 1 if seconds() else every)


def extremes(raw: bytes, last: int, width: int, order: str) -> Iterator[bytes]:
    """Every field of `width` bytes before `last` set to numbers that parsers trip over, and made a little wrong."""
    letter = {4: "I", 8: "Q"}[width]
    for at in range(0, min(last, len(raw) - width + 1), 4):
        (old,) = struct.unpack_from(order + letter, raw, at)
        near = (old + 1, max(0, old - 1), 2 * old)
        for value in (*(_EXTREMES if width == 4 else _EXTREMES_64), *near):
            changed = bytearray(raw)
            struct.pack_into(order + letter, changed, at, value % (1 << 8 * width))
            yield bytes(changed)


def cuts(raw: bytes) -> Iterator[bytes]:
    """Every length of the first kilobyte, and some after."""
    for length in [*range(min(len(raw), 1024)), *range(1024, len(raw), max(1, len(raw) // 50))]:
        yield raw[:length]


def at_random(others: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Flipped bits, changed and moved ranges, parts of other files; most of it near the begin."""
    chance = random.Random(seed)
    end = time.monotonic() + seconds()
    done = 0
    while done < count or time.monotonic() < end:
        done += 1
        raw = bytearray(chance.choice(others))
        for _ in range(chance.randint(1, 5)):
            _damage(raw, chance, others)
        yield bytes(raw)


def _damage(raw: bytearray, chance: random.Random, others: list[bytes]) -> None:
    at = chance.randrange(min(len(raw), chance.choice([16, 64, 512, 1 << 20])) + 1)
    length = chance.choice([1, 2, 4, 8, chance.randint(1, 200)])
    kind = chance.randrange(7)
    if kind == 0 and raw:
        raw[at % len(raw)] ^= 1 << chance.randrange(8)
    elif kind == 1:
        raw[at : at + length] = chance.randbytes(length)
    elif kind == 2:
        del raw[at : at + length]
    elif kind == 3:
        raw[at:at] = raw[at : at + length]
    elif kind == 4:
        other = chance.choice(others)
        start = chance.randrange(len(other))
        raw[at : at + length] = other[start : start + length]
    elif kind == 5:
        raw[at : at + 8] = chance.choice(_EXTREMES_64).to_bytes(8, chance.choice(["big", "little"]))
    else:
        del raw[at:]


class Judge:
    """Runs a parser on damaged files, and counts what came out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.data = self.errors = 0

    def judge(self, cases: Iterator[bytes], action: Callable[[int], Any]) -> None:
        """`action` gets the size of the file, whose content is each case in turn."""
        before = signal.signal(signal.SIGALRM, _too_slow)
        tracemalloc.start()
        try:
            for number, raw in enumerate(cases):
                self._path.write_bytes(raw)
                try:
                    self._one(len(raw), action)
                except BaseException as error:
                    kept = self._path.with_name("failing-case")
                    kept.write_bytes(raw)
                    raise AssertionError(f"case {number} ({raw[:64].hex()}..., kept as {kept}): {error!r}") from error
        finally:
            tracemalloc.stop()
            signal.signal(signal.SIGALRM, before)

    def _one(self, size: int, action: Callable[[int], Any]) -> None:
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        try:
            action(size)
            self.data += 1
        except (penstock.Error, ValueError, KeyError) as error:
            assert str(error), "an error without a text"
            assert "\n" not in str(error)
            self.errors += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        peak = tracemalloc.get_traced_memory()[1] - held
        assert peak <= FREE_BYTES + BYTES_A_BYTE * size, f"{peak} bytes of memory for a file of {size}"


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {LIMIT_S} s")
