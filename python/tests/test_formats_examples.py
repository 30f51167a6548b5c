"""The examples of netCDF, Zarr and xarray run as they are, and stock tools read what they write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments), "--device", "host"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_steps_are_appended_and_averaged(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.nc3"
    assert "(2, 180, 360)" in run("netcdf3_append_steps.py", path, "--steps", 2)
    assert "(3, 180, 360)" in run("netcdf3_append_steps.py", path, "--steps", 1)
    assert "values are numpy.ndarray" in run("xarray_mean.py", path, "T")
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["time"][:], [0, 1, 2])
    with xarray.open_dataset(path, engine="penstock") as data:
        assert str(data["time"].values[2]).startswith("2000-01-01T02")


def test_shards_are_read_in_part(tmp_path: Path) -> None:
    text = run("zarr_shards.py", tmp_path / "x.zarr")
    assert "1 range of 65536 bytes at 0" in text
    assert "read 65536 of 4194304 bytes" in text
    zarr = pytest.importorskip("zarr")
    assert zarr.open_group(tmp_path / "x.zarr", mode="r")["density"].shape == (64, 128, 128)
