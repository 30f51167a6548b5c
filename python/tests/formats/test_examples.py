"""The examples of all formats run as they are, and stock tools read what they write; each format has its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import run_example
from places import EXAMPLES

from penstock.formats.registry import FORMATS


def test_steps_are_appended_and_averaged(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.nc3"
    assert "(2, 180, 360)" in run_example("netcdf3_append_steps.py", path, "--steps", 2)
    assert "(3, 180, 360)" in run_example("netcdf3_append_steps.py", path, "--steps", 1)
    assert "values are numpy.ndarray" in run_example("xarray_mean.py", path, "T")
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["time"][:], [0, 1, 2])
    with xarray.open_dataset(path, engine="penstock") as data:
        assert str(data["time"].values[2]).startswith("2000-01-01T02")


def test_the_weights_name_the_device_they_are_on(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "safetensors_weights.py"), str(tmp_path / "m.safetensors")]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "bytes on host\n" in text or "bytes on cuda:" in text, text


@pytest.mark.parametrize(("example", "package"), [("xarray_mean.py", "xarray"), ("gpu_kernel_cupy.py", "cupy")])
def test_an_example_says_what_it_needs(example: str, package: str, tmp_path: Path) -> None:
    path = str(EXAMPLES / example)
    code = f"import sys, runpy; sys.modules[{package!r}] = None; runpy.run_path({path!r}, {{}}, '__main__')"
    arguments = [str(tmp_path / "x.nc"), "T"] if package == "xarray" else []
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.startswith("this example needs "), done.stderr
    assert done.stderr.count("\n") == 1


def test_shards_are_read_in_part(tmp_path: Path) -> None:
    text = run_example("zarr_shards.py", tmp_path / "x.zarr")
    assert "1 range of 65536 bytes at 0" in text
    assert "read 65536 of 4194304 bytes" in text
    zarr = pytest.importorskip("zarr")
    assert zarr.open_group(tmp_path / "x.zarr", mode="r")["density"].shape == (64, 128, 128)


def test_columns_of_an_npy_file(tmp_path: Path) -> None:
    text = run_example("npy_columns.py", tmp_path / "big.npy", "--columns", 2)
    assert "sum of the parts 909990000" in text
    assert "80000 bytes wanted, 2557520 read" in text
    assert np.load(tmp_path / "big.npy", mmap_mode="r").shape == (100_000, 64)


def test_weights_of_a_model(tmp_path: Path) -> None:
    text = run_example("safetensors_weights.py", tmp_path / "m.safetensors")
    assert "8 tensors, 2097152 bytes on host" in text
    assert "(16, 256) of (256, 256)" in text
    reference = pytest.importorskip("safetensors.numpy")
    assert reference.load_file(tmp_path / "m.safetensors").keys() == {f"layer{i}.weight" for i in range(8)}


def test_planes_of_a_raw_field(tmp_path: Path) -> None:
    text = run_example("raw_planes.py", tmp_path / "f.bin", "--shape", 8, 16, 16)
    assert "(16, 16) float32, mean 1151.5" in text
    assert "1024 of 8192 bytes read" in text


def test_finished_steps_of_a_raw_history_are_told(tmp_path: Path) -> None:
    first = run_example("history/raw_history.py", tmp_path / "run", "--device", "host")
    assert "4 finished steps of (90, 180) float32" in first
    assert "10800 s: mean 283.0 K" in first
    assert run_example("history/raw_history.py", tmp_path / "run", "--device", "host") == first


def test_every_format_has_a_page_and_an_example() -> None:
    pages = {one.stem for one in (EXAMPLES.parent / "docs" / "formats").glob("*.md")}
    scripts = " ".join(one.stem for one in EXAMPLES.rglob("*.py"))
    for name in (*FORMATS, "xarray", "particles"):
        assert name in pages, name
        assert name.replace("-", "_") in scripts, name
