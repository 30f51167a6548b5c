"""Several output intervals are several histories: each file has its own times, and no history waits for another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.snapshot_rig import LIBRARY

import penstock as ps

TREE = Path(__file__).parents[3]
MODULES = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in ("", "_history")]
COMMANDS = {
    "intervals.c": ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}"],
    "intervals.f90": ["gfortran", *map(str, MODULES)],
}


@pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")
@pytest.mark.parametrize("source", COMMANDS)
def test_programs_in_c_and_fortran_have_two_intervals(tmp_path: Path, source: str) -> None:
    command = COMMANDS[source]
    if not works(command[0]):
        pytest.skip(f"there is no {command[0]}")
    place = [str(TREE / "examples" / "history" / source), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*command, *place, "-o", "intervals"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "intervals", "often.nc", "mean.nc"], cwd=tmp_path, check=True, timeout=60)
    fields = 100.0 * np.arange(1, 13)[:, None, None] + 10.0 * np.arange(5)[:, None] + np.arange(6)
    with ps.open(tmp_path / "often.nc", device="host") as file:
        assert np.array_equal(file["T"].read(), fields) and file["T"].dims == ("time", "y", "x")
        assert np.array_equal(file["time"].read(), 60.0 * np.arange(1, 13))
    with ps.open(tmp_path / "mean.nc", device="host") as file:
        assert np.array_equal(file["T"].read(), fields.reshape(2, 6, 5, 6).mean(axis=1))
        assert np.array_equal(file["time_bnds"].read(), [[0, 360], [360, 720]])
        assert file["T"].attrs["cell_methods"] == "time: mean"


def test_fields_of_two_intervals_are_in_two_files(tmp_path: Path) -> None:
    rain, wind = np.zeros((5, 6), "f4"), np.zeros((3, 5, 6), "f4")
    often = ps.History(tmp_path / "often.nc", device="host", time_units="seconds since 2000-01-01")
    seldom = ps.History(tmp_path / "seldom.nc", device="host", time_units="seconds since 2000-01-01")
    with often, seldom:
        often.define("rain", ("y", "x"), like=rain)
        seldom.define("wind", ("z", "y", "x"), like=wind)
        seldom.define("sum", ("y", "x"), like=rain, statistic="mean")
        for step in range(1, 13):
            rain += 1
            wind += 0.5
            if step % 2 == 0:
                often.put("rain", rain)
                often.end_step(60.0 * step)
            seldom.put("sum", rain)
            if step % 6 == 0:
                seldom.put("wind", wind)
                seldom.end_step(60.0 * step)
        assert often.facts().slot_bytes < seldom.facts().slot_bytes  # each has its own
    with ps.open(tmp_path / "often.nc", device="host") as file:
        assert file["time"][...].to_numpy().tolist() == [120.0, 240.0, 360.0, 480.0, 600.0, 720.0]
        assert file["rain"][:, 0, 0].to_numpy().tolist() == [2, 4, 6, 8, 10, 12]
    with ps.open(tmp_path / "seldom.nc", device="host") as file:
        assert file["time"][...].to_numpy().tolist() == [360.0, 720.0]
        assert file["wind"][:, 2, 4, 5].to_numpy().tolist() == [3, 6]
        assert file["sum"][:, 0, 0].to_numpy().tolist() == [3.5, 9.5]


def test_the_mean_of_equal_values_is_that_value(tmp_path: Path) -> None:
    """Times 1/49 it would be 0.9999999999999999, and a mask of ones no mask."""
    ones = np.array([1.0, -3.0, 0.0])
    with ps.History(tmp_path / "mean.nc", device="host", time_units="seconds since 2000-01-01") as history:
        history.define("mean", ("x",), like=ones, dtype="float64", statistic="mean")
        for step, puts in enumerate((49, 98, 107)):
            for _ in range(puts):
                history.put("mean", ones)
            history.end_step(step + 1)
    with ps.open(tmp_path / "mean.nc", device="host") as file:
        assert np.array_equal(file["mean"].read(), [ones] * 3)
