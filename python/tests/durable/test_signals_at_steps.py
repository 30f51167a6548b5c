"""kill -9 and Ctrl-C on any step of any writer: the file is the old one or the new one, the next writer goes on from
it, and nothing is left.

PENSTOCK_SIGNALS is the number of each (100 without it), spread evenly over all writers and all their steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_fs import faulty_fs
from places import PROGRAMS
from writers_rig import WRITERS, by_bytes

for module in ("h5py", "netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)

PROGRAM = PROGRAMS / "signals_at_steps.py"
SIGNALS = int(os.environ.get("PENSTOCK_SIGNALS", "100"))
GROUPS = ("core", "files", "folders", "appends")


def group_of(name: str) -> str:
    """The group that the writer of this name belongs to."""
    if WRITERS[name].appends:
        return "appends"
    if WRITERS[name].file.endswith(".zarr"):
        return "folders"
    return "core" if WRITERS[name].version is by_bytes else "files"


def shots(kind: str, folder: Path) -> dict[str, Any]:
    with faulty_fs(folder):  # skips where it cannot be
        pass
    command = [sys.executable, str(PROGRAM), kind, str(SIGNALS), "7", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240 + SIGNALS * 3)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    if "skip" in found:
        pytest.skip(found["skip"])
    print(kind, done.stdout)
    return found


@pytest.fixture(scope="module", params=["KILL", "INT"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    yield request.param, shots(request.param, tmp_path_factory.mktemp("signals"))


def test_the_signals_land(run: tuple[str, Any]) -> None:
    kind, found = run
    assert found["trials"] >= SIGNALS and found["fired"] >= 0.9 * found["trials"], kind
    assert found["steps"] > 5 * len(WRITERS)


@pytest.mark.parametrize("group", GROUPS)
def test_the_file_is_old_or_new_and_nothing_is_left(run: tuple[str, Any], group: str) -> None:
    _, found = run
    wrong = {name: found["first"][name] for name in found["wrong"] if group_of(name) == group}
    assert not wrong, "\n".join(f"{name}, {found['wrong'][name]} times: {text}" for name, text in wrong.items())
