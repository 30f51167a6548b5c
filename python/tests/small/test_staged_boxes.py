"""Boxes and rows of compressed chunks for memory that the host does not reach: decoded to staging memory, from which
the device copies them, without a plan and a transfer. The emulated device stands for it; tests/gpu has a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core
from penstock.data import BatchLoader
from penstock.formats.reading import small
from penstock.formats.state import FileState

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
    "a mask": np.arange(400) % 3 == 1,
}


@pytest.fixture(autouse=True)
def staged(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = small._decoding

    def decoding(*given: Any) -> Any:
        how = usual(*given)
        return None if how is None else how._replace(is_staged=True)

    monkeypatch.setattr(small, "_decoding", decoding)


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    usual = FileState.start_read

    def counted(self: FileState, *given: Any, **options: Any) -> Any:
        made.append("read")
        return usual(self, *given, **options)

    monkeypatch.setattr(FileState, "start_read", counted)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "x.h5"
    with h5py.File(made, "w") as file:
        file.create_dataset("gzip", data=WHOLE, chunks=(64, 130), compression="gzip", shuffle=True)
        file.create_dataset("foreign", data=WHOLE.astype(">i4"), chunks=(64, 130), compression="gzip")
        file.create_dataset("a chunk a row", data=WHOLE, chunks=(1, WHOLE.shape[1]), compression="gzip")
    return made


@pytest.mark.parametrize("name", ["gzip", "foreign", "a chunk a row"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_have_the_elements(path: Path, transfers: list[str], name: str, selection: Any) -> None:
    with penstock.open(path, device="host") as file:
        for _ in range(2):
            assert np.array_equal(np.asarray(file[name][selection]), WHOLE[selection])
        told = file.evidence()["formats"]
    bytes = 2 * WHOLE[selection].nbytes
    assert not transfers
    assert told["requested_bytes"] == bytes and told["staged_bytes"] >= bytes


def test_batches_have_their_samples(path: Path, transfers: list[str]) -> None:
    with penstock.open(path, device="host") as file:
        loader = BatchLoader(file["a chunk a row"], 64, shuffle=False)
        found = np.concatenate([np.asarray(batch) for batch in loader])
    assert np.array_equal(found, WHOLE)
    assert not transfers


def test_staging_memory_is_used_again_and_is_none_of_the_budget_afterwards(path: Path) -> None:
    with penstock.Context("host", budget_bytes=64 << 20) as context:
        with penstock.open(path, context=context) as file:
            np.asarray(file["gzip"][...])
            held = context.pinned_bytes
            for _ in range(5):
                np.asarray(file["gzip"][...])
            assert context.pinned_bytes == held > 0
        assert _core.fill_staging(context._raw, 0)


def test_without_room_for_it_a_transfer_reads(path: Path, transfers: list[str]) -> None:
    with penstock.Context("host", budget_bytes=4 << 20) as context, penstock.open(path, context=context) as file:
        assert np.array_equal(np.asarray(file["gzip"][...]), WHOLE)
    assert transfers
