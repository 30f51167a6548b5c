"""A model that is killed at any moment leaves every step that it was told of, and each whole.

PENSTOCK_SIGNALS is the number of kills (20 without it)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hdf5_kit import debian_tool, run_tool

netCDF4 = pytest.importorskip("netCDF4")
KILLS = int(os.environ.get("PENSTOCK_SIGNALS", "20"))
ROWS, COLUMNS = 40, 1500

# Says after each step how many readers see. Each element of a step has its number.
MODEL = f"""
import sys, numpy as np, penstock
from itertools import count
history = penstock.History(sys.argv[1], device="host", time_units="seconds since 2000-01-01", slots=int(sys.argv[2]),
    format=sys.argv[3], compression=sys.argv[4])
field = np.empty(({ROWS} + 2, {COLUMNS} + 4))
history.define("T", ("y", "x"), like=field, halo=(1, 2))
history.define("m", ("y", "x"), like=field, halo=(1, 2), statistic="mean", dtype="float64")
history.constant("x", np.arange({COLUMNS}), ("x",))
for step in count():
    field[...] = step
    history.put("T", field)
    history.put("m", field - 1)
    history.put("m", field + 1)
    history.end_step(60 * step)
    print(history.facts().steps_published, flush=True)
"""


def run_and_kill(path: Path, slots: int, after_s: float, format: str, compression: str) -> int:
    """The number of steps that the model was told of last."""
    command = [sys.executable, "-c", MODEL, str(path), str(slots), format, compression]
    model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert model.stdout is not None
    lines = [model.stdout.readline()]
    time.sleep(after_s)
    os.kill(model.pid, signal.SIGKILL)
    lines += model.stdout.readlines()
    model.wait()
    return max(int(line) for line in lines if line.endswith("\n"))


@pytest.mark.parametrize(("format", "compression"), [("cdf5", "none"), ("netcdf4", "none"), ("netcdf4", "gzip")])
def test_a_killed_model_leaves_every_step_that_it_was_told_of(tmp_path: Path, format: str, compression: str) -> None:
    chance = random.Random(5)
    steps = 0
    for kill in range(KILLS):
        path = tmp_path / f"{kill}.nc"
        slots = kill % 4 if compression == "none" else 1 + kill % 3
        told = run_and_kill(path, slots, chance.random() / 5, format, compression)
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            found = np.arange(len(file.dimensions["time"]))
            assert len(found) >= told, "what was told is there"
            assert np.array_equal(file["time"][...], 60.0 * found)
            for name in ("T", "m"):
                assert (file[name][...] == found[:, None, None]).all()
            assert (file["x"][...] == np.arange(COLUMNS)).all()
        if kill % 5 == 0:
            dumped = run_tool(debian_tool("ncdump"), "-v", "time", path)
            assert f"time = UNLIMITED ; // ({len(found)} currently)" in dumped
        steps += told
        path.unlink()
    assert steps > 2 * KILLS
