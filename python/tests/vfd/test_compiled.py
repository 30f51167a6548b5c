"""Compiled programs of C and Fortran that know of no driver: the same files, and HDF5 moves their bytes through it.

tests/vfd/steps.c and steps.f90 are linked with the HDF5 that h5py's wheel brings. Debian's is too old for drivers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from c_abi.driver_rig import settings
from places import ROOT

h5py = pytest.importorskip("h5py")
np = pytest.importorskip("numpy")

COMPILERS = {"gcc": "steps.c", "gfortran": "steps.f90", "flang": "steps.f90"}
NAMES = {"flang": ("flang", "flang-new", "flang-new-19")}
FIELDS = {"steps.c": ("plain", "packed"), "steps.f90": ("plain",)}
STEP = 8 << 20  # bytes


@cache
def hdf5_library() -> Path:
    """The one that h5py has loaded, which loads drivers from 1.14 on."""
    if h5py.version.hdf5_version_tuple < (1, 14):
        pytest.skip(f"HDF5 {h5py.version.hdf5_version} loads no drivers")
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libhdf5" in line}
    beside = [Path(name) for name in loaded if "_hl" not in name and "h5py" in name]
    return beside[0] if beside else pytest.skip("h5py's HDF5 is no library of its own")


def built(compiler: str, folder: Path) -> Path:
    found = next(filter(None, map(shutil.which, NAMES.get(compiler, (compiler,)))), None)
    if found is None:
        pytest.skip(f"no {compiler}")
    library, program = hdf5_library(), folder / "steps"
    source = ROOT / "tests" / "vfd" / COMPILERS[compiler]
    words = [found, "-O1", "-o", program, source, library, f"-Wl,-rpath,{library.parent}"]
    subprocess.run(words, check=True, cwd=folder, timeout=120)
    return program


def run(program: Path, how: str, config: str | None) -> list[dict]:
    """Runs it in its folder, and returns what the driver told of its files."""
    told = program.with_name("told.jsonl")
    told.unlink(missing_ok=True)
    wanted = {} if config is None else settings(",".join(filter(None, [config, f"evidence={told}"])))
    words = [program, how, "x.h5"]
    done = subprocess.run(
        words, cwd=program.parent, env=os.environ | wanted, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "0 wrong", "")
    return [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []


def values_of(file: Path, source: str) -> dict[str, np.ndarray]:
    with h5py.File(file, driver="sec2") as opened:
        return {name: opened[name][...] for name in (*FIELDS[source], "table")}


@pytest.mark.parametrize("config", ["", "memory=device,chunk_cache=off", "large=64KiB,path=direct,device=host"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_files_are_those_of_hdf5s_own_driver(compiler: str, config: str, tmp_path: Path) -> None:
    program = built(compiler, tmp_path)
    assert run(program, "write", None) == []
    without = values_of(tmp_path / "x.h5", COMPILERS[compiler])
    (read_plain,) = run(program, "read", config)
    (tmp_path / "x.h5").unlink()
    (written,) = run(program, "write", config)
    with_driver = values_of(tmp_path / "x.h5", COMPILERS[compiler])
    assert all(np.array_equal(with_driver[name], values) for name, values in without.items())
    assert run(program, "read", None) == []
    (read,) = run(program, "read", config)
    for told in (read, read_plain):
        moved = {path: way["bytes"] for path, way in told["read"]["transfers"].items()}
        assert sum(moved.values()) >= 3 * STEP, told
        assert ("direct" in moved) == ("direct" in config), told
    way = written["write"]
    of_transfers = sum(path["bytes"] for path in way["transfers"].values())
    assert (of_transfers if "direct" in config else way["plain"]["bytes"]) >= 3 * STEP, written
    assert written["refused"] == read["refused"] == []


def test_an_error_of_the_driver_ends_the_program_as_hdf5s_own_do(tmp_path: Path) -> None:
    program = built("gcc", tmp_path)
    words = [program, "write", "x.h5"]
    for config, cause in (("colour=red", "there is no key 'colour'"), ("", None)):
        done = subprocess.run(
            words, cwd=tmp_path, env=os.environ | settings(config), capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == (cause is None)
        assert cause is None or (cause in done.stderr and "opening the file failed" in done.stderr)
