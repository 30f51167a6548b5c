"""What a snapshot with SWIFT's cells costs where particles lie in any order.

    python examples/particles/sorted_cost.py [FOLDER] [--particles 10000000] [--device cuda:0] [--rounds 5]

Positions, velocities, masses and numbers of gas, at random in a box of 64 x 64 x 64 cells: on a GPU by CuPy, or on the
host by NumPy. Ways take turns, and the median of their rounds is told. Unsorted: the fields as they lie, without cells.
By hand: the order of `penstock.cell_order`, which works on the host, a sorted copy of each field on the device, and
`add_cells`. The files of the two that sort are the same, byte for byte, which is checked. Nothing waits for the disk.
"""

from __future__ import annotations

import argparse
import filecmp
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import penstock

CELLS, BOX = (64, 64, 64), 100.0
POSITIONS = "PartType0/Coordinates"
Fields = dict[str, Any]


def particles(arrays: Any, count: int) -> Fields:
    """`arrays`: the module that makes them, NumPy or CuPy."""
    draw = arrays.random.default_rng(1)
    return {
        POSITIONS: draw.random((count, 3)) * BOX,
        "PartType0/Velocities": draw.random((count, 3)).astype("float32"),
        "PartType0/Masses": draw.random(count).astype("float32"),
        "PartType0/ParticleIDs": arrays.arange(count, dtype="uint64"),
    }


def unsorted(name: Path, fields: Fields, context: penstock.Context) -> None:
    penstock.Snapshot(name, fields, context=context).write()


def sort_by_cells(name: Path, fields: Fields, context: penstock.Context) -> None:
    snapshot = penstock.Snapshot(name, fields, context=context)
    snapshot.sort_by_cells(CELLS, BOX, {0: fields[POSITIONS]})
    snapshot.write()


def by_hand(name: Path, fields: Fields, context: penstock.Context) -> None:
    at = fields[POSITIONS]
    order = penstock.cell_order(at.get() if hasattr(at, "get") else at, CELLS, BOX)
    if hasattr(at, "get"):
        import cupy

        order = cupy.asarray(order)
    in_order = {path: array[order] for path, array in fields.items()}
    snapshot = penstock.Snapshot(name, in_order, context=context)
    snapshot.add_cells(CELLS, BOX, {0: in_order[POSITIONS]})
    snapshot.write()


WAYS: dict[str, Callable[[Path, Fields, penstock.Context], None]] = {
    "unsorted": unsorted,
    "by hand": by_hand,
    "sort_by_cells": sort_by_cells,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", default=".", type=Path)
    parser.add_argument("--particles", default=10_000_000, type=int)
    parser.add_argument("--device", default="host")
    parser.add_argument("--rounds", default=5, type=int)
    options = parser.parse_args()
    arrays: Any = np
    if options.device != "host":
        import cupy

        arrays = cupy
    context = penstock.Context(options.device)
    fields = particles(arrays, options.particles)
    size = sum(array.nbytes for array in fields.values())
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(options.rounds):
        for name, way in WAYS.items():
            if arrays is not np:
                arrays.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            way(options.folder / f"{name}.hdf5", fields, context)
            taken[name].append(time.perf_counter() - start)
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"{name}: {median * 1e3:.1f} ms, {size / median / 1e9:.2f} GB/s")
    same = filecmp.cmp(options.folder / "by hand.hdf5", options.folder / "sort_by_cells.hdf5", shallow=False)
    for name in WAYS:
        (options.folder / f"{name}.hdf5").unlink()
    if not same:
        raise SystemExit("the two files with cells differ")
    print("the files of both that sort are the same")


if __name__ == "__main__":
    main()
