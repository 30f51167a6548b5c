"""Rows that a mask or an index names: of any strides, and in memory that others write to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock

ROWS = 1 << 16
# Swaps all marks of a mask between two sets, until it is killed.
SWAPS = """
import sys
import numpy as np
mask, first = np.memmap(sys.argv[1], bool, "r+"), np.load(sys.argv[2])
none = np.zeros_like(first)
while True:
    mask[:] = none
    mask[:] = first
"""
MARKS = np.random.default_rng(4).random(2 * ROWS) < 0.02
MASKS = {
    "every second mark": MARKS[::2],
    "backwards": MARKS[ROWS - 1 :: -1],
    "a column": np.stack([~MARKS[:ROWS], MARKS[:ROWS]], axis=1)[:, 1],
    "one mark for all": np.broadcast_to(np.array(True), (ROWS,)),
    "marks of any byte": (MARKS[:ROWS] * np.uint8(0x80)).view(bool),
    "all": np.ones(ROWS, bool),
    "none": np.zeros(ROWS, bool),
    "the last": np.arange(ROWS) == ROWS - 1,
}


@pytest.fixture
def values() -> np.ndarray:
    made = (np.arange(ROWS) % 250).astype("u1")
    made[[0, -1]] = 255, 254
    return made


@pytest.fixture
def path(tmp_path: Path, values: np.ndarray) -> Path:
    with penstock.create(tmp_path / "x.safetensors", device="host") as file:
        file["x"] = values
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_any_strides_name_the_rows_that_numpy_takes(path: Path, values: np.ndarray, mask: np.ndarray) -> None:
    rows = np.flatnonzero(mask.view(np.uint8))
    with penstock.open(path, device="host") as file:
        np.testing.assert_array_equal(np.asarray(file["x"][mask]), values[rows])


def test_an_index_of_the_caller_stays_as_it_is(path: Path, values: np.ndarray) -> None:
    rows = np.array([-1, 5, -7], np.int64)
    with penstock.open(path, device="host") as file:
        np.testing.assert_array_equal(np.asarray(file["x"][rows, ...]), values[[-1, 5, -7]])
    assert rows.tolist() == [-1, 5, -7]


def test_a_row_is_read_only_if_it_was_marked_whoever_changes_the_mask(
    tmp_path: Path, path: Path, values: np.ndarray
) -> None:
    marked = (np.arange(ROWS) % 128 == 64) & (np.arange(ROWS) < ROWS - 128)
    np.save(tmp_path / "marked.npy", marked)
    marked.tofile(tmp_path / "mask")
    shared = np.asarray(np.memmap(tmp_path / "mask", bool, "r"))
    with penstock.open(path, device="host") as file:
        dataset = file["x"]
        with subprocess.Popen([sys.executable, "-c", SWAPS, tmp_path / "mask", tmp_path / "marked.npy"]) as swaps:
            try:
                while shared.any():  # until it has begun
                    pass
                found: list[np.ndarray] = []
                while len(found) < 300 or not any(map(len, found)):
                    found.append(np.asarray(dataset[shared]))
            finally:
                swaps.kill()
    assert set(np.concatenate(found).tolist()) <= set(values[marked].tolist())
