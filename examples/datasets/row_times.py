"""What one row of 4 KiB takes in a file that is open for writing: python row_times.py [folder] [rows]

Prints medians in us of a row written, a row read, and a new file of one row, beside the library that people use for the
format now. The page cache has the files. What was written is compared before times are printed.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np

import penstock as ps

COLUMNS = 1024
RIVALS: dict[str, tuple[str, Callable[[Path, int], AbstractContextManager[Any]]]] = {
    "hdf5": ("h5py", lambda name, rows: h5py.File(name, "r+")),
    "netcdf4": ("netCDF4", lambda name, rows: netCDF4.Dataset(name, "a")),
    "netcdf3": ("netCDF4", lambda name, rows: netCDF4.Dataset(name, "a")),
    "npy": ("numpy.load", lambda name, rows: nullcontext({"data": np.load(name, mmap_mode="r+")})),
    "raw": ("numpy.memmap", lambda name, rows: nullcontext({"data": np.memmap(name, "f4", "r+", 0, (rows, COLUMNS))})),
}


def main(folder: Path, rows: int) -> None:
    print(f"{'format':<8} {'row':<8} {'penstock':>9} {'rival':>9}  by")
    for form, (rival, opened) in RIVALS.items():
        name = folder / f"rows.{form}"
        ps.save(name, {"data": np.zeros((rows, COLUMNS), "f4")}, format=form)
        with opened(name, rows) as other:
            theirs = edits(other["data"], rows)
        shape: dict[str, Any] = {"dtype": "f4", "shape": (rows, COLUMNS)} if form == "raw" else {}
        with ps.open(name, write=True, device="host", format=form, **shape) as file:
            ours = edits(file["data"], rows)
        for what in ("written", "read"):
            print(f"{form:<8} {what:<8} {ours[what]:>9.1f} {theirs[what]:>9.1f}  {rival}", flush=True)
    values = np.ones(COLUMNS, "f4")
    ours_new = median(range(rows), lambda row: ps.save(folder / f"ours{row}.npy", values))
    theirs_new = median(range(rows), lambda row: np.save(folder / f"theirs{row}.npy", values))
    print(f"{'npy':<8} {'new file':<8} {ours_new:>9.1f} {theirs_new:>9.1f}  numpy.save")


def edits(data: Any, rows: int) -> dict[str, float]:
    """Writes and reads all rows of a dataset, a variable or a map, and returns the medians."""
    order = np.random.default_rng(0).permutation(rows).tolist()
    values = np.random.default_rng(time.time_ns()).random((rows, COLUMNS), "f4")
    found = np.empty_like(values)

    def write(row: int) -> None:
        data[row] = values[row]

    def read(row: int) -> None:
        found[row] = data[row]

    taken = {"written": median(order, write), "read": median(order, read)}
    assert np.array_equal(found, values)
    return taken


def median(rows: Any, timed: Callable[[int], Any]) -> float:
    """In us."""
    taken = []
    for row in rows:
        began = time.perf_counter()
        timed(row)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as made:
        main(Path(made), int((sys.argv[2:] or ["500"])[0]))
