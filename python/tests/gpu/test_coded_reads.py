"""Compressed chunks for arrays of a real GPU: boxes, rows, `out=` and batches have what h5py reads. Needs a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdf5_kit import CODED, CODED_NAMES, CODED_SELECTIONS, count_transfers, write_coded

import penstock
from penstock import _core
from penstock.data import BatchLoader

pytestmark = pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason=f"no GPU: {_core.cuda_devices()[1]}")
pytest.importorskip("h5py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_coded(tmp_path / "x.h5")


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return count_transfers(monkeypatch)


@pytest.mark.parametrize("name", CODED_NAMES)
@pytest.mark.parametrize("selection", CODED_SELECTIONS.values(), ids=CODED_SELECTIONS)
def test_have_the_elements(path: Path, transfers: list[str], name: str, selection: Any) -> None:
    cupy = pytest.importorskip("cupy")
    with penstock.open(path, device="cuda:0") as file:
        for _ in range(2):
            assert np.array_equal(file[name][selection].to_numpy(), CODED[selection])
        out = cupy.full_like(cupy.asarray(CODED[selection]), -1)
        if np.ndim(CODED[selection]):
            file[name].read(selection, out=out)
            assert np.array_equal(out.get(), CODED[selection])
    assert not transfers


def test_an_array_that_a_kernel_still_writes_to_is_filled_after_it(path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    out, large = cupy.empty(CODED.shape, "i4"), cupy.zeros(1 << 28, "f4")
    with penstock.open(path, device="cuda:0") as file:
        file["gzip"].read(out=out)
        for _ in range(20):
            large += 1  # tens of milliseconds, in front of what follows
        out.fill(-5)
        file["gzip"].read(out=out)
        assert np.array_equal(out.get(), CODED)


@pytest.mark.parametrize("threads", [1, 4])
def test_batches_have_their_samples(path: Path, threads: int) -> None:
    with penstock.open(path, device="cuda:0") as file:
        loader = BatchLoader(file["a chunk a row"], 64, shuffle=False, threads=threads)
        for _ in range(3):
            assert np.array_equal(np.concatenate([batch.to_numpy() for batch in loader]), CODED)
