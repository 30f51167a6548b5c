"""Arrays that were never closed: what was written reaches the file, or what kept it from that is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
import gc, os, resource, signal, sys
import numpy as np
import penstock as ps
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
name, limit, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rows = ps.gpu.open(name, "float32", (-1, 16), cache_bytes="1 MiB", mode="r+", device="host", map=False)
rows[0:4000] = np.ones((4000, 16), "float32")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
if "cycle" in how or how == "collected":
    rows.itself = rows  # goes with the collector only
if how == "collected":
    del rows
    gc.collect()
    print("collected", flush=True)
elif how == "at the end, after a child's":
    if (child := os.fork()) == 0:
        sys.exit()  # as a program ends, with all that Python does then
    os.waitpid(child, 0)
elif how == "at the end, after the names of modules":
    for module in [one for name, one in sys.modules.items() if name.startswith("penstock")]:
        vars(module).update({name: None for name in vars(module) if not name.startswith("__")})
"""
LATE = "at the end, after the names of modules"  # as Python ends where something holds the array that it lets go late
HOWS = [LATE, "collected", "at the end", "at the end, in a cycle", "at the end, after a child's"]


def run(name: Path, limit: int, how: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", PROGRAM, str(name), str(limit), how]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)


@pytest.mark.parametrize("how", HOWS)
def test_what_was_written_is_in_the_file(how: str, tmp_path: Path) -> None:
    name = tmp_path / "rows.bin"
    name.write_bytes(bytes(64 * 4000))
    assert "Exception ignored" not in run(name, 1 << 30, how).stderr
    assert np.all(np.fromfile(name, "float32") == 1)


@pytest.mark.parametrize("how", ["collected", "at the end", "at the end, in a cycle", LATE])
def test_what_could_not_be_written_is_told(how: str, tmp_path: Path) -> None:
    """The process may not write behind 64 KiB."""
    name = tmp_path / "rows.bin"
    name.write_bytes(bytes(64 * 4000))
    said = run(name, 65536, how).stderr
    assert "Exception ignored" in said and f"{name} at offset" in said and "File too large" in said
