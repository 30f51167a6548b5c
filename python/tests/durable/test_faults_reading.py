"""A disk that fails, brings less than it was asked for, or never answers, under every reader: the right values, or
penstock.Error; never other values, never an end of the process, and with a deadline never a wait without end."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from faulty_fs import FaultyFs, faulty_fs
from writers_rig import COUNT, WRITERS, context_by, values

import penstock as ps

h5py = pytest.importorskip("h5py")
for module in ("netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)

Reader = Callable[[Path], np.ndarray]
MODES = {"kept": {}, "direct": {"direct": True}}
MOST_STEPS = 6  # reads of a reader that are made to fail, one after the other


def by_core(path_name: str) -> Reader:
    def read(path: Path) -> np.ndarray:
        found = np.zeros(COUNT, "<f4")
        with context_by(path_name).open(path) as file:
            if file.read(found).bytes != found.nbytes:
                raise ps.Error(code="end_of_file", cause="it says that it read less")
        return found

    return read


def by_load(path: Path) -> np.ndarray:
    found = ps.load(path, "host")
    return np.asarray(found["x"] if isinstance(found, dict) else found)


def by_bytes(path: Path) -> np.ndarray:
    return np.frombuffer(bytes(np.asarray(ps.load(path, "host"))), "<f4")


def by_raw(path: Path) -> np.ndarray:
    return np.asarray(ps.load(path, "host", dtype="<f4"))


def by_gather(path: Path) -> np.ndarray:
    with ps.gpu.open(path, "<f4", device="host", cache_bytes="1 MiB", timeout=5) as stored:
        return np.asarray(stored.gather(np.arange(COUNT)))


def compressed(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values(1), chunks=(500,), compression="gzip", shuffle=True)


READERS: dict[str, tuple[str, Reader]] = {
    **{name: (WRITERS[name].file, by_core(name)) for name in ("buffered", "uring-buffered", "mmap", "auto", "direct")},
    **{name: (WRITERS[name].file, by_load) for name in ("npy", "safetensors", "h5", "nc4", "nc3", "zarr")},
    "h5-parts": (WRITERS["h5-parts"].file, by_load),
    "zarr-parts": (WRITERS["zarr-parts"].file, by_load),
    "bytes": (WRITERS["bytes"].file, by_bytes),
    "raw": (WRITERS["bytes"].file, by_raw),
    "gather": (WRITERS["bytes"].file, by_gather),
    "h5-gzip": ("z.h5", by_load),
}


def put(path: Path, name: str) -> None:
    if name == "h5-gzip":
        compressed(path)
        return
    writer = WRITERS["bytes" if name in ("raw", "gather") else name]
    writer.write(path, 1, False)


@pytest.fixture(scope="module", params=MODES)
def fs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyFs]:
    with faulty_fs(tmp_path_factory.mktemp("reading"), **MODES[request.param]) as mounted:
        for name, (file, _) in READERS.items():
            (mounted.backing / name).mkdir()
            put(mounted.backing / name / file, name)  # behind its back: it has kept nothing
        yield mounted


def wrong_with(fs: FaultyFs, name: str) -> str:
    """What is wrong with the end of one read, or ''."""
    file, read = READERS[name]
    try:
        found = read(fs.path / name / file)
    except ps.Error as error:
        return "" if str(error) else "an Error without words"
    except Exception as error:
        return f"{type(error).__name__} in place of penstock.Error: {error}"
    return "" if np.array_equal(found.ravel(), values(1)) else "wrong values and no error"


@pytest.mark.parametrize("name", READERS)
def test_each_read_may_fail_once_or_for_ever(fs: FaultyFs, name: str) -> None:
    before = fs.counts().get("read", 0)
    assert not wrong_with(fs, name)
    reads = fs.counts().get("read", 0) - before
    if reads == 0 and name == "mmap":
        with pytest.raises(ps.Error):
            READERS[name][1](fs.path / name / READERS[name][0])
        pytest.skip("Linux maps no file whose FUSE server wants direct I/O")
    assert reads > 0, "nothing was read from the file system"
    wrong = []
    for number in range(min(reads, MOST_STEPS)):
        for times in (1, 1 << 40):
            fault = fs.fail("read", errno.EIO, skip=number, times=times)
            found = wrong_with(fs, name)
            assert fault.fired or reads > 1
            fault.remove()
            if found:
                wrong.append(f"read {number} of {reads}, {times} times: {found}")
    assert not wrong, "\n".join(wrong)


# Linux goes on by itself when io_uring's read of a FUSE file is short, at the place where it began, and tells the whole
# count: one request of ours, twelve reads at offset 0 (6.18). No reader can know.
BY_URING = ("uring-buffered", "gather")
NOT_SHORT = (*BY_URING, "mmap")  # which has no calls, and no file whose server wants direct I/O


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize("name", [one for one in READERS if one not in NOT_SHORT])
def test_counts_may_be_short(tmp_path_factory: pytest.TempPathFactory, name: str, most: int) -> None:
    """Once 1 byte, or 1000 bytes at most from then on: what is not kept is told as it is."""
    with faulty_fs(tmp_path_factory.mktemp("short"), direct=True) as fs:
        (fs.backing / name).mkdir()
        put(fs.backing / name / READERS[name][0], name)
        for skip in range(3):
            short = fs.short("read", most, skip=skip, times=1 if most == 1 else 1 << 40)
            assert not wrong_with(fs, name), f"after {skip} reads"
            assert short.fired or skip
            short.remove()


@pytest.mark.parametrize("operation", ["open", "getattr", "lookup", "readdir"])
@pytest.mark.parametrize("name", ["auto", "bytes", "npy", "h5", "nc4", "nc3", "zarr", "gather"])
def test_what_comes_before_reading_may_fail(fs: FaultyFs, name: str, operation: str) -> None:
    fault = fs.fail(operation, errno.EIO)
    found = wrong_with(fs, name)
    fault.remove()
    assert not found


@pytest.mark.parametrize("name", READERS)
def test_an_error_of_a_close_is_not_of_what_was_read(fs: FaultyFs, name: str) -> None:
    """It tells of writes, of anybody, that were lost."""
    file, read = READERS[name]
    try:
        read(fs.path / name / file)
    except ps.Error:
        pytest.skip("Linux maps no file whose FUSE server wants direct I/O")
    fault = fs.fail("flush", errno.EIO)
    try:
        found = read(fs.path / name / file)
        closed_by = time.monotonic() + 10  # a worker may be the last that has the file
        while not fault.fired and time.monotonic() < closed_by:
            time.sleep(0.01)
        assert fault.fired
    finally:
        fault.remove()
    assert np.array_equal(found.ravel(), values(1))


STUCK = """
import sys, time, numpy
import penstock as ps
name, path, way = sys.argv[1:]
def read():
    with ps.Context("host", profile=None, path=way) as context, context.open(path) as file:
        return file.read(numpy.zeros(3000, "f4"), timeout_s=0.5)
began = time.monotonic()
try:
    read()
    told = "an answer"
except ps.Error as error:
    told = error.code
print(told, time.monotonic() - began, flush=True)
"""
WAYS = ["auto", "buffered", "uring-buffered", "direct", "uring"]
BOUND_S = 30  # of what has half a second, on any machine: a wait without end is what is looked for


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_holds_where_the_disk_never_answers(tmp_path: Path, way: str) -> None:
    with faulty_fs(tmp_path) as fs:
        put(fs.backing / "x.bin", "bytes")
        fs.hang("read")
        command = [sys.executable, "-c", STUCK, "x", str(fs.path / "x.bin"), way]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        killer = threading.Timer(BOUND_S, child.kill)
        killer.start()
        try:
            line = child.stdout.readline() if child.stdout else ""  # its end may wait for the disk, its answer may not
            assert line, f"still waiting after {BOUND_S} s"
            assert fs.hanging() > 0, "the fault was not reached"
        finally:
            killer.cancel()
            child.kill()
            fs.release()
            child.wait()
    assert line.split()[0] == "timed_out", line
