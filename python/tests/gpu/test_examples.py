"""The examples of arrays in files run as they are, with a GPU or without, and say what they lack."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from places import EXAMPLES

import penstock as ps
from penstock import _core

DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def refused(words: str, *arguments: object) -> None:
    """One line that says it, and no success."""
    done = run("gather.py", *arguments, "--device", DEVICE)
    assert done.returncode != 0 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_rows_are_gathered_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"
    for make in (["--make"], []):  # the file is made, then found
        done = run("gather.py", path, "--megabytes", 4, "--rows", 2000, "--device", DEVICE, *make)
        assert done.returncode == 0, done.stderr
        assert "every row is right" in done.stdout and "2000 of 8192 rows" in done.stdout
    made = path.read_bytes()
    refused("rows.bin: File exists", path, "--make")
    assert path.read_bytes() == made
    for size, words in ((0, "has no rows"), (513, "not a whole number of rows")):
        path.write_bytes(bytes(size))
        refused(words, path)


def test_rows_of_any_file_are_gathered(tmp_path: Path) -> None:
    path = tmp_path / "mine.bin"
    values = np.random.default_rng(7).integers(0, 256, 4000 * 33 * 4, np.uint8)  # some floats of it are NaN
    assert np.isnan(values.view("f4")).any()
    values.tofile(path)
    done = run("gather.py", path, "--width", 33, "--rows", 1000, "--device", DEVICE)
    assert done.returncode == 0, done.stderr
    assert "every row is right" in done.stdout and "1000 of 4000 rows" in done.stdout


@pytest.mark.parametrize("changed", [False, True])
def test_control_a_file_changed_behind_the_cache_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    path = tmp_path / "mine.bin"
    np.arange(4000 * 32, dtype="f4").tofile(path)
    honest = ps.gpu.StoredArray.gather

    def gather(array: ps.gpu.StoredArray, wanted: np.ndarray) -> ps.Array:
        found = honest(array, wanted)
        with path.open("r+b") as file:
            file.seek(4 * 32 * int(wanted[-1]))
            file.write(b"\xff" if changed else b"")
        return found

    monkeypatch.setattr(ps.gpu.StoredArray, "gather", gather)
    monkeypatch.setattr(sys, "argv", ["gather.py", str(path), "--width", "32", "--rows", "500", "--device", DEVICE])
    with pytest.raises(SystemExit, match="rows differ") if changed else nullcontext():
        runpy.run_path(str(EXAMPLES / "gather.py"), run_name="__main__")


def test_what_makes_no_sense_is_refused_in_a_line(tmp_path: Path) -> None:
    absent = tmp_path / "absent.bin"
    refused("--make makes it", absent)
    assert not absent.exists()
    refused("No such file", tmp_path / "nowhere" / "x.bin", "--make")
    refused("it is a folder", tmp_path)
    for name in ("--rows", "--megabytes", "--width"):
        for number in (0, -5, 10**22):
            refused(f"{name} is {number}; give a number from 1", absent, "--make", name, number)
    assert not absent.exists()


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
