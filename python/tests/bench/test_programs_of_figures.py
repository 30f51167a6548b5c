"""The programs behind figures of the changelog and the decisions run, and print a line for each case."""

import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT


def run(program: str, folder: Path, least: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "datasets" / program), str(folder), least]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_writes_are_printed_by_size_and_way(tmp_path: Path) -> None:
    done = run("write_sizes.py", tmp_path, "1")
    if "O_DIRECT is not possible" in done.stderr:
        pytest.skip(f"{tmp_path} is on a file system without O_DIRECT")
    assert done.returncode == 0, done.stderr
    head, *rows = (line.split() for line in done.stdout.splitlines())
    assert head == ["bytes", "file", "pwrite", "auto", "buffered", "direct", "uring"]
    assert [row[:2] for row in rows] == [[str(size), kind] for size in (1 << 19, 1 << 20) for kind in ("new", "old")]
    assert all(float(one) > 0 for row in rows for one in row[2:])
    assert not any(tmp_path.iterdir())


def test_rows_are_printed_by_format(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    done = run("row_times.py", tmp_path, "5")
    assert done.returncode == 0, done.stderr
    head, *rows, new = (line.split() for line in done.stdout.splitlines())
    assert head == ["format", "row", "penstock", "rival", "by"]
    formats = ("hdf5", "netcdf4", "netcdf3", "npy", "raw")
    assert [row[:2] for row in rows] == [[form, what] for form in formats for what in ("written", "read")]
    assert new[:3] == ["npy", "new", "file"]
    assert all(float(one) > 0 for row in [*rows, new[1:]] for one in row[2:4])
    assert not any(tmp_path.iterdir())
