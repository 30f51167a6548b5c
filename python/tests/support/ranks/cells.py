"""Ranks of mpi4py that add cells to a snapshot and write it whatever they are told: cells.py NAME HOW MISTAKE.

HOW: "one" file, or "each" with a virtual one. The last rank makes the mistake. Each rank prints what it gets as an
error, and that it came to its end."""

import os
import sys

import numpy as np
from mpi4py import MPI

import penstock

PARTICLES = 5
comm = MPI.COMM_WORLD
name, how, mistake = sys.argv[1:4]
is_last = comm.rank == comm.size - 1
at = np.stack([10.0 * comm.rank + np.arange(PARTICLES), np.full(PARTICLES, 1.0), np.full(PARTICLES, 2.0)], axis=1)


def tell(what: str) -> None:
    os.write(2, f"rank {comm.rank} {what}\n".encode())  # in one write, so that lines of ranks are not mixed


def wrong_arguments() -> tuple[tuple[int, int, int], list[float], dict[int, np.ndarray]]:
    cells, box, own = (comm.size, 1, 1), [10.0 * comm.size, 10.0, 10.0], at.copy()
    positions = {1: own}
    if is_last:
        if mistake == "grid":
            cells = (comm.size, 2, 1)
        elif mistake == "nan":
            own[2, 1] = np.nan
        elif mistake == "fewer":
            positions = {1: own[:-1]}
        elif mistake == "type":
            positions = {3: own}
        elif mistake == "shared":
            own[0, 0] = 10.0 * (comm.rank - 1) + 9
    return cells, box, positions


def write() -> None:
    options = {"file_each": how == "each", "virtual_file": how == "each"}
    snapshot = penstock.Snapshot(name, {"PartType1/Coordinates": at}, comm=comm, device="host", **options)
    try:
        snapshot.add_cells(*wrong_arguments())
    except (penstock.Error, ValueError) as error:
        tell(f"has: {error}")
    snapshot.write()


write()
tell("ends")
