"""What the suite `data` compares of training: an epoch of random samples of 64 KiB in batches.

Beside Penstock stands what people use: a dataset that opens the file by h5py in each worker, in a DataLoader of PyTorch
with a worker a core. Each call is one epoch behind a first one, by workers and threads that have the file open. Samples
lie in contiguous rows, and in a chunk of gzip each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import penstock
from penstock_bench.engine.rounds import need
from penstock_bench.suites.data.files import GZIP_LEVEL, NAME
from penstock_bench.suites.data.pair import Call, Pair

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

SAMPLE_ITEMS = 1 << 14  # of float32: 64 KiB
BATCH = 64
LARGEST_MIB = 128  # of samples
_PACKED = "packed"  # name of the dataset of compressed chunks
_LAYOUTS = {"contiguous": NAME, "gzip and shuffle": _PACKED}
_LOADER = "BatchLoader"
PEER = "h5py and DataLoader"
_NEEDS = ("torch", "h5py")

Epoch = Callable[[], Iterable[Any]]


class _Samples(NamedTuple):
    """What an epoch gave: how many samples, and by another epoch all of them, in the order of the file."""

    number: int
    epoch: Epoch

    def get(self) -> np.ndarray:
        found = np.concatenate([batch.cpu().numpy() for batch in self.epoch()])
        if len(found) != self.number:
            raise ValueError(f"an epoch has {len(found)} samples, the one before had {self.number}")
        return found[np.argsort(found[:, 0], kind="stable")]


class StockSamples:
    """A map-style dataset as its users write it: h5py opens the file at the first sample in each process."""

    def __init__(self, path: Path, name: str, count: int) -> None:
        self._path, self._name, self._count = path, name, count
        self._rows: Any = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        import h5py
        import torch

        if self._rows is None:
            self._rows = h5py.File(self._path, "r")[self._name]
        return torch.from_numpy(self._rows[index])


def names() -> list[str]:
    """Epochs that are promised: those by threads."""
    return [_name(layout, _LOADER) for layout in _LAYOUTS]


def _name(layout: str, loader: str) -> str:
    return f"an epoch of samples of 64 KiB, {layout}: {loader}"


def pairs(run: Run) -> Iterator[Pair]:
    bytes = _count(run) * SAMPLE_ITEMS * 4
    for layout, name in _LAYOUTS.items():
        for loader, ours in ((_LOADER, _by_threads), ("Dataset in a DataLoader", _by_workers)):
            make = partial(_of_epochs, run, name, ours)
            yield Pair(_name(layout, loader), PEER, make, _NEEDS, 0.02, bytes, by_clock=True)


def make(run: Run) -> None:
    """The first element of a sample is its number; a sample is smooth, as fields of a simulation are, with noise."""
    need("h5py")
    import h5py

    count = _count(run)
    random, at = np.random.default_rng(5), np.arange(SAMPLE_ITEMS)
    with h5py.File(_place(run), "w") as file:
        shape, chunk = (count, SAMPLE_ITEMS), (1, SAMPLE_ITEMS)
        options = {"chunks": chunk, "compression": "gzip", "compression_opts": GZIP_LEVEL, "shuffle": True}
        plain, packed = file.create_dataset(NAME, shape, "f4"), file.create_dataset(_PACKED, shape, "f4", **options)
        for number in range(count):
            sample = (280 + 20 * np.sin(at / 40 + number) + random.normal(0, 0.1, SAMPLE_ITEMS)).astype("f4")
            sample[0] = number
            plain[number] = packed[number] = sample


def _count(run: Run) -> int:
    return min(LARGEST_MIB, int(run.settings.get("large_mib", 1))) * (1 << 20) // (SAMPLE_ITEMS * 4)


def _place(run: Run) -> Path:
    return run.workspace.directory / "samples.h5"


def _workers() -> int:
    return len(os.sched_getaffinity(0))


def _loader(run: Run, samples: Any) -> Epoch:
    """A DataLoader whose batches arrive where the run's device computes."""
    from torch.utils.data import DataLoader

    there = {} if run.emulated else {"pin_memory": True}
    made: Any = DataLoader(samples, BATCH, shuffle=True, num_workers=_workers(), persistent_workers=True, **there)
    if run.emulated:
        return lambda: made
    return lambda: (batch.to(run.context.device["name"], non_blocking=True) for batch in made)


def _by_threads(run: Run, name: str, stack: ExitStack) -> Epoch:
    from penstock.torch import BatchLoader

    file = stack.enter_context(penstock.open(_place(run), context=run.context))
    made = BatchLoader(file[name], BATCH)
    return lambda: made


def _by_workers(run: Run, name: str, stack: ExitStack) -> Epoch:
    """Workers read to the host: a GPU that their parent has used is of no use to them."""
    from penstock.torch import Dataset

    file = stack.enter_context(penstock.open(_place(run), device="host"))
    return _loader(run, Dataset(file[name]))


def _of_epochs(
    run: Run, name: str, ours: Callable[[Run, str, ExitStack], Epoch], stack: ExitStack
) -> tuple[Call, Call]:
    mine, theirs = ours(run, name, stack), _loader(run, StockSamples(_place(run), name, _count(run)))
    for each in (theirs, mine):  # workers are there now, files are open, and their indexes are read
        _epoch(run, each, 0)
    return partial(_epoch, run, mine), partial(_epoch, run, theirs)


def _epoch(run: Run, epoch: Epoch, _: int) -> _Samples:
    count = 0
    for batch in epoch():
        count += len(batch)
    if not run.emulated:
        import torch

        torch.cuda.synchronize()
    return _Samples(count, epoch)
