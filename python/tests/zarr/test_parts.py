"""Small reads of Zarr arrays: what lies in one chunk is read by its file alone, without a plan and a transfer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

zarr = pytest.importorskip("zarr")
SHAPE, CHUNK = (10, 7, 9), (4, 3, 9)


def values(dtype: str = "<i4") -> np.ndarray:
    return np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Version 2 and 3, and what no single range of a file has."""
    group: Any = zarr.open_group(tmp_path / "x.zarr", mode="w")
    for name, dtype, more in (
        ("plain", "<i4", {}),
        ("big", ">i4", {}),
        ("sharded", "<i4", {"shards": (8, 6, 9)}),
        ("packed", "<i4", {"compressors": "auto"}),
    ):
        kinds = {"compressors": None} | more
        group.create_array(name, shape=SHAPE, chunks=CHUNK, dtype=dtype, **kinds)[...] = values(dtype)
    old = zarr.create_array(
        tmp_path / "x.zarr", name="old", shape=SHAPE, chunks=CHUNK, dtype="<i4", compressors=None, zarr_format=2
    )
    old[...] = values()
    return tmp_path / "x.zarr"


@pytest.fixture
def opened(store: Path) -> Iterator[penstock.DataFile]:
    with penstock.open(store, device="host") as file:
        yield file


INDICES = [0, 9, -1, slice(3, 4), slice(4, 6), slice(3, 5), (2, 5), (2, 2, 3), (9, slice(3, 6)), (1, slice(1, 3)),
           (slice(4, 8), slice(3, 6)), (3, slice(0, 3), slice(2, 5)), (9, 6, slice(2, 5)), (..., 8), slice(2, 2),
           slice(0, 4, 2), slice(None, None, -1), [1, 2]]  # fmt: skip


@pytest.mark.parametrize("name", ["plain", "big", "sharded", "packed"])
def test_parts_are_what_numpy_has(opened: penstock.DataFile, name: str) -> None:
    for index in INDICES:
        for found in (opened[name][index], opened[name].read(index)):
            assert found.shape == values()[index].shape
            np.testing.assert_array_equal(np.asarray(found), values()[index])


def test_a_part_in_one_chunk_takes_no_transfer_and_its_evidence_says_so(opened: penstock.DataFile) -> None:
    tally = opened._file._tally
    for number, index in enumerate([0, (2, 5), (9, slice(3, 6)), (slice(4, 8), slice(3, 6)), (3, 2, slice(2, 5))]):
        opened["plain"][index]
        assert tally.reads == number, index  # the first meets several chunks
    told, before = opened.evidence(), tally.reads
    assert told["formats"]["ranges"] >= tally.operations == 4
    for index in (0, slice(3, 5), (slice(0, 2), 1), (slice(0, 2), slice(0, 2))):  # more than one chunk, or one range
        opened["plain"][index]
    assert tally.reads == before


def test_chunks_are_asked_for_anew(opened: penstock.DataFile, store: Path) -> None:
    chunk = store / "plain" / "c" / "0" / "0" / "0"
    dataset, index = opened["plain"], (2, 1)
    np.testing.assert_array_equal(np.asarray(dataset[index]), values()[index])
    chunk.write_bytes(bytes(chunk.stat().st_size))
    assert not np.asarray(dataset[index]).any()
    chunk.unlink()
    assert not np.asarray(dataset[index]).any(), "a chunk that is not there has the fill value"
    for wrong in (5, 4 * np.prod(CHUNK) + 1):
        chunk.write_bytes(bytes(wrong))
        with pytest.raises(penstock.Error, match=f"has {wrong} bytes, its shape says"):
            dataset[index]
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(penstock.Error, match="not a regular file"):
        dataset[index]


def test_a_store_that_was_replaced_or_closed_is_not_read(store: Path) -> None:
    file = penstock.open(store, device="host")
    dataset = file["plain"]
    dataset[2, 1]
    store.rename(store.with_name("before"))
    store.mkdir()
    with pytest.raises(penstock.Error, match="replaced"):
        dataset[2, 1]
    file.close()
    with pytest.raises(ValueError, match="is closed"):
        dataset[2, 1]
