"""Memory of a GPU in ordinary reads and writes, on stand-ins for libcuda and the engine.

The programs are gpu_program.c, cxx_streams.cpp and gpu_fortran.f90 of tests/preload."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from c_abi import preload_rig as rig

CASES = ("posix", "small", "pieces", "streams", "appends", "other", "threads", "stream threads")
CASES += ("other streams", "modes", "synchronous", "questions")
BYTES = 12 << 20


def program() -> Path:
    fake = rig.built("fake_cuda", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", target_name="libcuda.so.1")
    link = fake.with_name("libcuda.so")
    if not link.exists():
        link.symlink_to(fake.name)
    found = (f"-L{fake.parent}", "-lcuda", f"-Wl,-rpath,{fake.parent}")
    include = f"-I{rig.ROOT / 'include'}"
    rig.built("fake_engine", "-shared", "-fPIC", include, *found, target_name="libpenstock.so.0")
    return rig.built("gpu_program", "-pthread", *found)


def run(case: str, memory: str, file: Path, **more: str) -> tuple[rig.Run, dict]:
    report = file.with_name("report.json")
    engine = str(program().with_name("libpenstock.so.0"))
    found = str(program().parent)  # before the driver of a machine that has one
    environment = rig.preloaded(
        PENSTOCK_RUN_REPORT=str(report), PENSTOCK_RUN_LIBRARY=engine, LD_LIBRARY_PATH=found, **more
    )
    done = rig.plain(program(), case, memory, file, env=environment)
    return done, json.loads(report.read_text())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("memory", ["device", "managed"])
def test_bytes_arrive_where_the_pointer_says(case: str, memory: str, tmp_path: Path) -> None:
    done, report = run(case, memory, tmp_path / "file")
    assert (done.code, done.err) == (0, "")
    if case in ("posix", "streams"):
        (row,) = report["files"]
        assert row["written"]["gpu_bytes"] == BYTES and row["written"]["gpu_by_host_bytes"] == 0
        assert row["read"]["gpu_bytes"] == (19 << 20 if case == "posix" else BYTES)


@pytest.mark.parametrize("memory", ["device", "managed"])
def test_pieces_of_one_call_move_together(memory: str, tmp_path: Path) -> None:
    done, report = run("pieces", memory, tmp_path / "file")
    assert (done.code, done.err) == (0, "")
    (row,) = report["files"]
    assert row["written"]["gpu_bytes"] == 2 * (5 << 20)
    assert row["read"]["gpu_bytes"] == 3 * (5 << 20) + (2 << 20) - 10  # the head


@pytest.mark.parametrize("memory", ["device", "managed"])
def test_file_streams_of_cpp_move_whole_arrays(memory: str, tmp_path: Path) -> None:
    fake = program().parent
    found = (f"-L{fake}", "-lcuda", f"-Wl,-rpath,{fake}")
    words = (rig.built("cxx_streams", *found), memory, tmp_path / "file")
    libraries = {"LD_LIBRARY_PATH": str(fake)}
    without = rig.plain(*words, env=os.environ | libraries)
    refused = "an array behind text is not written\n" if memory == "device" else ""
    assert (without.code, without.err) == (int(bool(refused)), refused)
    report = tmp_path / "report.json"
    more = libraries | {"PENSTOCK_RUN_LIBRARY": str(fake / "libpenstock.so.0"), "PENSTOCK_RUN_REPORT": str(report)}
    done = rig.plain(*words, env=rig.preloaded(**more))
    assert (done.code, done.err) == (0, "")
    (row,) = json.loads(report.read_text())["files"]
    assert row["written"]["gpu_bytes"] == 2 * BYTES
    assert 2 * BYTES - 16384 <= row["read"]["gpu_bytes"] < 2 * BYTES  # the stream's buffer held the rest


@pytest.mark.parametrize("memory", ["device", "managed"])
@pytest.mark.parametrize("how", ["stream", "sequential"])
def test_statements_of_fortran_move_whole_arrays(how: str, memory: str, tmp_path: Path) -> None:
    found, report = program().parent, tmp_path / "report.json"
    more = {"PENSTOCK_RUN_LIBRARY": str(found / "libpenstock.so.0"), "LD_LIBRARY_PATH": str(found)}
    environment = rig.preloaded(PENSTOCK_RUN_REPORT=str(report), GFORTRAN_UNFORMATTED_BUFFER_SIZE="1", **more)
    done = rig.plain(rig.built("gpu_fortran"), how, memory, tmp_path / "file", BYTES >> 20, env=environment)
    assert (done.code, done.err) == (0, "")
    rounds = [line.split() for line in done.out.splitlines()]
    assert [(int(row[0]), int(row[4])) for row in rounds] == [(BYTES, 0)] * 4  # none of the numbers is wrong
    rows = json.loads(report.read_text())["files"]
    for direction in ("read", "written"):
        assert sum(row[direction]["gpu_bytes"] for row in rows) == 4 * BYTES


def test_without_the_library_a_device_pointer_is_a_bad_address(tmp_path: Path) -> None:
    found = {"LD_LIBRARY_PATH": str(program().parent)}
    done = rig.plain(program(), "posix", "device", tmp_path / "file", env=os.environ | found)
    assert done.code == 1 and "Bad address" in done.err


def test_files_of_the_engine_are_none_of_the_program(tmp_path: Path) -> None:
    _, report = run("posix", "device", tmp_path / "file")
    assert report["files_opened"] == 3  # the program's own: to write, to check, to read


PYTHON = """
import ctypes, os, sys
import numpy as np
cuda = ctypes.CDLL("libcuda.so.1")
cuda.fake_allocate.restype = cuda.fake_reach.restype = ctypes.c_void_p
COUNT, name = 12 << 20, sys.argv[2]
place = cuda.fake_allocate(ctypes.c_size_t(COUNT), int(sys.argv[1] == "managed"))
reach = (ctypes.c_ubyte * COUNT).from_address(cuda.fake_reach(ctypes.c_void_p(place)))
seen, array = np.frombuffer(reach, np.uint8), np.frombuffer((ctypes.c_ubyte * COUNT).from_address(place), np.uint8)
data = memoryview(array)  # of memory that the CPU may not touch
wanted = np.arange(COUNT // 4, dtype=np.uint32).view(np.uint8)
for buffering in (0, -1):
    seen[:] = wanted
    with open(name, "wb", buffering) as file:
        file.write(data)
    array.tofile(name + ".array")
    assert np.array_equal(np.fromfile(name, np.uint8), wanted)
    assert np.array_equal(np.fromfile(name + ".array", np.uint8), wanted)
    seen[:] = 0
    with open(name, "rb", buffering) as file:
        assert file.readinto(data) == COUNT and np.array_equal(seen, wanted)
        seen[:] = 0
        assert os.preadv(file.fileno(), [data], 0) == COUNT and np.array_equal(seen, wanted)
"""


@pytest.mark.parametrize("memory", ["device", "managed"])
def test_files_and_arrays_of_python_move_memory_of_a_gpu(memory: str, tmp_path: Path) -> None:
    found, report = program().parent, tmp_path / "report.json"
    words = (sys.executable, "-c", PYTHON, memory, tmp_path / "file")
    libraries = {"LD_LIBRARY_PATH": str(found)}
    if memory == "device":
        assert "Bad address" in rig.plain(*words, env=os.environ | libraries).err
    more = libraries | {"PENSTOCK_RUN_LIBRARY": str(found / "libpenstock.so.0"), "PENSTOCK_RUN_REPORT": str(report)}
    done = rig.plain(*words, env=rig.preloaded(**more))
    assert (done.code, done.err) == (0, "")
    rows = json.loads(report.read_text())["files"]
    moved = {Path(row["name"]).name: [row[way].get("gpu_bytes", 0) for way in ("written", "read")] for row in rows}
    assert moved == {"file": [2 * BYTES, 4 * BYTES], "file.array": [2 * BYTES, 0]}


def test_a_program_without_memory_of_a_gpu_gets_neither_cuda_nor_the_engine(tmp_path: Path) -> None:
    found = program().parent  # both could be loaded by their names
    text = "import sys; open(sys.argv[1], 'wb').write(bytes(12 << 20)); print(open('/proc/self/maps').read())"
    more = {"PENSTOCK_RUN_LIBRARY": str(found / "libpenstock.so.0"), "LD_LIBRARY_PATH": str(found)}
    done = rig.plain(sys.executable, "-c", text, tmp_path / "file", env=rig.preloaded(**more))
    assert done.code == 0 and rig.LIBRARY.name in done.out
    assert "libcuda" not in done.out and "libpenstock.so" not in done.out


def test_writes_that_wait_for_the_disk_go_by_the_programs_own_descriptor(tmp_path: Path) -> None:
    _, report = run("synchronous", "device", tmp_path / "file")
    written = report["files"][0]["written"]
    assert (written["gpu_bytes"], written["gpu_by_host_bytes"]) == (0, 2 * BYTES)
    _, report = run("synchronous", "managed", tmp_path / "file")
    assert "gpu_bytes" not in report["files"][0]["written"]


@pytest.mark.parametrize("case", ["fails", "stream fails"])
@pytest.mark.parametrize(
    ("what", "memory", "says"),
    [
        ("context", "device", "-1 Bad address"),
        ("context", "managed", f"{BYTES}"),
        ("open", "device", f"{BYTES}"),
        ("device", "device", f"{BYTES}"),
        ("device", "managed", f"{BYTES}"),
        ("space", "device", "-1 No space left on device"),
        ("space", "managed", "-1 No space left on device"),
        ("quota", "device", "-1 Disk quota exceeded"),
        ("limit", "managed", "-1 File too large"),
        ("cufile", "device", "-1 Input/output error"),
    ],
)
def test_where_the_engine_fails_another_way_is_taken_or_the_program_is_told(
    what: str, memory: str, says: str, case: str, tmp_path: Path
) -> None:
    done, _ = run(case, memory, tmp_path / "file", FAKE_ENGINE=what)
    assert (done.code, done.out.strip()) == (0, says)


def test_what_goes_by_the_host_is_counted_apart(tmp_path: Path) -> None:
    _, report = run("appends", "device", tmp_path / "file")
    written = report["files"][0]["written"]
    assert written["gpu_by_host_bytes"] == BYTES and written["gpu_bytes"] == 0
    assert written["why"] == "memory of a GPU"
