"""The program tests/hdf5/samples.cpp, compiled once for each state of its sources: it writes files with the library's
own writer of HDF5, which stock readers then open.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from places import ROOT

PARTS = [
    "tests/hdf5/samples.cpp",
    "src/formats/create/hdf5/*.cpp",
    "src/formats/create/hdf5/virtual/*.cpp",
    "src/formats/create/check_schema.cpp",
    "src/formats/create/schema.cpp",
    "src/formats/faults.cpp",
    "src/formats/hdf5/lookup3.cpp",
    "src/formats/stored_dataset.cpp",
    "src/data/selection/selection.cpp",
    "src/base/error.cpp",
]
COMPILE = ["g++", "-std=c++20", "-O0", "-Isrc", "-Iinclude", "-Itests", "-x", "c++", "-"]


@functools.cache
def program() -> Path:
    if not shutil.which("g++"):
        pytest.skip("no g++ to compile the writer of samples")
    sources = sorted(path for part in PARTS for path in ROOT.glob(part) if not path.name.endswith("_test.cpp"))
    headers = sorted(ROOT.glob("src/formats/**/*.hpp"))
    if not sources or not sources[0].exists():
        pytest.skip("no sources beside these tests")
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources + headers)).hexdigest()[:16]
    build = ROOT / "build" if os.access(ROOT, os.W_OK) else Path(tempfile.gettempdir()) / "penstock-tests"
    made = build / "samples" / f"hdf5-{digest}"
    made.parent.mkdir(parents=True, exist_ok=True)
    with (made.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = made.with_suffix(".part")
            as_one = "".join(f'#include "{source}"\n' for source in sources)  # each by itself takes eight times as long
            subprocess.run([*COMPILE, "-o", str(part)], input=as_one, text=True, check=True, cwd=ROOT)
            part.replace(made)
    return made


def run(*words: object) -> str:
    done = subprocess.run([str(program()), *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
