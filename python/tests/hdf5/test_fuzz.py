"""Damaged HDF5 files give data or an Error that names the file. Where HDF5 itself dies, there is nothing to test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import PROGRAMS

pytest.importorskip("h5py")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_data_or_an_error(tmp_path: Path, seed: int) -> None:
    program = PROGRAMS / "hdf5_damaged.py"
    command = [sys.executable, str(program), str(tmp_path), "90", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("the HDF5 library does not come back from one of these")
    if done.returncode < 0:
        pytest.skip(f"the HDF5 library died by signal {-done.returncode} of one of these")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
