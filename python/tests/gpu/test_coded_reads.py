"""Compressed chunks for arrays of a real GPU: boxes, rows, `out=` and batches have what h5py reads. Needs a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core
from penstock.data import BatchLoader
from penstock.formats.state import FileState

pytestmark = pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason=f"no GPU: {_core.cuda_devices()[1]}")
h5py = pytest.importorskip("h5py")

WHOLE = np.random.default_rng(8).integers(0, 1000, (400, 1500)).astype("i4")  # 2.4 MB
SELECTIONS = {
    "an element": np.s_[7, 8],
    "a row": np.s_[7],
    "a column": np.s_[:, 7:8],
    "a tile": np.s_[150:350, 100:900],
    "all": ...,
    "rows": [399, 3, 200, 3, 77],
    "many rows": np.random.default_rng(2).permutation(400),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("gzip", data=WHOLE, chunks=(64, 130), compression="gzip", shuffle=True)
        file.create_dataset("foreign", data=WHOLE.astype(">i4"), chunks=(64, 130), compression="gzip")
        file.create_dataset("a chunk a row", data=WHOLE, chunks=(1, WHOLE.shape[1]), compression="gzip")
    return tmp_path / "x.h5"


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    usual = FileState.start_read

    def counted(self: FileState, *given: Any, **options: Any) -> Any:
        made.append("read")
        return usual(self, *given, **options)

    monkeypatch.setattr(FileState, "start_read", counted)
    return made


@pytest.mark.parametrize("name", ["gzip", "foreign", "a chunk a row"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_have_the_elements(path: Path, transfers: list[str], name: str, selection: Any) -> None:
    cupy = pytest.importorskip("cupy")
    with penstock.open(path, device="cuda:0") as file:
        for _ in range(2):
            assert np.array_equal(file[name][selection].to_numpy(), WHOLE[selection])
        out = cupy.full_like(cupy.asarray(WHOLE[selection]), -1)
        if np.ndim(WHOLE[selection]):
            file[name].read(selection, out=out)
            assert np.array_equal(out.get(), WHOLE[selection])
    assert not transfers


def test_an_array_that_a_kernel_still_writes_to_is_filled_after_it(path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    out, large = cupy.empty(WHOLE.shape, "i4"), cupy.zeros(1 << 28, "f4")
    with penstock.open(path, device="cuda:0") as file:
        file["gzip"].read(out=out)
        for _ in range(20):
            large += 1  # tens of milliseconds, in front of what follows
        out.fill(-5)
        file["gzip"].read(out=out)
        assert np.array_equal(out.get(), WHOLE)


@pytest.mark.parametrize("threads", [1, 4])
def test_batches_have_their_samples(path: Path, threads: int) -> None:
    with penstock.open(path, device="cuda:0") as file:
        loader = BatchLoader(file["a chunk a row"], 64, shuffle=False, threads=threads)
        for _ in range(3):
            assert np.array_equal(np.concatenate([batch.to_numpy() for batch in loader]), WHOLE)
