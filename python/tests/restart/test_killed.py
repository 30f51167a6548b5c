"""A model that is killed at any moment leaves a whole generation, and not an older one than it was told of.

PENSTOCK_SIGNALS is the number of kills (without it 30, and 1000 where exhaustive tests run)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import PROGRAMS

ASKED = os.environ.get("PENSTOCK_SIGNALS")
COUNTS = [int(ASKED)] if ASKED else [30, pytest.param(1000, marks=[pytest.mark.exhaustive, pytest.mark.long])]
PROGRAM = PROGRAMS / "killed_restarts.py"


@pytest.mark.parametrize("kills", COUNTS)
def test_a_killed_model_leaves_a_whole_generation(tmp_path: Path, kills: int) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path), str(kills), "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + kills * 3)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert found["generations"] >= kills / 3 and found["left"] > 0  # kills met writes that were under way
