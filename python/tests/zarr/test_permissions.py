"""A store that the system hides is an Error of one line, whatever its name and the call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import penstock


@pytest.mark.parametrize("name", ["x.zarr", "store"])
@pytest.mark.parametrize("use", ["open", "load", "write"])
def test_a_store_that_may_not_be_looked_into_says_so(tmp_path: Path, name: str, use: str) -> None:
    penstock.save(tmp_path / name, {"a": np.arange(3)}, "host", format="zarr")
    program = """
import os, sys
import penstock
folder, use = sys.argv[1:]
calls = {"load": lambda: penstock.load(folder, "host"), "open": lambda: penstock.open(folder, device="host")}
call = calls.get(use, lambda: penstock.open(folder, write=True, device="host"))
call() if use == "load" else call().close()  # what it needs is imported
os.chmod(os.path.dirname(folder), 0o755)
os.chmod(folder, 0)
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    call()
except PermissionError as error:
    print(type(error).__name__, error)
"""
    place = Path("/tmp") if os.access("/tmp", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=place) as folder:
        shutil.move(tmp_path / name, folder)
        run = [sys.executable, "-c", program, f"{folder}/{name}", use]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        Path(folder, name).chmod(0o755)
    assert done.stdout.startswith("DeniedError open"), done
    assert "Permission denied; check" in done.stdout and done.stdout.count("\n") == 1
