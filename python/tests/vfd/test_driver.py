"""Unchanged programs of h5py and netCDF4, with HDF5 moving its bytes through the driver."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from c_abi.driver_rig import moved, run, settings
from command import run_penstock
from places import ROOT

from penstock import Error
from penstock.cli import driver_config, hdf5_driver

WRITE = """
import h5py, numpy as np
a = np.random.default_rng(3).random((300_000, 4)).astype("f4")
with h5py.File("x.h5", "w") as f:
    f["plain"] = a
    f.create_dataset("packed", data=a, chunks=(5000, 4), compression="gzip", compression_opts=1, shuffle=True)
    f.create_dataset("grows", data=a[:100], maxshape=(None, 4))
    f.attrs["words"] = "text"
with h5py.File("x.h5", "r+") as f:
    f["plain"][:, 1:3] = np.zeros((300_000, 2), "f4")
    f["grows"].resize((200, 4))
    f["grows"][100:] = a[100:200]
"""
CHECK = """
import h5py, numpy as np
a = np.random.default_rng(3).random((300_000, 4)).astype("f4")
with h5py.File("x.h5", "r") as f:
    assert (f["packed"][...] == a).all() and (f["packed"][7::11, :3] == a[7::11, :3]).all()
    assert (f["grows"][...] == a[:200]).all() and f.attrs["words"] == "text"
    a[:, 1:3] = 0
    assert (f["plain"][...] == a).all() and (f["plain"][:, :3] == a[:, :3]).all()
    assert (f["plain"].astype("f8")[5::1000] == a[5::1000]).all()
print("same")
"""


@pytest.mark.parametrize(
    "config",
    ["", "memory=device", "memory=device,chunk_cache=off", "large=64KiB", "device=host,path=buffered,large=64KiB"],
)
def test_files_are_those_of_hdf5s_own_driver(tmp_path: Path, config: str) -> None:
    written = run(WRITE, tmp_path, config)
    assert written.code == 0, written.err
    assert run(CHECK, tmp_path, None).out == "same\n"
    read = run(CHECK, tmp_path, config)
    assert (read.code, read.out, read.err) == (0, "same\n", "")
    assert moved(written, "write", "transfers" if "path" in config else "plain") > 4_000_000
    assert moved(read, "read", "transfers" if "large" in config else "plain") > 4_000_000
    assert moved(read, "write", "plain") == moved(read, "write", "transfers") == 0


def test_without_the_chunk_cache_parts_of_chunks_move_alone(tmp_path: Path) -> None:
    """Of chunks without filters: two rows are read, where HDF5 reads all chunks that have a part of them."""
    written = """
import h5py, numpy as np
a = np.arange(1 << 20, dtype="f4").reshape(1024, 1024)
with h5py.File("x.h5", "w") as f:
    f.create_dataset("tiles", data=a, chunks=(256, 256))
    f.create_dataset("packed", data=a, chunks=(256, 256), compression="gzip")
"""
    program = """
import h5py, numpy as np
a = np.arange(1 << 20, dtype="f4").reshape(1024, 1024)
with h5py.File("x.h5", "r+") as f:
    assert (f["tiles"][5:7] == a[5:7]).all() and (f["packed"][5:7] == a[5:7]).all() 
    f["tiles"][5:7] = f["packed"][5:7] = 7
with h5py.File("x.h5") as f:
    a[5:7] = 7
    assert (f["tiles"][...] == a).all() and (f["packed"][...] == a).all()
"""
    first = {}
    for config in ("memory=device", "memory=device,chunk_cache=off", "memory=host,chunk_cache=off"):
        assert run(written, tmp_path, None).code == 0
        done = run(program, tmp_path, config)
        assert (done.code, done.err) == (0, "")
        first[config] = sum(done.evidence[0]["read"][way]["bytes"] for way in ("plain", "windows"))
    with_cache, without, of_host = first.values()
    assert with_cache - without > 3 * 256 * 1024 and of_host == with_cache  # one row of four chunks of 256 KiB


def test_netcdf4_programs(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    program = """
import netCDF4, numpy as np
with netCDF4.Dataset("x.nc", "w") as f:
    f.createDimension("t", None)
    f.createDimension("y", 1000)
    v = f.createVariable("v", "f8", ("t", "y"), zlib=True)
    for i in range(5):
        v[i] = np.arange(1000.0) + i
with netCDF4.Dataset("x.nc") as f:
    assert f["v"].shape == (5, 1000) and (f["v"][4] == np.arange(1000.0) + 4).all()
