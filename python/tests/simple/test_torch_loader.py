"""Batches of penstock.torch in a DataLoader of PyTorch: what kind of dataset they are, and workers that share them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, IterableDataset  # noqa: E402

import penstock  # noqa: E402
from penstock import torch as ours  # noqa: E402

ROWS = 103


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Any]:
    penstock.save(tmp_path / "x.h5", {"x": np.repeat(np.arange(ROWS, dtype="f4")[:, None], 5, axis=1)}, "host")
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        yield file["x"]


def numbers(batches: Any) -> list[list[int]]:
    return [batch[:, 0].int().tolist() for batch in batches]


def loaded(loader: Any, workers: int, method: str | None = None) -> list[list[int]]:
    return numbers(DataLoader(loader, batch_size=None, num_workers=workers, multiprocessing_context=method))


def test_pytorch_knows_both_kinds(source: Any) -> None:
    loader = ours.BatchLoader(source, 10)
    assert isinstance(loader, IterableDataset)
    assert isinstance(ours.Dataset(source), torch.utils.data.Dataset)
    assert not isinstance(ours.Dataset(source), IterableDataset)
    assert len(DataLoader(loader, batch_size=None)) == 11


def test_penstock_does_not_import_pytorch() -> None:
    told = "import sys, penstock, penstock.data; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(("workers", "method"), [(0, None), (1, "fork"), (2, "fork"), (3, "spawn"), (13, "fork")])
def test_workers_give_the_batches_of_an_epoch_in_its_order(source: Any, workers: int, method: str | None) -> None:
    expected = numbers(ours.BatchLoader(source, 10, seed=3))
    found = loaded(ours.BatchLoader(source, 10, seed=3), workers, method)
    assert found == expected
    assert sorted(sum(found, [])) == list(range(ROWS))


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_and_places_are_those_of_the_loader(source: Any, workers: int) -> None:
    plain = ours.BatchLoader(source, 10, seed=3)
    epochs = [numbers(plain) for _ in range(3)]
    loader = ours.BatchLoader(source, 10, seed=3)
    for epoch in (2, 0, 1):
        loader.set_epoch(epoch)
        assert loaded(loader, workers, "fork" if workers else None) == epochs[epoch]
    for done in (0, 1, 7, 10):
        loader.load_state_dict(loader.state_dict() | {"epoch": 1, "batch": done})
        assert loaded(loader, workers, "fork" if workers else None) == epochs[1][done:]


def test_workers_that_stay_go_on_to_the_next_epoch_by_themselves(source: Any) -> None:
    plain = ours.BatchLoader(source, 10, seed=3)
    epochs = [numbers(plain) for _ in range(3)]
    kept: Any = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    batches = DataLoader(ours.BatchLoader(source, 10, seed=3), batch_size=None, **kept)
    assert [numbers(batches) for _ in range(3)] == epochs


def test_workers_that_stay_begin_the_next_epoch_after_a_loop_that_was_left(source: Any) -> None:
    """Each has read ahead as far as it likes: what is left of the epoch would lack samples, or have them twice."""
    plain = ours.BatchLoader(source, 10, seed=3)
    epochs = [numbers(plain) for _ in range(4)]
    kept: Any = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    loader = ours.BatchLoader(source, 10, seed=3)
    loader.load_state_dict(loader.state_dict() | {"batch": len(loader)})  # which is before the first of epoch 1
    batches = DataLoader(loader, batch_size=None, **kept)
    for at, batch in enumerate(batches):
        assert batch[:, 0].int().tolist() == epochs[1][at]
        if at == 2:
            break
    assert numbers(batches) == epochs[2]
    next(iter(batches))
    assert len(numbers(batches)) == 11


def test_ranks_and_workers_share_each_sample_once(source: Any) -> None:
    ranks = [loaded(ours.BatchLoader(source, 4, seed=1, rank=rank, world=3), 2, "fork") for rank in range(3)]
    assert sorted(number for rank in ranks for batch in rank for number in batch) == list(range(ROWS))
