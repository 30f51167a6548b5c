"""The program behind the figures of decision 66 runs, and prints a line for each size of new files and of old ones."""

import subprocess
import sys
from pathlib import Path

from places import ROOT


def test_the_program_prints_what_each_way_took(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "datasets" / "write_sizes.py"), str(tmp_path), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "O_DIRECT is not possible" in done.stderr:
        return
    assert done.returncode == 0, done.stderr
    head, *rows = (line.split() for line in done.stdout.splitlines())
    assert head == ["bytes", "file", "pwrite", "auto", "buffered", "direct", "uring"]
    assert [row[:2] for row in rows] == [[str(size), kind] for size in (1 << 19, 1 << 20) for kind in ("new", "old")]
    assert all(float(one) > 0 for row in rows for one in row[2:])
    assert not any(tmp_path.iterdir())
