"""Random work through a small cache beside an oracle in memory: every row that comes and all that is in the file after.

On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one; for PENSTOCK_SOAK_SECONDS, else for a moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.gpu import StoredArray

DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")
SECONDS = float(os.environ.get("PENSTOCK_SOAK_SECONDS", "0.7"))
ROWS, WIDTH = 4000, 33  # rows of 132 bytes: some straddle pages
POLICIES = ("sweep-resistant", "clock", "fifo", "pinned-range")


class Pair:
    """A stored array and what it should hold."""

    def __init__(self, rows: StoredArray, table: np.ndarray, seed: int) -> None:
        self.rows, self.table = rows, table
        self.random = np.random.default_rng(seed)
        self.pins: list[tuple[int, int]] = []

    def some(self) -> np.ndarray:
        return self.random.integers(0, ROWS, self.random.integers(1, 300))

    def range(self) -> tuple[int, int]:
        start = int(self.random.integers(0, ROWS))
        return start, min(ROWS, start + int(self.random.integers(1, 200)))

    def gather(self) -> None:
        wanted = self.some()
        assert np.array_equal(self.rows.gather(wanted).to_numpy(), self.table[wanted])

    def read(self) -> None:
        start, stop = self.range()
        assert np.array_equal(self.rows[start:stop].to_numpy(), self.table[start:stop])

    def scatter(self) -> None:
        wanted = np.unique(self.some())
        self.table[wanted] = self.random.random((wanted.size, WIDTH), np.float32)
        self.rows.scatter(wanted, self.table[wanted])

    def write(self) -> None:
        start, stop = self.range()
        self.table[start:stop] = self.random.random((stop - start, WIDTH), np.float32)
        self.rows.write(start, self.table[start:stop])

    def pin(self) -> None:
        start, stop = self.range()
        try:
            self.rows.pin(start, stop)
            self.pins.append((start, stop))
        except ps.Error as error:
            assert error.code == "out_of_memory"

    def unpin(self) -> None:
        if self.pins:
            self.rows.unpin(*self.pins.pop())

    def prefetch(self) -> None:
        self.rows.prefetch(*self.range())

    def forget(self) -> None:
        while self.pins:
            self.unpin()
        self.rows.flush()
        self.rows.invalidate()

    def advise(self) -> None:
        self.rows.advise(str(self.random.choice(["sweep", "random", "once", "none"])))

    def turn(self) -> None:
        rare = (self.forget, self.advise, self.rows.flush)
        work: tuple[Callable[[], None], ...] = (self.gather, self.read, self.scatter, self.write, self.prefetch)
        often = self.random.random()
        some = rare if often < 0.05 else (self.pin, self.unpin) if often < 0.15 else work
        some[int(self.random.integers(len(some)))]()


def run(path: Path, policy: str, page_bytes: int, before_turn: Callable[[int], None] = lambda turn: None) -> int:
    seed = int(os.environ.get("PENSTOCK_SOAK_SEED", "1"))
    table = np.random.default_rng(seed).random((ROWS, WIDTH), np.float32)
    table.tofile(path)
    options = {"page_bytes": page_bytes, "cache_bytes": 96 << 10, "policy": policy, "slots": 16, "device": DEVICE}
    turns, end = 0, time.monotonic() + SECONDS
    with ps.gpu.open(path, "float32", (-1, WIDTH), mode="r+", **options) as rows:  # type: ignore[arg-type]
        pair = Pair(rows, table, seed)
        while time.monotonic() < end or turns < 50:
            before_turn(turns)
            pair.turn()
            turns += 1
        assert rows.stats()["failures"] == 0 and rows.stats()["evictions"] > 0
    assert np.array_equal(np.fromfile(path, np.float32).reshape(-1, WIDTH), table)
    return turns


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_every_row_is_what_was_written_last(tmp_path: Path, policy: str, page_bytes: int) -> None:
    assert run(tmp_path / "rows.bin", policy, page_bytes) >= 50


def test_control_a_byte_that_somebody_else_writes_is_found(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"

    def spoil(turn: int) -> None:
        if turn == 20:
            with path.open("r+b") as file:
                file.write(b"\xff" * (ROWS * WIDTH * 2))

    with pytest.raises(AssertionError):
        run(path, "clock", 4096, spoil)
