"""h5py's own tests pass with the driver, as the program behind the driver's page finds."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

pytest.importorskip("h5py")
PROGRAM = ROOT / "examples" / "unmodified" / "h5py_tests.py"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)


@pytest.mark.long
@pytest.mark.parametrize("config", ["", "memory=device"])
def test_all_that_are_independent_of_a_driver_pass(config: str, tmp_path: Path) -> None:
    done = run(tmp_path, config)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.match(r"h5py .*: (\d+) tests pass by both drivers", done.stdout)
    assert passed and int(passed[1]) >= 700, done.stdout
    assert int(done.stdout.split("the driver had ")[1].split()[0]) > 500


def test_what_the_driver_alone_fails_is_missed() -> None:
    program = runpy.run_path(str(PROGRAM))
    plain = dict.fromkeys(("a", "b", "c", "TestMPI::d"), "passed") | {"e": "failure"}
    ours = {"a": "passed", "b": "failure", "TestMPI::d": "error", "e": "failure"}
    assert program["missed"](plain, ours) == ["b", "c"]
