"""Writers that are killed at any moment: stock tools read whole records, those that were there and no others."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

KILLS = 4
ROWS, COLUMNS = 3, 5000
# Appends rows that hold their own number until it is killed, and says after each how many there are.
APPEND = f"""
import sys, numpy, penstock
while True:
    with penstock.open(sys.argv[1], write=True, device="host") as file:
        first = len(file["a"])
        rows = numpy.arange(first, first + {ROWS}, dtype="f4")
        file["a"].append(numpy.repeat(rows, {COLUMNS}).reshape({ROWS}, {COLUMNS}))
    print(first + {ROWS}, flush=True)
"""


def by_netcdf(path: Path) -> np.ndarray:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path) as file:
        return np.asarray(file["a"][...])


def by_zarr(path: Path) -> np.ndarray:
    zarr = pytest.importorskip("zarr")
    return np.asarray(zarr.open_group(path, mode="r")["a"][...])


CASES = {
    "netcdf3": ("x.nc3", by_netcdf, {}),
    "chunks": ("x.zarr", by_zarr, {"chunk_shape": (2, 1000)}),
    "shards": ("x.zarr", by_zarr, {"chunk_shape": (2, 1000), "shard_shape": (4, 2000)}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_killed_writer_leaves_is_whole(case: str, tmp_path: Path) -> None:
    name, stock, layout = CASES[case]
    path, chance, told = tmp_path / name, random.Random(5), 0
    dimensions: dict[str, Any] = {"dimensions": ("t", "x"), "resizable": (None, COLUMNS)}
    with penstock.create(path, device="host") as file:
        file.create_dataset("a", (0, COLUMNS), "f4", **dimensions, **layout)
    for _ in range(KILLS):
        told = append_and_kill(path, chance.random() / 2) or told
        found = stock(path)
        assert told <= len(found) <= told + ROWS, "what was said to be written is there"
        assert len(found) % ROWS == 0
        assert (found == np.arange(len(found))[:, None]).all()
        with penstock.open(path, device="host") as file:
            assert np.array_equal(np.asarray(file["a"].read()), found)
        told = len(found)


def append_and_kill(path: Path, after_s: float) -> int:
    """The number of rows that the writer told last."""
    writer = subprocess.Popen([sys.executable, "-c", APPEND, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    lines = [writer.stdout.readline()]
    time.sleep(after_s)
    os.kill(writer.pid, signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.wait()
    told = [int(line) for line in lines if line.endswith("\n")]
    return told[-1] if told else 0
