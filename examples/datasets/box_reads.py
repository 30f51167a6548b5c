"""Boxes of one array in many ranges of its file: Penstock beside h5py, by turns, out of the page cache.

    python examples/datasets/box_reads.py DIR [rounds]

For each layout and box: medians in microseconds of Penstock and h5py, and their ratio. First of a file that stays open,
then of one that is opened for this read alone. All values are compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import numpy as np

import penstock

N = 4096
LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunks of 128 x 128": {"chunks": (128, 128)},
    "the same, gzip": {"chunks": (128, 128), "compression": "gzip", "compression_opts": 1},
}
BOXES = {
    "element": np.s_[5, 5],
    "row": np.s_[7],
    "column": np.s_[:, 5],
    "64 x 64": np.s_[100:164, 100:164],
    "256 x 256": np.s_[100:356, 100:356],
    "1024 x 1024": np.s_[100:1124, 100:1124],
    "each fourth row": np.s_[::4],
    "all": np.s_[...],
}


def made(folder: Path) -> Path:
    values = (np.random.default_rng(1).random((N, N)) * 1000).round().astype("f4")
    path = folder / "box_reads.h5"
    with h5py.File(path, "w") as file:
        for name, how in LAYOUTS.items():
            file.create_dataset(name, data=values, **how)
    return path


def medians(rounds: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Microseconds of each, by turns."""
    seconds: tuple[list[float], list[float]] = ([], [])
    assert np.array_equal(np.asarray(ours()), theirs())
    for _ in range(rounds):
        for way, taken in zip((ours, theirs), seconds, strict=True):
            began = time.perf_counter()
            np.asarray(way())
            taken.append(time.perf_counter() - began)
    return median(seconds[0]) * 1e6, median(seconds[1]) * 1e6


def opened_for(path: Path, name: str, box: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    def ours() -> Any:
        with penstock.open(path, device="host") as file:
            return np.asarray(file[name][box])

    def theirs() -> Any:
        with h5py.File(path) as file:
            array: Any = file[name]
            return array[box]

    return ours, theirs


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    path = made(folder)
    print(f"{'layout':20} {'box':16} {'Penstock':>9} {'h5py':>9} {'ratio':>6}   {'opened':>9} {'h5py':>9} {'ratio':>6}")
    with penstock.open(path, device="host") as file, h5py.File(path) as other:
        for name in LAYOUTS:
            for title, box in BOXES.items():
                few = 3 if title in ("all", "each fourth row") else rounds
                theirs: Any = other[name]
                at_hand = medians(few, lambda: file[name][box], lambda: theirs[box])  # noqa: B023
                alone = medians(few, *opened_for(path, name, box))
                parts = [f"{ours:9.0f} {theirs:9.0f} {theirs / ours:6.2f}" for ours, theirs in (at_hand, alone)]
                print(f"{name:20} {title:16} " + "   ".join(parts), flush=True)
    path.unlink()


if __name__ == "__main__":
    main()