print("same")
"""
    done = run(program, tmp_path)
    assert (done.code, done.out) == (0, "same\n"), done.err
    assert len(done.evidence) >= 2
    assert moved(done, "write", "plain") > 0


def test_errors_are_those_that_programs_know(tmp_path: Path) -> None:
    program = """
import h5py, os, sys
names = {"absent.h5": "r", "no/x.h5": "w", "there.h5": "x", ".": "r"}
h5py.File("there.h5", "w").close()
for name, mode in names.items():
    try:
        h5py.File(name, mode)
    except OSError as failure:
        print(type(failure).__name__, failure.errno, "penstock cannot" in str(failure))
open("junk.h5", "wb").write(b"junk" * 1000)
try:
    h5py.File("junk.h5")
except OSError as failure:
    print("signature" in str(failure))
with h5py.File("new.h5", "a") as f:
    f["x"] = 1
os.chmod("new.h5", 0o444)
"""
    done = run(program, tmp_path)
    assert done.out.splitlines() == [
        "FileNotFoundError 2 True",
        "FileNotFoundError 2 True",
        "FileExistsError 17 True",
        "IsADirectoryError 21 True",
        "True",
    ], done.err
    assert done.err == ""


def test_a_config_that_makes_no_sense_is_refused_in_one_line(tmp_path: Path) -> None:
    program = "import h5py\ntry:\n    h5py.File('x.h5', 'w')\nexcept OSError as failure:\n    print(failure)"
    done = run(program, tmp_path, "colour=red")
    assert done.out.count("\n") == 1 and done.err == ""
    assert "penstock cannot open 'x.h5': there is no key 'colour'; HDF5_DRIVER_CONFIG takes evidence=, err" in done.out
    assert not (tmp_path / "x.h5").exists()


def test_a_full_disk_and_a_cut_file_are_errors(tmp_path: Path) -> None:
    program = """
import h5py, numpy as np, resource, signal, os
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
f = h5py.File("x.h5", "w")
d = f.create_dataset("d", (40_000_000,), "u1")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, -1))
try:
    d[...] = np.ones(40_000_000, "u1")
except OSError as failure:
    print(failure.errno, flush=True)
os._exit(0)
"""
    for config in ("", "large=1GiB"):
        assert run(program, tmp_path, config).out in ("27\n", "None\n"), config
    (tmp_path / "x.h5").unlink()
    assert run(WRITE, tmp_path).code == 0
    os.truncate(tmp_path / "x.h5", 100_000)
    cut = run("import h5py\ntry:\n    h5py.File('x.h5')\nexcept OSError as e:\n    print('trunc' in str(e))", tmp_path)
    assert cut.out == "True\n"


def test_locks_are_hdf5s(tmp_path: Path) -> None:
    program = """
import h5py, subprocess, sys
f = h5py.File("x.h5", "w")
f["x"] = 1
f.flush()
other = '''
import h5py
try:
    h5py.File('x.h5', 'r')
except OSError as failure:
    print(failure.errno, flush=True)
else:
    print('open')
'''
for use in ("TRUE", "FALSE"):
    import os
    done = subprocess.run([sys.executable, "-c", other], env=os.environ | {"HDF5_USE_FILE_LOCKING": use},
                          capture_output=True, text=True)
    print(done.stdout.strip())
"""
    assert run(program, tmp_path).out.splitlines() == run(program, tmp_path, None).out.splitlines()
    assert run(program, tmp_path).out.splitlines()[0] == "11"


def test_mode_a_tells_what_opening_failed_of(tmp_path: Path) -> None:
    program = """
import h5py, subprocess, sys
with h5py.File("x.h5", "w") as f:
    f["x"] = 1
holds = "import h5py, sys; f = h5py.File('x.h5', 'r+'); print('up', flush=True); sys.stdin.read()"
other = subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
other.stdout.readline()
for mode in ("r+", "a", "x"):
    try:
        h5py.File("x.h5", mode)
    except OSError as failure:
        print(mode, failure.errno, "lock" in str(failure))
other.stdin.close()
other.wait()
open("junk.h5", "wb").write(b"junk" * 1000)
try:
    h5py.File("junk.h5", "a")
except OSError as failure:
    print('mode "r+" says why' in str(failure) or "signature" in str(failure))
with h5py.File("x.h5", "a") as f:
    print(f["x"][()])
"""
    with_driver, without = run(program, tmp_path).out, run(program, tmp_path, None).out
    assert with_driver == without == "r+ 11 True\na 11 True\nx 17 False\nTrue\n1\n"


def test_children_of_fork_and_threads(tmp_path: Path) -> None:
    program = """
import h5py, numpy as np, os, threading
a = np.arange(3_000_000, dtype="f8")
with h5py.File("x.h5", "w") as f:
    f["x"] = a
