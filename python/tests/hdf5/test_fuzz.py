"""Damaged HDF5 files give data or an Error that names the file. Where HDF5 itself dies, there is nothing to test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import PROGRAMS

h5py = pytest.importorskip("h5py")

DAMAGED, BARE = PROGRAMS / "hdf5_damaged.py", PROGRAMS / "hdf5_bare.py"
LIMIT_S = 120


def end_of(limit_s: float, program: Path, *arguments: str) -> tuple[str, str]:
    """(how the program died or that it hangs, or nothing; what it printed). An exit code of its own is a failure."""
    command = [sys.executable, str(program), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return "does not come back", ""
    if done.returncode < 0:
        return f"dies by signal {-done.returncode}", done.stderr
    assert done.returncode == 0, done.stderr
    return "", done.stdout


def skip_if_hdf5_alone_ends_so(end: str, file: Path, bare: Path = BARE) -> None:
    """The process that died had Penstock's code in it, and no signal tells whose fault it is: h5py reads the same file
    in a process without Penstock. If that process lives, the fault is Penstock's."""
    alone, _ = end_of(LIMIT_S / 4, bare, str(file))
    if alone:
        pytest.skip(f"HDF5 {h5py.version.hdf5_version} alone {alone} of such a file, as it {end} under Penstock")
    pytest.fail(f"a process with Penstock {end} of {file}, and h5py alone reads it")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_data_or_an_error(tmp_path: Path, seed: int) -> None:
    end, said = end_of(LIMIT_S, DAMAGED, str(tmp_path), "90", str(seed))
    if end:
        (tmp_path / "given.h5").rename(tmp_path / "deadly.h5")
        skip_if_hdf5_alone_ends_so(f"{end} ({said[:2000]})", tmp_path / "deadly.h5")
    assert int(said) > 0


def test_a_death_is_a_failure_unless_h5py_alone_dies_too(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "good.h5", "w") as file:
        file["x"] = [1.0, 2.0]
    with pytest.raises(pytest.fail.Exception, match="h5py alone reads it"):
        skip_if_hdf5_alone_ends_so("dies by signal 11", tmp_path / "good.h5")
    dies = tmp_path / "dies.py"
    dies.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    with pytest.raises(pytest.skip.Exception, match="alone dies by signal 11"):
        skip_if_hdf5_alone_ends_so("dies by signal 11", tmp_path / "good.h5", dies)
