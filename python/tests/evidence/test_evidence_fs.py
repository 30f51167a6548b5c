"""Evidence against what is so, on each file system that can be mounted: no claim of it may be untrue.

programs/evidence_fs.py makes the transfers and finds out the truth; here it is judged. What cannot be known may be left
open; so that not all is, the cases that a file system must prove are named.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from mounts import PRIVATE, need_private_mounts
from places import PROGRAMS

RIG = PROGRAMS / "evidence_fs.py"
LIMIT_S = 100
DISKS = ("ext4", "xfs", "btrfs", "overlay-ext4", "overlay-btrfs")
KINDS = (*DISKS, "ext4-journal", "btrfs-zstd", "tmpfs", "ramfs", "overlay-tmpfs", "fuse")
BYPASSING = ("direct", "aio", "uring")
READS = [f"read {path} {state}{how}" for path in BYPASSING for state in ("cold", "hot") for how in ("", " strict")]
COLD = [read for read in READS if "cold" in read]
SMALL_READS = ["read direct cold strict small"]
WRITES = [f"write {path} hot strict" for path in BYPASSING]
PROVED = {
    "ext4": READS + SMALL_READS + WRITES,
    "xfs": READS + SMALL_READS + WRITES,
    "overlay-ext4": READS + SMALL_READS + WRITES,
    # The kernel does not tell how btrfs read bytes that were in the page cache before the read. It does not tell either
    # how btrfs wrote a file that has checksums.
    "btrfs": COLD + SMALL_READS,
    "overlay-btrfs": COLD + SMALL_READS,
}


def observed(kind: str) -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount file systems and look into the page cache of all files")
    need_private_mounts()
    for tool in ("losetup", f"mkfs.{kind.removeprefix('overlay-').split('-')[0]}"):
        if not shutil.which(tool) and not (tool.startswith("mkfs") and kind in MEMORY):
            pytest.skip(f"no {tool}")
    folder = Path(tempfile.mkdtemp(prefix="penstock-evidence-"))
    folder.chmod(0o755)  # the other user has to get there
    try:
        words = [*PRIVATE, sys.executable, str(RIG), kind, str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if "not_here" in told:
        pytest.skip(f"{kind} cannot be mounted here: {told['not_here']}")
    return told


MEMORY = ("tmpfs", "ramfs", "overlay-tmpfs", "fuse")


@pytest.mark.parametrize("kind", KINDS)
def test_no_claim_of_evidence_is_untrue(kind: str) -> None:
    told = observed(kind)
    untrue = [claim for claim in told["claims"] if not claim["true"]]
    assert not untrue, "\n".join(f"{one['case']}: {one['what']}: {one['said']}, but {one['so']}" for one in untrue)
    assert len(told["claims"]) > 40
    bypassing = {case for case in told["proved"] if case.startswith(("read", "write")) and "other" not in case}
    assert bypassing >= set(PROVED.get(kind, [])), told["refused"]
    if kind not in DISKS:
        assert not any(case.split()[1] in BYPASSING and "strict" in case for case in bypassing)
        refused = {case for case in told["refused"] if case.split()[1] in BYPASSING}
        strict = {case for case in READS + SMALL_READS + WRITES if "strict" in case}
        assert refused >= strict, strict - refused