f = h5py.File("x.h5")
assert (f["x"][...] == a).all()
child = os.fork()
if child == 0:
    with h5py.File("x.h5") as mine:
        os._exit(0 if (mine["x"][...] == a).all() and (f["x"][::7] == a[::7]).all() else 1)
assert os.waitpid(child, 0)[1] == 0
good = []
def read():
    with h5py.File("x.h5") as mine:
        good.append((mine["x"][...] == a).all())
threads = [threading.Thread(target=read) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert (f["x"][...] == a).all()
print(all(good), len(good))
"""
    done = run(program, tmp_path, "large=1MiB")
    assert (done.code, done.out) == (0, "True 4\n"), done.err
    assert len({one["process"] for one in done.evidence}) >= 1


@pytest.mark.parametrize("limit", [64, 256])
def test_few_descriptors_leave_plain_calls_and_are_told(tmp_path: Path, limit: int) -> None:
    program = """
import h5py, numpy as np, resource
a = np.arange(3_000_000, dtype="f8")
with h5py.File("x.h5", "w", driver="sec2") as f:  # no engine yet, whose threads close descriptors later
    f["x"] = a
import os
resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))
f = h5py.File("x.h5")
kept = []
try:
    while True:
        kept.append(os.open("x.h5", os.O_RDONLY))
except OSError:
    pass
same = (f["x"][...] == a).all()
for one in kept:
    os.close(one)
f.close()
print(same)
"""
    done = run(program.replace("FEW", str(limit)), tmp_path, "large=1MiB")
    assert (done.code, done.out) == (0, "True\n"), done.err
    assert any("descriptor" in why or "open files" in why for one in done.evidence for why in one["refused"])


def test_evidence_on_stderr(tmp_path: Path) -> None:
    place = ",".join(["evidence=stderr"])
    env = settings(place)
    done = run("import h5py; h5py.File('x.h5', 'w').close()", tmp_path, None, **env)
    assert done.err.startswith('{"file": "x.h5", "process": ')


def test_vfd_path_prints_what_a_shell_evaluates(tmp_path: Path) -> None:
    lines = run_penstock("vfd-path", "--config", "evidence=stderr").out.splitlines()
    assert lines[1:] == ["export HDF5_DRIVER=penstock", "export HDF5_DRIVER_CONFIG=evidence=stderr"]
    assert Path(settings()["HDF5_PLUGIN_PATH"], "libpenstock_vfd.so").is_file()
    assert lines[0].endswith('"${HDF5_PLUGIN_PATH:+:$HDF5_PLUGIN_PATH}"')


WRONG = {
    "evidnce=x,path=urring": ("there is no key 'evidnce'; did you mean evidence?; keys are evidence, errors, memory,"),
    "path=urring": "path=urring is not known; did you mean uring?; path= takes auto, buffered, ",
    "memory=gpu": "memory=gpu is not known; memory= takes auto, host or device",
    "device=cude:0": "device=cude:0 names no device; did you mean cuda:0?; device= takes auto, host or cuda:N",
    "evidence=stderr,errors=/nodir/x": "errors=/nodir/x lies in no folder that is there; errors= takes hdf5, ",
    "evidence=.": "evidence=. is a folder; evidence= takes stderr or a file",
    "large=4MB": "large=4MB is no size from 1 byte to 1024GiB; large= takes a size such as 4MiB",
    "large=0": "large=0 is no size",
    "large=1025GiB": "large=1025GiB is no size",
    "errors=": "errors= has no value; errors= takes hdf5, stderr or a file",
    "evidence": "'evidence' has no =; keys are evidence, errors, ",
}


@pytest.mark.parametrize("config", WRONG)
def test_vfd_path_refuses_what_the_driver_would(config: str) -> None:
    refused = run_penstock("vfd-path", "--config", config)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("penstock: vfd-path: --config: " + WRONG[config])


def test_vfd_path_takes_names_of_the_folder_that_the_program_will_run_in() -> None:
    lines = run_penstock("vfd-path", "--config", "evidence=later/told.jsonl,large=000000000000000000000064KiB").out
    assert lines.endswith("evidence=later/told.jsonl,large=000000000000000000000064KiB\n")


def test_the_keys_that_vfd_path_knows_are_those_of_the_driver() -> None:
    source = (ROOT / "apps/vfd/settings.cpp").read_text()
    keys = re.findall(r'key == "(\w+)"', source)
    assert list(driver_config.KEYS) == keys == re.findall(r"(\w+)=[, ]", source[: source.index("with commas")])
    memory = re.findall(r'text == "(\w+)"', source)
    assert driver_config.KEYS["memory"].values == f"{', '.join(memory[:-1])} or {memory[-1]}"
    taken = dict(re.findall(r'unit == "(\w+)" \? (\d+)', source)) | {"": "0"}
    assert {unit: str(shift) for unit, shift in driver_config._UNITS.items()} == taken
    page = (ROOT / "docs/formats/hdf5-driver.md").read_text()
    told = run_penstock("vfd-path", "--help").out
    assert [key for key in keys if f"| `{key}` |" not in page or f"{key}:" not in told] == []


@pytest.mark.parametrize(
    "config", ["evidence=stderr,errors=hdf5,,memory=host", "large=1024GiB,device=cuda:0,path=mmap"]
)
def test_vfd_path_takes_what_the_driver_takes(config: str, tmp_path: Path) -> None:
    assert run_penstock("vfd-path", "--config", config).out.endswith(f"export HDF5_DRIVER_CONFIG={config}\n")
    assert run("import h5py; h5py.File('x.h5', 'w').close()", tmp_path, config).code == 0


def test_doctor_tells_of_libraries_that_ignore_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [("h5py:", (2, 0, 0)), ("libhdf5_serial.so.103:", (1, 10, 8))]
    monkeypatch.setattr(hdf5_driver, "_libraries", lambda: iter(found))
    entry = hdf5_driver.item()
    assert entry["state"] == "partly"
    assert "libhdf5_serial.so.103: HDF5 1.10.8 would silently ignore HDF5_DRIVER" in entry["detail"]
    assert "h5py: HDF5 2.0.0 can load the driver" in entry["detail"]
    assert entry["advice"]
    monkeypatch.setattr(hdf5_driver, "_libraries", lambda: iter(found[:1]))
    assert (hdf5_driver.item()["state"], hdf5_driver.item()["advice"]) == ("yes", None)
    monkeypatch.setattr(hdf5_driver, "_libraries", lambda: iter([]))
    assert hdf5_driver.item()["state"] == "no"


def test_an_installation_without_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5_driver, "_LIBRARY", "absent.so")
    with pytest.raises(Error) as caught:
        hdf5_driver.vfd_path()
    assert "no driver for HDF5" in str(caught.value)


def test_memory_of_a_gpu_is_viewed_or_refused_before_hdf5_touches_it(tmp_path: Path) -> None:
    program = """
