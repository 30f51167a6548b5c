"""Assembly works batch by batch: what it takes of memory follows the batch, not the matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="the most that a process took cannot be forgotten here"
)

CHILD = """
import json, sys
from pathlib import Path
from penstock import Context, hmatrix

def status(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10

store, batches, encoding = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = {"context": Context(device="host"), "encoding": encoding, "workers": 2}
hmatrix.assemble(hmatrix.shape("sphere", 320), store=store + ".small", **options).close()
mesh = hmatrix.shape("sphere", 16000)
Path("/proc/self/clear_refs").write_text("5")  # what was the most is forgotten
before, after = status("VmRSS"), []
options |= {"batches": batches, "progress": lambda *_: after.append(status("VmHWM"))}
with hmatrix.assemble(mesh, store=store, **options) as matrix:
    print(json.dumps({"took": after[-1] - before, "matrix": matrix.facts["bytes_fp64"]}))
"""


def share_of_the_matrix(tmp_path: Path, batches: int, encoding: str = "fp64") -> float:
    """Of its bytes as doubles, what memory grew by while it was built, in a process of its own."""
    command = [sys.executable, "-c", CHILD, str(tmp_path / "m.hmat"), str(batches), encoding]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(ran.stdout)
    return found["took"] / found["matrix"]


@pytest.mark.parametrize("encoding", ["fp64", "tiers"])
def test_memory_holds_two_batches_and_never_the_matrix(tmp_path: Path, encoding: str) -> None:
    assert share_of_the_matrix(tmp_path, 80, encoding) < 0.2


def test_control_a_matrix_of_one_batch_takes_all_of_it(tmp_path: Path) -> None:
    assert share_of_the_matrix(tmp_path, 1) > 0.9
