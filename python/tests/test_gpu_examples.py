"""The examples of arrays in files run as they are, with a GPU or without, and say what they lack."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import penstock as ps
from penstock import _core

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_rows_are_gathered_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"
    for _ in range(2):  # the file is made, then found
        done = run("gather.py", path, "--megabytes", 4, "--rows", 2000, "--device", DEVICE)
        assert done.returncode == 0, done.stderr
        assert "every row is right" in done.stdout and "2000 of 8192 rows" in done.stdout
    with path.open("r+b") as file:  # control: a wrong row is noticed
        file.truncate(512)
        file.truncate(4 << 20)
    done = run("gather.py", path, "--rows", 2000, "--device", DEVICE)
    assert done.returncode != 0 and "rows differ" in done.stderr
    for size, words in ((0, "has no rows"), (513, "no whole number of rows")):
        path.write_bytes(bytes(size))
        done = run("gather.py", path, "--device", DEVICE)
        assert done.returncode != 0 and words in done.stderr and "Traceback" not in done.stderr


def test_a_kernel_of_cupy_adds_up_or_says_what_is_missing() -> None:
    done = run("gpu_kernel_cupy.py", "--megabytes", 8, "--elements", 10_000)
    if find_spec("cupy") is not None and _core.cuda_devices()[0] > 0:
        assert done.returncode == 0, done.stderr
        assert "the sum is right" in done.stdout
    else:
        assert done.returncode != 0 and done.stderr.startswith("this example needs") and "Traceback" not in done.stderr


def test_they_are_named_in_the_page() -> None:
    text = (EXAMPLES.parent / "docs" / "gpu.md").read_text()
    for name in ("gather.py", "gpu_kernel_cupy.py", "gpu_kernel.cu"):
        assert f"(../examples/{name})" in text and (EXAMPLES / name).is_file()
    assert set(ps.gpu.__all__) <= set(dir(ps.gpu))
