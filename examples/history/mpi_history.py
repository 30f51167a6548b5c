"""One compressed Zarr store of all ranks of mpi4py: each rank compresses its rows and writes them to files of its own.

    mpirun -n 4 python -m mpi4py mpi_history.py run.zarr

`history_split` gives ranks equal numbers of rows, and the last ones what is left, or none. `python -m mpi4py` ends all
ranks where one of them has an error of its own.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from mpi4py import MPI

import penstock

NX, NY, STEPS = 60, 23, 5


def main() -> None:
    comm = MPI.COMM_WORLD
    name = sys.argv[1] if len(sys.argv) > 1 else "run.zarr"
    start, rows = penstock.history_split(NY, comm.size, comm.rank)
    y, x = np.ogrid[start : start + rows, :NX]
    # encode_threads: as it is, each rank takes all cores
    options: dict[str, Any] = {"format": "zarr", "compression": "zstd", "encode_threads": 1, "device": "host"}
    with penstock.History(name, comm=comm, **options) as history:
        history.define("T", ("y", "x"), shape=(rows, NX), global_shape=(NY, NX), start=(start, 0))
        for step in range(1, STEPS + 1):
            history.put("T", (1000 * step + 100 * y + x).astype("f4"))
            history.end_step(10.0 * step)
    if comm.rank == 0:
        print(f"{STEPS} steps of {comm.size} ranks")


if __name__ == "__main__":
    main()
