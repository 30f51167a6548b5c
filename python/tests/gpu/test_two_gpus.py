"""Threads of callers keep their GPU, on machines with two: what CUDA calls current is the caller's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, os, sys
import cupy, numpy as np
import penstock as ps
from penstock import Context

runtime = cupy.cuda.runtime
if runtime.getDeviceCount() < 2:
    print("one GPU")
    sys.exit()
driver = ctypes.CDLL("libcuda.so.1")

def used(index):
    flags, active = ctypes.c_uint(), ctypes.c_int()
    assert driver.cuDevicePrimaryCtxGetState(index, ctypes.byref(flags), ctypes.byref(active)) == 0
    return active.value != 0

path, values = sys.argv[1] + "/x.npy", np.arange(1 << 20, dtype="f4")
np.save(path, values)
with Context(device="cuda:1") as context:
    array = ps.load(path, device="cuda:1")
    assert (array.to_numpy() == values).all()
    print("the other GPU is used:", used(0))
    print("chosen:", cupy.zeros(10).device.id)
    with ps.open(path, device="cuda:1") as file:
        row = file["data"][5:6]
        assert runtime.getDevice() == 0
    ps.save(sys.argv[1] + "/y.npy", array)
    print("current:", runtime.getDevice())
print("same:", (np.load(sys.argv[1] + "/y.npy") == values).all(), runtime.getDevice())
"""


def test_calls_for_one_gpu_leave_the_other_current_and_unused(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    if done.stdout == "one GPU\n" or "cudaErrorNoDevice" in done.stderr or "InsufficientDriver" in done.stderr:
        pytest.skip("two GPUs are needed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["the other GPU is used: False", "chosen: 0", "current: 0", "same: True 0"]
