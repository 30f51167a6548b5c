"""Writers of HDF5 files that are killed: whatever the moment, stock HDF5 reads the files and all that was in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import PROGRAMS

pytest.importorskip("h5py")

KILLS = 200


def test_files_survive_two_hundred_killed_writers(tmp_path: Path) -> None:
    program = PROGRAMS / "hdf5_killed.py"
    command = [sys.executable, str(program), str(tmp_path), str(KILLS), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200  # the writers got somewhere before they died
