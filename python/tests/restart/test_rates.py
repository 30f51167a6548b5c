"""The program behind the figures of the page of restarts runs, and prints a line for each way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

pytest.importorskip("h5py")


def test_the_program_prints_what_each_way_took(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "restart" / "rates.py"), "3", "2", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    ways = ["plain write + fsync", "h5py + fsync", "Restart.write", "plain read", "Restart.read"]
    assert [line[:20].strip() for line in done.stdout.splitlines()] == ways
    assert all(line.endswith("MB/s") for line in done.stdout.splitlines())
    assert not any(tmp_path.iterdir())
