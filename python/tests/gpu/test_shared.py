"""Arrays that share one cache, and what two arrays of one file are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.gpu import Source

DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")
WIDTH = 33  # rows of 132 bytes: some straddle pages


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(5).random((3000, WIDTH), np.float32)


@pytest.fixture
def path(tmp_path: Path, table: np.ndarray) -> Path:
    table.tofile(tmp_path / "rows.bin")
    return tmp_path / "rows.bin"


def equal(array: ps.Array, expected: np.ndarray) -> bool:
    return array.dtype == expected.dtype and np.array_equal(array.to_numpy(), expected)


def test_arrays_that_share_a_cache(path: Path, tmp_path: Path, table: np.ndarray) -> None:
    np.arange(5000).tofile(tmp_path / "ids.bin")
    sources = [Source(path, "float32", (-1, WIDTH), "r+"), (tmp_path / "ids.bin", "int64")]
    rows, ids = ps.gpu.open_many(sources, device=DEVICE, cache_bytes="64 KiB")
    assert equal(ids[[4999, 0]], np.array([4999, 0]))
    assert rows.stats()["arrays"][1]["bytes"] == 40_000 and rows.ref != ids.ref
    rows[0] = np.ones(WIDTH, np.float32)
    rows.close()
    assert np.fromfile(path, np.float32, WIDTH).all()
    assert ids[1:4].to_numpy().tolist() == [1, 2, 3], "the cache goes with the last one"
    ids.close()
    with pytest.raises(ValueError, match="no array is named"):
        ps.gpu.open_many([], device=DEVICE)


def test_arrays_of_one_file_share_its_pages(path: Path, table: np.ndarray) -> None:
    """Rows of both lie in one page: were it in the cache twice, one of them would be lost."""
    first = Source(path, "float32", (10, WIDTH), "r+")
    second = Source(path.parent / "." / path.name, "float32", (-1, WIDTH), "r+", 10 * WIDTH * 4)
    one, two = ps.gpu.open_many([first, second], device=DEVICE, cache_bytes="64 KiB")
    one[9], two[0] = table[100], table[200]
    table[9], table[10] = table[100], table[200]
    assert equal(one[9], table[9]) and equal(two[0], table[10]) and one.ref == two.ref
    one.close()
    two.close()
    assert np.array_equal(np.fromfile(path, np.float32).reshape(-1, WIDTH), table)
    reads = Source(path, "float32", (10, WIDTH))
    with pytest.raises(ps.Error, match="in two arrays of the cache and written by one"):
        ps.gpu.open_many([reads, second], device=DEVICE)
