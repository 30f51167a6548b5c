"""Arrays of CuPy and PyTorch that are written into files which are there: what NumPy's would leave. Needs a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core

pytestmark = pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason=f"no GPU: {_core.cuda_devices()[1]}")
h5py = pytest.importorskip("h5py")

ROWS, COLUMNS = 640, 512
KINDS = ("contiguous", "chunked", "gzip", "turned")


def _array(library: str, values: np.ndarray) -> Any:
    if library == "cupy":
        return pytest.importorskip("cupy").asarray(values)
    return pytest.importorskip("torch").asarray(values, device="cuda:0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
    with h5py.File(tmp_path / "edited.h5", "w") as file:
        file["contiguous"] = numbers
        file.create_dataset("chunked", data=numbers, chunks=(7, 64))
        file.create_dataset("gzip", data=numbers, chunks=(64, COLUMNS), compression="gzip")
        file["turned"] = numbers.astype(">f4")
    return tmp_path / "edited.h5"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_rows_by_number_by_list_and_by_box(path: Path, library: str, kind: str) -> None:
    draw = np.random.default_rng(3)
    listed = draw.permutation(ROWS)[:300]
    selections: list[Any] = [np.s_[5:6], listed, np.s_[64:192], np.s_[100:400, 30:200], np.s_[::9]]
    with h5py.File(path) as file:
        wanted = file[kind][...]
    with penstock.open(path, write=True, device="cuda:0") as edited:
        for selection in selections:
            values = draw.random(wanted[selection].shape).astype("f4")
            edited[kind][selection] = _array(library, values)
            wanted[selection] = values
            found = edited[kind].read(selection)
            assert np.array_equal(found.to_numpy(), values), selection
    with h5py.File(path) as file:
        assert np.array_equal(file[kind][...], wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_parts_of_larger_arrays(path: Path, library: str, kind: str) -> None:
    values = np.random.default_rng(4).random((200, COLUMNS)).astype("f4")
    with penstock.open(path, write=True, device="cuda:0") as edited:
        edited[kind][70:170] = _array(library, values)[50:150]
    with h5py.File(path) as file:
        assert np.array_equal(file[kind][70:170], values[50:150])
