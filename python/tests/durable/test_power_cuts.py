"""What was written durably is there after a power cut at any moment, in every format, on ext4 and xfs.

PENSTOCK_POWER_CUTS is the number of cuts of a run on each file system (120 and 80 without it)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_fs import faulty_fs
from mounts import PRIVATE, need_private_mounts
from places import PROGRAMS
from writers_rig import GROWING, WRITERS

for module in ("h5py", "netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)

PROGRAM = PROGRAMS / "power_cuts.py"
CUTS = {"ext4": 120, "xfs": 80}
ZARR_WRITERS = ["zarr", "zarr-parts", "zarr-packed", "zarr-append", "zarr-packed-append", "zarr-history", "zarr-shared"]
GROUPS = {"zarr": ZARR_WRITERS}
OTHERS = [name for name in WRITERS | GROWING if name not in GROUPS["zarr"]]


@pytest.fixture(scope="module", params=CUTS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    kind, folder = request.param, tmp_path_factory.mktemp("cuts")
    need_private_mounts()
    for tool in (f"mkfs.{kind}", "losetup"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}")
    with faulty_fs(folder):  # skips where it cannot be
        pass
    if not Path("/dev/loop-control").exists():
        pytest.skip("no loop devices")
    cuts = int(os.environ.get("PENSTOCK_POWER_CUTS", CUTS[kind]))
    # In a mount namespace of its own nothing stays mounted, whatever becomes of it.
    command = [*PRIVATE, sys.executable, str(PROGRAM), kind, str(cuts), "7", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240 + cuts * 3)
    for one in folder.glob("*.img"):
        one.unlink()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    if "skip" in found:
        pytest.skip(found["skip"])
    print(f"{kind}: {done.stdout}")
    yield found


def test_the_cuts_are_of_a_disk_that_flushes(run: dict[str, Any]) -> None:
    """The controls: a writer that only says that it is durable is found out, one that does all it takes never is."""
    assert run["flushes"] > 50 and run["writes"] > 200
    assert run["looked"] >= run["cuts"] * len(WRITERS)
    assert run["wrong"].get("control-unsynced", 0) > 0
    assert "control-synced" not in run["wrong"]


@pytest.mark.parametrize("name", [*OTHERS, *GROUPS])
def test_what_was_durable_is_there_whole_and_not_older(run: dict[str, Any], name: str) -> None:
    for one in GROUPS.get(name, [name]):
        assert one not in run["wrong"], f"{run['wrong'][one]} of {run['cuts']} cuts; {run['first'][one]}"
