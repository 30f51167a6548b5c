"""What a step of one field of 4 KiB costs the model: a history, and netCDF4-python and h5py in the step.

    python small_rates.py 5

The ways take turns. A line of each: microseconds of a step, where steps follow each other without a pause, the median
and the range of so many turns. The others append to a chunk a step, and hand nothing to the disk.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np

import penstock

T = np.arange(1024, dtype="f4")
Step = Callable[[int], None]
Close = Callable[[], object]


def history(form: str, path: Path) -> tuple[Step, Close]:
    made = penstock.History(path, format=form, device="host")
    made.define("T", ("x",), like=T)

    def step(number: int) -> None:
        made.put("T", T)
        made.end_step(float(number))

    return step, made.close


def netcdf4(path: Path) -> tuple[Step, Close]:
    import netCDF4

    file = netCDF4.Dataset(path, "w")
    file.createDimension("time", None)
    file.createDimension("x", T.size)
    field = file.createVariable("T", "f4", ("time", "x"), chunksizes=(1, T.size))
    times = file.createVariable("time", "f8", ("time",))

    def step(number: int) -> None:
        field[number] = T
        times[number] = number

    return step, file.close


def hdf5(path: Path) -> tuple[Step, Close]:
    file = h5py.File(path, "w")
    field = file.create_dataset("T", (0, T.size), "f4", maxshape=(None, T.size), chunks=(1, T.size))
    times = file.create_dataset("time", (0,), "f8", maxshape=(None,), chunks=(512,))

    def step(number: int) -> None:
        field.resize(number + 1, 0)
        field[number] = T
        times.resize(number + 1, 0)
        times[number] = number

    return step, file.close


def microseconds(way: Callable[[Path], tuple[Step, Close]], path: Path, steps: int) -> float:
    step, close = way(path)
    step(0)
    began = time.perf_counter()
    for number in range(1, steps):
        step(number)
    close()
    return (time.perf_counter() - began) / steps * 1e6


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    ways: dict[str, Callable[[Path], tuple[Step, Close]]] = {
        f"history, {form}": partial(history, form) for form in ("cdf5", "netcdf4", "raw", "zarr")
    }
    if importlib.util.find_spec("netCDF4"):
        ways["netCDF4-python"] = netcdf4
    ways["h5py"] = hdf5
    took: dict[str, list[float]] = {title: [] for title in ways}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for turn in range(turns):
            for number, (title, way) in enumerate(ways.items()):
                took[title].append(microseconds(way, Path(folder) / f"{turn}.{number}", steps))
    for title, all_turns in took.items():
        print(f"{title}: {statistics.median(all_turns):.0f} ({min(all_turns):.0f} to {max(all_turns):.0f})")


if __name__ == "__main__":
    main()
