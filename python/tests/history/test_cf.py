"""Checkers of the CF conventions find nothing in the files of histories: no error, and no warning."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

BIN = Path(sys.executable).parent
UNITS = "seconds since 2000-01-01 00:00:00"
STATISTICS: Any = ("mean", "minimum", "maximum")
PLACES = {"y": 5, "x": 6}
ATTRS = {"title": "a run", "institution": "none", "source": "a test", "history": "made", "references": "-"}


def model(path: Path, **options: Any) -> Path:
    """All that a history says by itself: times, their bounds, statistics, and the conventions that it follows."""
    with ps.History(path, device="host", time_units=UNITS, attrs=ATTRS, **options) as history:
        for name, count in PLACES.items():
            words = {"units": "m", "axis": name.upper(), "standard_name": f"projection_{name}_coordinate"}
            history.constant(name, 500.0 * np.arange(count), (name,), words)
        history.define("T", ("y", "x"), shape=(5, 6), attrs={"units": "K", "standard_name": "air_temperature"})
        for one in STATISTICS:
            words = {"units": "K", "long_name": f"{one} of the temperature", "_FillValue": -9.9999e30}
            history.define(one, ("y", "x"), shape=(5, 6), statistic=one, attrs=words)
        for step in range(1, 4):
            for name in ("T", "mean", "mean", "minimum", "maximum"):
                history.put(name, np.full((5, 6), 280.0 + step, "f4"))
            history.end_step(60.0 * step)
    return path


def scale(path: Path, **options: Any) -> Path:
    faces = 500.0 * np.arange(-2, 9)
    grid = ps.ScaleGrid(faces, faces, np.arange(5.0), halo=(2, 2, 0), periodic=(True, False), ocean_faces=(0, 1))
    with ps.History(path, device="host", time_units=UNITS, attrs=ATTRS, **options) as history:
        for name, dims in (("T", ("y", "x", "z")), ("U", ("y", "xh", "z")), ("RAIN", ("y", "x"))):
            words = {"units": "1", "long_name": name}
            history.define(name, dims, shape=grid.shape(*dims), statistic="mean", attrs=words)
        for name in ("lon", "lat", "cell_area"):
            history.constant(name, np.ones(grid.shape("y", "x")), ("y", "x"))
        history.use_preset("scale", grid, mapping="mercator")
        history.set_attrs({"longitude_of_projection_origin": 135.0, "standard_parallel": 35.0}, "mercator")
        for name in ("T", "U", "RAIN"):
            history.put(name, np.ones(grid.shape(*{"T": "yxz", "U": ("y", "xh", "z"), "RAIN": "yx"}[name]), "f4"))
        history.end_step(60)
    return path


FILES = {
    "classic": lambda path: model(path),
    "netCDF-4": lambda path: model(path, format="netcdf4"),
    "noleap": lambda path: model(path, calendar="noleap"),
}


@pytest.mark.parametrize("file", FILES)
def test_the_compliance_checker_finds_nothing(tmp_path: Path, file: str) -> None:
    if not (BIN / "compliance-checker").exists():
        pytest.skip("no compliance-checker: pip install compliance-checker")
    told = checked(FILES[file](tmp_path / "run.nc"))
    assert "All tests passed!" in told, told


def checked(path: Path) -> str:
    command = [BIN / "compliance-checker", "--test", "cf:1.8", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_the_compliance_checker_sees_what_is_wrong(tmp_path: Path) -> None:
    """A check that cannot fail is none."""
    netCDF4 = pytest.importorskip("netCDF4")
    if not (BIN / "compliance-checker").exists():
        pytest.skip("no compliance-checker: pip install compliance-checker")
    with netCDF4.Dataset(model(tmp_path / "run.nc"), "a") as file:
        file["mean"].cell_methods = "time: avarage"
        file["time"].units = "moons"
    assert "All tests passed!" not in checked(tmp_path / "run.nc")


def cfchecks(path: Path, version: str) -> str:
    """It would fetch its tables: that of the standard names is the other checker's, the others are small."""
    home = importlib.util.find_spec("compliance_checker")
    if not (BIN / "cfchecks").exists() or home is None or home.origin is None:
        pytest.skip("no cfchecks: pip install cfchecker compliance-checker, and install libudunits2")
    names = Path(home.origin).parent / "data" / "cf-standard-name-table.xml"
    small = path.with_suffix(".xml")
    small.write_text(
        '<?xml version="1.0"?><standard_name_table><version_number>1</version_number>'
        '<last_modified>2020</last_modified><date>2020</date><entry id="land"/></standard_name_table>'
    )
    command = [BIN / "cfchecks", "-v", version, "-s", names, "-a", small, "-r", small, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "Can't find the 'udunits2' library" in done.stderr:
        pytest.skip("cfchecks has no libudunits2")
    assert "ERRORS detected: " in done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize("file", FILES)
def test_the_checker_of_the_conventions_finds_nothing(tmp_path: Path, file: str) -> None:
    told = cfchecks(FILES[file](tmp_path / "run.nc"), "1.8")
    assert re.search(r"ERRORS detected: 0\nWARNINGS given: 0\n", told), told


# What SCALE-RM's own files have, and the conventions have not: names of areas and volumes, lengths between centres as
# coordinates, and descriptions of its grids (SGRID).
OF_SCALE = {
    "(3.3): Invalid standard_name: area",
    "(5): co-ordinate variable not monotonic",
    "(9.5): Invalid value for cf_role attribute",
}


@pytest.mark.parametrize("form", ["cdf5", "netcdf4"])
def test_the_layout_of_scale_has_its_own_errors_and_no_others(tmp_path: Path, form: str) -> None:
    told = cfchecks(scale(tmp_path / "run.nc", format=form), "1.6")
    assert set(re.findall(r"ERROR: (.*)", told)) == OF_SCALE, told
    assert set(re.findall(r"WARN: (.*)", told)) <= {"(3): No standard_name or long_name attribute specified"}, told


def test_a_history_with_units_names_the_conventions(tmp_path: Path) -> None:
    with ps.open(model(tmp_path / "run.nc"), device="host") as file:
        assert file.attrs["Conventions"] == "CF-1.8"
    for options, told in (({}, None), ({"time_units": UNITS, "attrs": {"Conventions": "CF-1.10"}}, "CF-1.10")):
        with ps.History(tmp_path / "x.nc", device="host", **options) as history:
            history.define("T", ("x",), shape=(3,))
            history.put("T", np.zeros(3, "f4"))
            history.end_step(1)
        with ps.open(tmp_path / "x.nc", device="host") as file:
            assert file.attrs.get("Conventions") == told
