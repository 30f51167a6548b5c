"""Open files, groups and datasets go to other processes, which open the file themselves: a data loader with spawned
workers does that. What must stay true: where none can, the error says why, in words of the caller's."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

VALUES = np.arange(60, dtype=np.float32).reshape(6, 10)
SUFFIXES = [".h5", ".nc", ".npy", ".safetensors", ".zarr"]


@pytest.fixture(params=SUFFIXES)
def name(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / f"one{request.param}"
    penstock.save(place, VALUES if request.param == ".npy" else {"data": VALUES}, device="host")
    return place


class Rows:
    """What people give a data loader."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, row: int) -> np.ndarray:
        return np.asarray(self.dataset[row])


def test_dataset_is_read_by_a_spawned_process(name: Path) -> None:
    with penstock.open(name, device="host") as file, multiprocessing.get_context("spawn").Pool(1) as pool:
        rows = pool.map(Rows(file["data"]).__getitem__, [5, 0, 3])
    assert np.array_equal(rows, VALUES[[5, 0, 3]])


def test_what_is_pickled_together_shares_one_file(name: Path) -> None:
    with penstock.open(name, device="host", decode="host") as file:
        other, data, again = pickle.loads(pickle.dumps((file, file["data"], file["data"])))
    with other:
        assert data._file is other._file and again._file is other._file
        assert other.device == "host" and np.array_equal(np.asarray(data[...]), VALUES)
        assert list(other) == ["data"]


def test_folder_of_another_process_does_not_matter(name: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(name.parent)
    with penstock.open(name.name, device="host") as file:
        pickled = pickle.dumps(file)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pickle.loads(pickled) as other:
        assert np.array_equal(np.asarray(other["data"][...]), VALUES)


def test_group_goes_too(tmp_path: Path) -> None:
    penstock.save(tmp_path / "g.h5", {"a/b/x": VALUES}, device="host")
    with penstock.open(tmp_path / "g.h5", device="host") as file:
        group = pickle.loads(pickle.dumps(file["a/b"]))
        assert list(group) == ["x"] and np.array_equal(np.asarray(group["x"][2]), VALUES[2])
        group["x"]._file.close()


def test_raw_file_keeps_its_dtype_and_shape(tmp_path: Path) -> None:
    VALUES.tofile(tmp_path / "r.bin")
    with penstock.open(tmp_path / "r.bin", dtype="float32", shape=(-1, 10), device="host") as file:
        pickled = pickle.dumps(file)
    with pickle.loads(pickled) as other:
        assert np.array_equal(np.asarray(other["data"][...]), VALUES)


def test_file_that_is_gone_is_told_of(name: Path) -> None:
    with penstock.open(name, device="host") as file:
        pickled = pickle.dumps(file)
    name.rename(name.with_name("gone"))
    with pytest.raises(penstock.Error) as told:
        pickle.loads(pickled)
    assert told.value.code == "not_found" and str(name) in str(told.value)


def test_why_some_files_cannot_be_pickled(tmp_path: Path) -> None:
    place = tmp_path / "x.h5"
    with penstock.create(place, device="host") as file:
        file["data"] = VALUES
        with pytest.raises(TypeError, match="cannot be pickled: it is open for writing"):
            pickle.dumps(file)
    with pytest.raises(TypeError, match="cannot be pickled: it is closed"):
        pickle.dumps(file)
    with (
        penstock.open(place, device="host", write=True) as file,
        pytest.raises(TypeError, match=r"x\.h5 cannot be pickled: it is open for writing"),
    ):
        pickle.dumps(file["data"])
    with (
        penstock.open(place, context=penstock.Context("host")) as file,
        pytest.raises(TypeError, match="cannot be pickled: it was opened with context=.*device="),
    ):
        pickle.dumps(file["data"])
