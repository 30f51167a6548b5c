"""The files of the suite `data`: one a format, each with the same rows of 4 KiB.

What the suite compares are readers, so each file is written by whatever writes it plainly.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from penstock_bench.engine.rounds import need

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

ROW_BYTES = 4096
CHUNK_ROWS = 16  # of 64 KiB
GZIP_LEVEL = 4
NAME = "x"
_OLD_S = 2.1  # after which a file counts as one that no program is changing
SUFFIXES = {
    "HDF5": "h5",
    "netCDF-4": "nc",
    "netCDF classic": "nc3",
    "NPY": "npy",
    "safetensors": "safetensors",
    "Zarr": "zarr",
}


def place(run: Run, format: str) -> Path:
    return run.workspace.directory / f"rows.{SUFFIXES[format]}"


def gzip_place(run: Run) -> Path:
    return run.workspace.directory / "gzip.h5"


def plain_place(run: Run) -> Path:
    return run.workspace.directory / "plain.bin"


def rows_of(run: Run) -> np.ndarray:
    """Numbers that gzip shortens, and of which no two rows are the same."""
    items = ROW_BYTES // 4
    return np.arange(run.bytes // ROW_BYTES * items, dtype="f4").reshape(-1, items)


def make(run: Run) -> None:
    values = rows_of(run)
    for format in SUFFIXES:
        options: dict[str, Any] = {"version": 2} if format == "netCDF classic" else {}  # SciPy reads no later ones
        with penstock.create(place(run, format), context=run.context, **options) as file:
            if format == "Zarr":
                chunk = (CHUNK_ROWS, values.shape[1])
                file.create_dataset(NAME, values.shape, "float32", chunk_shape=chunk)[...] = values
            else:
                file["data" if format == "NPY" else NAME] = values
    make_gzip(run, values)
    plain_place(run).write_bytes(values.tobytes())
    os.sync()
    time.sleep(_OLD_S)


def make_gzip(run: Run, values: np.ndarray) -> None:
    need("h5py")
    import h5py

    with h5py.File(gzip_place(run), "w") as file:
        chunk = (CHUNK_ROWS, values.shape[1])
        file.create_dataset(NAME, data=values, chunks=chunk, compression="gzip", compression_opts=GZIP_LEVEL)
