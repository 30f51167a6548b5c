"""The program behind the figures of the driver's page runs, and prints a line for each kind of request."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

pytest.importorskip("h5py")


PROGRAM = ROOT / "examples" / "datasets" / "hdf5_driver_cost.py"


def test_the_program_prints_what_each_request_took(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "1", "1", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert first.split() == ["without,", "ms", "with,", "ms", "times"]
    names = ["all, contiguous", "all, in chunks", "three of four columns", "200 of 64 KiB", "200 of 64 KiB, H5Dread"]
    names += ["all written", "tiles", "tiles, no cache"]
    assert [row[:32].strip() for row in rows if ", host" in row] == [f"{name}, host" for name in names]
    assert all(float(row.split()[-1]) > 0 for row in rows)
    assert not any(tmp_path.iterdir())


@pytest.mark.long
def test_memory_of_the_host_costs_what_is_promised(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "64", "15", str(tmp_path), "--judge"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "as promised"), done.stdout + done.stderr


def test_a_promise_that_is_not_kept_is_told() -> None:
    program = runpy.run_path(str(PROGRAM))
    names = ("200 of 64 KiB, H5Dread, host", "three of four columns, GPU", "all, contiguous, GPU", "tiles, host")
    without = dict.fromkeys(names, [2.0, 1.0])
    kept = dict(zip(names, ([9.0, 1.05], [1.6], [512 * 2**20 / 36e9], [99.0]), strict=True))
    assert program["missed"](512, {"without": without, "with": kept}) == []
    broken = dict(zip(names, ([1.2, 9.0], [1.7], [512 * 2**20 / 34e9], [99.0]), strict=True))
    assert [line.split(" GPU")[0] for line in program["missed"](512, {"without": without, "with": broken})] == [
        "200 of 64 KiB, H5Dread, host took 1.20 times as long, promised 1.0",
        "three of four columns,",
        "all, contiguous,",
    ]
    assert len(program["missed"](64, {"without": without, "with": broken})) == 2  # not of small files