import ctypes, h5py, numpy as np, os
from penstock import Error
from penstock.gpu.hdf5_view import hdf5_view as view

class Array:  # what CuPy shows of an array
    def __init__(self, shape, dtype, strides=None):
        self.memory = np.zeros(shape, dtype)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": np.dtype(dtype).str, "strides": strides,
                                         "data": (self.memory.ctypes.data, False), "version": 3}

def refused(array, dataset):
    try:
        view(array, dataset)
    except Error as failure:
        return failure.cause
    return "taken"

a = np.random.default_rng(0).random((1000, 50))
with h5py.File("x.h5", "w") as f:
    f["a"] = a
    f.create_dataset("empty", (10,), "f8")
    part = f.create_dataset("part", (10,), "f8", chunks=(5,))
    part[:5] = 1
    narrow = h5py.h5t.STD_I32LE.copy()
    narrow.set_precision(24)
    h5py.h5d.create(f.id, b"narrow", narrow, h5py.h5s.create_simple((10,)))
    f["narrow"][:] = 1
    f["i"] = np.arange(10, dtype="i4")
with h5py.File("x.h5") as f:
    target = Array((1000, 50), "f8")
    f["a"].read_direct(view(target, f["a"]))
    print((target.memory == a).all())
    print(refused(Array((1000, 50), "f4"), f["a"]))
    print(refused(Array((1000, 50), "f8", (8, 8000)), f["a"]))
    print(refused(Array((1000, 50), "f8", (400, 8)), f["a"]))
    print(refused(Array((10,), "f8"), f["empty"]))
    print(refused(Array((10,), "f8"), f["part"]))
    print(refused(Array((10,), "i4"), f["narrow"]))
    print(refused(Array((10,), "i4"), f["i"]))
    del os.environ["HDF5_DRIVER"]
    print(refused(Array((1000, 50), "f8"), f["a"]))
"""
    done = run(program, tmp_path, "memory=device")
    assert done.out.splitlines() == [
        "True",
        "HDF5 would convert float64 and float32 with the CPU",
        "the array has gaps or another order",
        "taken",
        "parts of it are not stored, and HDF5 would fill them with the CPU",
        "parts of it are not stored, and HDF5 would fill them with the CPU",
        "its integers have fewer bits than int32, and HDF5 would convert them with the CPU",
        "taken",
        "HDF5 moves its bytes by another driver",
    ], done.err
