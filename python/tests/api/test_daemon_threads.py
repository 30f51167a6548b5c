"""Threads of the library's users that still run when the interpreter ends, as those of data loaders do: the process
ends as it would without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WORK = {
    "small reads on the calling thread": "file.read(small)",
    "transfers waited for": "file.read(large)",
    "progress told to Python": "file.start_read(large).wait(progress=lambda done, total: sum(range(2000)))",
    "errors made in Python": "refused()",
    "files opened and closed": "context.open(name).close()",
    "entries of a matrix asked from Python": "assemble()",
}

PROGRAM = """
import sys, threading, time
import numpy as np
import penstock
from penstock import hmatrix

name, folder, work = sys.argv[1:]

def entries(rows, columns):
    begun.set()
    return 1.0 / (1.0 + np.abs(rows[:, None] - columns[None, :]))

def reader(number):
    context = penstock.Context("host")
    file = context.open(name)
    small, large = bytearray(4096), bytearray(1 << 20)

    def refused():
        try:
            file.read(small, 1 << 40)
        except penstock.Error:
            pass

    def assemble():
        points = np.random.default_rng(1).random((2000, 3))
        hmatrix.assemble(points, store=f"{folder}/{number}.hmat", entries=entries, context=context)

    while True:
        exec(code)
        begun.set()

sys.setswitchinterval(1e-6)  # threads wait for the interpreter wherever they may
begun = threading.Event()
code = compile(work, "work", "exec")
for number in range(3):
    threading.Thread(target=reader, args=(number,), daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("work", WORK)
def test_the_process_ends_well_under_threads_at_work(work: str, tmp_path: Path) -> None:
    file = tmp_path / "file.bin"
    file.write_bytes(bytes(1 << 20))
    for _ in range(3):
        program = [sys.executable, "-c", PROGRAM, str(file), str(tmp_path), WORK[work]]
        ended = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
