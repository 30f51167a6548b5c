"""Boxes and rows of compressed chunks for memory that the host does not reach: decoded to staging memory, from which
the device copies them, without a plan and a transfer. The emulated device stands for it; tests/gpu has a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdf5_kit import CODED, CODED_NAMES, CODED_SELECTIONS, count_transfers, write_coded

import penstock
from penstock import _core
from penstock.data import BatchLoader
from penstock.formats.reading import small

pytest.importorskip("h5py")


@pytest.fixture(autouse=True)
def staged(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = small._decoding

    def decoding(*given: Any) -> Any:
        how = usual(*given)
        return None if how is None else how._replace(coded={**how.coded, "is_staged": True})

    monkeypatch.setattr(small, "_decoding", decoding)


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return count_transfers(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_coded(tmp_path / "x.h5")


@pytest.mark.parametrize("name", CODED_NAMES)
@pytest.mark.parametrize("selection", CODED_SELECTIONS.values(), ids=CODED_SELECTIONS)
def test_have_the_elements(path: Path, transfers: list[str], name: str, selection: Any) -> None:
    with penstock.open(path, device="host") as file:
        for _ in range(2):
            assert np.array_equal(np.asarray(file[name][selection]), CODED[selection])
        told = file.evidence()["formats"]
    bytes = 2 * CODED[selection].nbytes
    assert not transfers
    assert told["requested_bytes"] == bytes and told["staged_bytes"] >= bytes


def test_batches_have_their_samples(path: Path, transfers: list[str]) -> None:
    with penstock.open(path, device="host") as file:
        loader = BatchLoader(file["a chunk a row"], 64, shuffle=False)
        found = np.concatenate([np.asarray(batch) for batch in loader])
    assert np.array_equal(found, CODED)
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
        assert np.array_equal(np.asarray(file["gzip"][...]), CODED)
    assert transfers
