"""The examples of HDF5, netCDF-4 and particles run as they are, and stock tools read what they write."""

from __future__ import annotations

from pathlib import Path

import pytest

h5py = pytest.importorskip("h5py")
from command import run_example  # noqa: E402
from hdf5_kit import debian_tool, run_tool  # noqa: E402


def test_steps_of_a_simulation(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    assert "step 1 is on storage" in run_example("hdf5_append_steps.py", path, "--steps", 2)
    assert "step 3 is on storage" in run_example("hdf5_append_steps.py", path, "--steps", 2)
    with h5py.File(path) as file:
        assert file["time"][...].tolist() == [0, 0.25, 0.5, 0.75]
        assert (file["pressure"][3] == 3.5).all()


def test_fields_of_a_climate_model(tmp_path: Path) -> None:
    assert "('time', 'lev', 'lat', 'lon')" in run_example("netcdf4_climate.py", tmp_path / "run.nc")
    header = run_tool(debian_tool("ncdump"), "-h", tmp_path / "run.nc")
    assert "time = UNLIMITED ; // (4 currently)" in header
    assert "float T(time, lev, lat, lon)" in header


@pytest.mark.parametrize("preset", ["h5bench", "gothic"])
def test_particles(tmp_path: Path, preset: str) -> None:
    text = run_example("particles.py", tmp_path / "s.h5", "--preset", preset, "--count", 1000)
    assert {"h5bench": "32000 bytes read", "gothic": "52000 bytes read"}[preset] in text
