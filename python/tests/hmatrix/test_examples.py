"""The example of the H-matrix solver runs as it is, and finds what is known."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from places import EXAMPLES

EXAMPLE = EXAMPLES / "hmatrix_sphere.py"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_error_of_the_sphere_is_of_second_order(tmp_path: Path) -> None:
    done = run(tmp_path, "--finest", "1280")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ +(\d+) +([\d.]+)m +(-[\d.e-]+) +([\d.]*) ", done.stdout, re.M)
    assert [int(row[0]) for row in rows] == [80, 320, 1280]
    assert all(1.85 < float(row[3]) < 2.1 for row in rows[1:])
    assert abs(float(rows[-1][2])) < 4e-3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["sphere.png"]


def test_what_it_cannot_do_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "--finest", "3")
    assert done.returncode == 2 and "use 80 or more" in done.stderr and "Traceback" not in done.stderr


def test_it_is_named_in_the_page() -> None:
    page = EXAMPLE.parents[1] / "docs" / "applications" / "hmatrix.md"
    assert "(../../examples/hmatrix_sphere.py)" in page.read_text()
