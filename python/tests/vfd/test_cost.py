"""The program behind the figures of the driver's page runs, and prints a line for each kind of request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

pytest.importorskip("h5py")


def test_the_program_prints_what_each_request_took(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "datasets" / "hdf5_driver_cost.py"), "1", "1", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert first.split() == ["without,", "ms", "with,", "ms", "times"]
    names = ["all, contiguous", "all, in chunks", "three of four columns", "200 of 64 KiB", "200 of 64 KiB, H5Dread"]
    names += ["all written", "tiles", "tiles, no cache"]
    assert [row[:32].strip() for row in rows if ", host" in row] == [f"{name}, host" for name in names]
    assert all(float(row.split()[-1]) > 0 for row in rows)
    assert not any(tmp_path.iterdir())
