"""First reads of a program import nothing that takes longer than they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock._arrays.distinct import distinct, first_of_each

SCRIPT = """
import sys
import numpy as np
import penstock as ps
with ps.open(sys.argv[1], device="host") as file:
    for name in sys.argv[2:]:
        for box in (np.s_[3], np.s_[5:70], ..., [1, 90, 40], np.s_[::3]):
            file[name][box]
            out = np.zeros_like(np.asarray(file[name][box]))
            file[name].read(box, out=out)
raise SystemExit("numpy.ma" in sys.modules)
"""


@pytest.mark.parametrize("suffix", ["h5", "zarr"])
def test_numpys_masks_are_not_imported(tmp_path: Path, suffix: str) -> None:
    values = np.arange(100 * 300, dtype="i4").reshape(100, 300)
    path, names = tmp_path / f"x.{suffix}", ["plain"]
    if suffix == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.create_dataset("plain", data=values)
            file.create_dataset("chunks", data=values, chunks=(7, 300))
            file.create_dataset("gzip", data=values, chunks=(7, 40), compression="gzip", shuffle=True)
        names += ["chunks", "gzip"]
    else:
        penstock.save(path, {"plain": values}, "host", chunk_shape=(7, 300), compression="gzip")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path), *names], timeout=60, check=False)
    assert done.returncode == 0


def test_numbers_are_those_that_numpy_finds() -> None:
    draw = np.random.default_rng(4)
    for count in (0, 1, 2, 7, 1000):
        for kind in ("i4", "i8", "u8"):
            numbers = draw.integers(0, max(1, count // 2), count).astype(kind)
            found, first = first_of_each(numbers)
            wanted, places = np.unique(numbers, return_index=True)
            assert np.array_equal(found, wanted) and np.array_equal(first, places)
            assert np.array_equal(distinct(numbers), wanted) and found.dtype == wanted.dtype
