"""Where compressed chunks lie: searched for one by one at first, then in the index of all."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.formats.hdf5.index import INDEX_AFTER
from penstock.formats.hdf5.metadata import Metadata
from penstock.formats.reading import small

h5py = pytest.importorskip("h5py")

CHUNKS, ROWS, COLUMNS = 64, 4, 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The last chunk is cut by the end, one was never written, and one skipped its filter."""
    made = tmp_path / "x.h5"
    values = np.arange(CHUNKS * ROWS * COLUMNS, dtype="f4").reshape(-1, COLUMNS)[:-1]
    with h5py.File(made, "w") as file:
        file.create_dataset("whole", data=values, chunks=(ROWS, COLUMNS), compression="gzip")
        odd = file.create_dataset("odd", values.shape, "f4", chunks=(ROWS, COLUMNS), compression="gzip", fillvalue=7)
        for number in range(CHUNKS):
            plain = np.zeros((ROWS, COLUMNS), "f4")
            part = values[number * ROWS : (number + 1) * ROWS]
            plain[: len(part)] = part
            if number == 9:
                odd.id.write_direct_chunk((number * ROWS, 0), plain.tobytes(), 1)
            elif number != 5:
                odd.id.write_direct_chunk((number * ROWS, 0), zlib.compress(plain.tobytes()))
    return made


@pytest.fixture
def count_indexes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often an index was read."""
    read, times = Metadata._read_index, []

    def counted(self: Metadata, stored: Any) -> Any:
        times.append(stored.info.name)
        return read(self, stored)

    monkeypatch.setattr(Metadata, "_read_index", counted)
    return lambda: len(times)


def test_a_few_chunks_are_searched_for_and_many_are_in_an_index(path: Path, count_indexes: Callable[[], int]) -> None:
    with h5py.File(path) as stock, penstock.open(path, device="host") as file:
        theirs, ours = stock["whole"], file["whole"]
        for row in range(0, CHUNKS // INDEX_AFTER * ROWS - ROWS, ROWS):
            np.testing.assert_array_equal(ours[row : row + 1], theirs[row : row + 1])
        assert count_indexes() == 0
        for row in range(0, CHUNKS * ROWS - 1, ROWS):
            np.testing.assert_array_equal(ours[row : row + 1], theirs[row : row + 1])
        assert count_indexes() == 1


@pytest.mark.parametrize("name", ["whole", "odd"])
def test_rows_are_those_of_h5py_whichever_way_their_chunks_are_found(path: Path, name: str) -> None:
    order = np.random.default_rng(3).permutation(CHUNKS * ROWS - 1)
    with h5py.File(path) as stock, penstock.open(path, device="host") as file:
        whole, ours = stock[name][...], file[name]
        for row in order:
            np.testing.assert_array_equal(np.asarray(ours[row : row + 1]), whole[row : row + 1])
        np.testing.assert_array_equal(np.asarray(ours[order]), whole[order])


def test_others_are_not_looked_for_once_a_chunk_is_not_there(path: Path, count_indexes: Callable[[], int]) -> None:
    with h5py.File(path, "a") as file:
        sparse = file.create_dataset("sparse", (CHUNKS, 200), "f4", chunks=(1, 200), compression="gzip")
        sparse[1:] = np.arange(200, dtype="f4")
    with h5py.File(path) as stock, penstock.open(path, device="host") as file:
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(file["sparse"][...]), stock["sparse"][...])
    assert count_indexes() == 1, "for the transfers"


def test_each_chunk_is_looked_for_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, asked = small._decoding, []

    def decoding(*given: Any) -> Any:
        how = usual(*given)
        where = how.coded["where"]
        return how._replace(coded={**how.coded, "where": lambda number: asked.append(number) or where(number)})

    monkeypatch.setattr(small, "_decoding", decoding)
    with h5py.File(path) as stock, penstock.open(path, device="host") as file:
        whole, ours = stock["whole"][...], file["whole"]
        for order in (np.arange(0, CHUNKS * ROWS - 1, ROWS), np.random.default_rng(3).permutation(CHUNKS * ROWS - 1)):
            np.testing.assert_array_equal(np.asarray(ours[order]), whole[order])
            np.testing.assert_array_equal(np.asarray(ours[9:10]), whole[9:10])
    assert sorted(asked) == list(range(CHUNKS))
