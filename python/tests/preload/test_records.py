"""The program behind the figures of Fortran's records runs, and prints a line for each kind of request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from c_abi import preload_rig as rig

PROGRAM = rig.ROOT / "examples" / "unmodified" / "records.py"
RECORDS = ["write 8 MiB, fsync", "write 512 KiB, fsync", "cold read 8 MiB", "cold read 512 KiB"]
RECORDS += ["warm read 8 MiB", "warm read 512 KiB", "warm read 8 KiB"]


def test_the_program_prints_what_records_took(tmp_path: Path) -> None:
    rig.need_library()
    rig.compiler("gfortran")
    command = [sys.executable, str(PROGRAM), "16", "1", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=rig.LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    rows = [[word.strip() for word in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == RECORDS
    assert all(float(row[3]) > 0 and row[5] for row in rows)
    assert not any(tmp_path.iterdir())
