"""Epochs of random samples of 64 KiB by a BatchLoader, for several numbers of threads, out of the page cache.

    python examples/datasets/batch_epochs.py DIR [DEVICE] [samples]

Prints medians of seven epochs in milliseconds, contiguous and of gzip chunks; batches of 64. Each sample has
to come once.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

import h5py
import numpy as np

import penstock
from penstock.data import BatchLoader

NUMBERS, BATCH, EPOCHS = 1 << 14, 64, 7


def make(path: Path, samples: int) -> None:
    noise = np.random.default_rng(5).normal(0, 0.1, NUMBERS)
    smooth = (280 + 20 * np.sin(np.arange(NUMBERS) / 40) + noise).astype("f4")
    with h5py.File(path, "w") as file:
        plain = file.create_dataset("contiguous", (samples, NUMBERS), "f4")
        packed = file.create_dataset("gzip", plain.shape, "f4", chunks=(1, NUMBERS), compression="gzip", shuffle=True)
        for i in range(samples):
            sample = np.roll(smooth, i)
            sample[0] = i
            plain[i] = packed[i] = sample


def epoch(loader: BatchLoader) -> float:
    """In milliseconds."""
    begin = time.perf_counter()
    for _ in loader:
        pass
    return 1e3 * (time.perf_counter() - begin)


def main(folder: str, device: str = "host", samples: str = "2048") -> None:
    path = Path(folder) / "batch_epochs.h5"
    make(path, int(samples))
    with penstock.open(path, device=device) as file:
        for name in ("contiguous", "gzip"):
            seen = np.concatenate([batch.to_numpy()[:, 0] for batch in BatchLoader(file[name], BATCH)])
            if sorted(seen) != list(range(int(samples))):
                raise SystemExit(f"{name}: an epoch has not each sample once")
            for threads in (2, 4, 8):
                loader = BatchLoader(file[name], BATCH, threads=threads)
                print(f"{name}, {threads} threads: {median(epoch(loader) for _ in range(EPOCHS)):.1f} ms")
    path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
