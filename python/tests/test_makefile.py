"""`make report DIR=...`: what a user types as DIR is the name of a directory, and nothing of it is ever run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"
HOSTILE = [
    'x"; touch run-by-it; "',
    "x'; touch run-by-it; '",
    "`touch run-by-it`",
    "$(touch run-by-it)",
    "$(shell touch run-by-it)",
    "$${HOME} $(info x) #",
    "-n",
    "a b; touch run-by-it",
    "a\ntouch run-by-it\nb",
]
STUB = "#!/bin/sh\nprintf '%s\\0' \"$@\" >> arguments\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """All that the recipes need, with a `penstock` that writes down how it was called."""
    if shutil.which("make") is None or not MAKEFILE.exists():
        pytest.skip("no make, or no Makefile")
    shutil.copy(MAKEFILE, tmp_path)
    for name in ("pyproject.toml", "CMakeLists.txt", "tools/setup.sh", ".venv/bin/penstock", "python/penstock/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(STUB)
        (tmp_path / name).chmod(0o755)
    for name in ("system", "venv", "package"):
        (tmp_path / "build" / "stamps").mkdir(parents=True, exist_ok=True)
        (tmp_path / "build" / "stamps" / name).touch()
    return tmp_path


def make(tree: Path, target: str, directory: str, by_environment: bool) -> subprocess.CompletedProcess[str]:
    words = ["make", target] if by_environment else ["make", target, f"DIR={directory}"]
    environment = os.environ | {"MAKEFLAGS": ""} | ({"DIR": directory} if by_environment else {})
    return subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("by_environment", [False, True], ids=["argument", "environment"])
@pytest.mark.parametrize("target", ["report", "report-all"])
@pytest.mark.parametrize("directory", HOSTILE)
def test_nothing_of_a_directory_is_run(tree: Path, target: str, directory: str, by_environment: bool) -> None:
    refused = make(tree, target, directory, by_environment)
    assert refused.returncode != 0
    assert f"DIR={directory}: no directory that can be written" in refused.stderr
    (tree / directory).mkdir()
    done = make(tree, target, directory, by_environment)
    assert done.returncode == 0, done.stderr
    assert f"--dir={directory}" in (tree / "arguments").read_text().split("\0")
    assert not (tree / "run-by-it").exists()
