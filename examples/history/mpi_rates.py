"""What ways to write compressed output of all ranks of mpi4py cost: one store, and a store of each rank.

    mpirun -n 4 python -m mpi4py mpi_rates.py FOLDER ROUNDS [ROWS]

Eight steps of 48 MiB, 3072 rows of 4096 numbers: a smooth field of float32 with noise. The ways take turns. A line of
each: the median, the shortest and the longest time in seconds until all steps are in the files.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from typing import Any

import numpy as np
from mpi4py import MPI

import penstock

NX, STEPS = 4096, 8
comm = MPI.COMM_WORLD


def written(name: str, field: np.ndarray, rows: int, start: int, is_shared: bool) -> float:
    """Seconds until all ranks have written."""
    threads = max(1, (os.cpu_count() or 1) // comm.size)
    options: dict[str, Any] = {"format": "zarr", "compression": "zstd", "encode_threads": threads, "device": "host"}
    with penstock.History(name, comm=comm if is_shared else None, **options) as history:
        box: dict[str, Any] = {"global_shape": (rows, NX), "start": (start, 0)} if is_shared else {}
        history.define("T", ("y", "x"), like=field, **box)
        history.begin()
        comm.Barrier()
        began = MPI.Wtime()
        for step in range(1, STEPS + 1):
            history.put("T", field)
            history.end_step(10.0 * step)
    comm.Barrier()
    return float(MPI.Wtime() - began)


def main() -> None:
    folder, rounds = sys.argv[1], int(sys.argv[2])
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 3072
    start, own = penstock.history_split(rows, comm.size, comm.rank)
    noise = np.random.default_rng(comm.rank).random((own, NX)) / 1000
    field = (280 + 20 * np.sin(np.arange(NX) / 300) + noise).astype("f4")
    ways = {"one store, zstd": "all", "a store of each rank, zstd": f"of{comm.rank}"}
    seconds: dict[str, list[float]] = {title: [] for title in ways}
    for _ in range(rounds):
        for title, name in ways.items():
            path = f"{folder}/rates.{name}"
            seconds[title].append(written(path, field, rows, start, name == "all"))
            if comm.rank == 0 or name != "all":
                shutil.rmtree(path)
    for title, all_rounds in seconds.items() if comm.rank == 0 else ():
        middle = statistics.median(all_rounds)
        print(f"{title}: {middle:.2f} ({min(all_rounds):.2f} to {max(all_rounds):.2f})")


if __name__ == "__main__":
    main()
