"""A file whose server does not answer: deadlines hold, cancel() and Ctrl-C take effect, nothing waits at the end."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from faulty_fs import FaultyFs, faulty_fs

import penstock
from penstock.cli import PATIENCE_S

PATHS = ("auto", "buffered", "direct", "uring", "uring-buffered", "aio", "mmap")
TIMEOUT_S = 0.2
SOON_S = 5.0  # what takes a tenth of it on an idle machine; without an answer it would take for ever
BYTES = 8 << 20


class Stuck:
    """Open files whose reads hang from now on."""

    def __init__(self, fs: FaultyFs, path: str, bytes: int) -> None:
        self.fs = fs
        (fs.backing / "x.bin").write_bytes(bytes * b"a")
        self.context = penstock.Context("host", path=path)
        self.file = self.context.open(fs.path / "x.bin")
        self.fault = fs.hang("read")


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[FaultyFs]:
    with faulty_fs(tmp_path) as fs:
        yield fs


def seconds(begun: float) -> float:
    return time.monotonic() - begun


@pytest.mark.parametrize("bytes", [4096, BYTES])
@pytest.mark.parametrize("memory", ["buffer", "array"])
@pytest.mark.parametrize("path", PATHS)
def test_deadlines_and_cancel_hold(fs: FaultyFs, path: str, memory: str, bytes: int) -> None:
    stuck = Stuck(fs, path, bytes)
    file = stuck.file
    into = stuck.context.allocate(bytes) if memory == "buffer" else np.zeros(bytes, np.uint8)
    try:
        begun = time.monotonic()
        with pytest.raises(penstock.Error) as caught:
            file.read(into, timeout_s=TIMEOUT_S)
        assert caught.value.code == "timed_out"
        assert caught.value.file == str(fs.path / "x.bin")
        late = file.start_read(into, timeout_s=TIMEOUT_S)
        with pytest.raises(penstock.Error) as caught:
            late.result()
        assert caught.value.code == "timed_out"
        off = file.start_read(into)
        off.cancel()
        with pytest.raises(penstock.Error) as caught:
            off.result()
        assert caught.value.code == "cancelled"
        del late, off, file, caught
        stuck.file.abandon()
        del stuck.file, stuck.context
        assert seconds(begun) < SOON_S
    finally:
        stuck.fault.remove()
        fs.release()


@pytest.mark.parametrize("suffix", ["bin", "npy"])
def test_load_ends_at_its_deadline(fs: FaultyFs, suffix: str) -> None:
    (fs.backing / "x.bin").write_bytes(BYTES * b"a")
    np.save(fs.backing / "x.npy", np.zeros(BYTES, np.uint8))
    if suffix == "npy":
        data = penstock.open(fs.path / "x.npy", device="host")["data"]
        data[:1]
        fault = fs.hang("read")
        work = data.read
    else:
        # Opening has no deadline: it reads the first bytes and tries O_DIRECT, 2 MiB at most with what the kernel adds.
        fault = fs.hang("read", after_bytes=BYTES // 2)

        def work(**options: float) -> object:
            return penstock.load(fs.path / "x.bin", "host", **options)

    begun = time.monotonic()
    try:
        with pytest.raises(penstock.Error) as caught:
            work(timeout_s=TIMEOUT_S)
        assert caught.value.code == "timed_out"
        assert seconds(begun) < SOON_S
    finally:
        fault.remove()
        fs.release()


def compressed(folder: Path, suffix: str) -> None:
    """A file x.h5 or x.zarr whose dataset a the host decodes, in eight chunks; x.zarr by the library of the format."""
    bytes = np.random.default_rng(1).integers(0, 256, BYTES, np.uint8)
    if suffix == "h5":
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("a", data=bytes, chunks=(BYTES // 8,), compression="gzip", compression_opts=1)
    else:
        zarr = pytest.importorskip("zarr")
        group = zarr.open_group(str(folder / "x.zarr"), mode="w")
        order = zarr.codecs.TransposeCodec(order=(1, 0, 2))  # neither C nor Fortran: only the library decodes it
        shape = (BYTES // 64, 8, 8)
        array = group.create_array("a", shape=shape, chunks=(shape[0] // 8, 8, 8), dtype="u1", filters=[order])
        array[:] = bytes.reshape(shape)


@pytest.mark.parametrize(("suffix", "code"), [("h5", "timed_out"), ("h5", "cancelled"), ("zarr", "timed_out")])
def test_deadlines_and_cancel_hold_where_the_host_decodes(fs: FaultyFs, suffix: str, code: str) -> None:
    compressed(fs.backing, suffix)
    file = penstock.open(fs.path / f"x.{suffix}", device="host")
    data = file["a"]
    fault = fs.hang("read", after_bytes=BYTES // 4 if suffix == "h5" else 0)  # not at what says where chunks are
    try:
        begun = time.monotonic()
        under_way = data.start_read(timeout_s=TIMEOUT_S if code == "timed_out" else None)
        if code == "cancelled":
            under_way.cancel()
        with pytest.raises(penstock.Error) as caught:
            under_way.result()
        assert caught.value.code == code
        if suffix == "zarr":  # others go on: the library of HDF5 does one thing at a time
            last = data.start_read()
            last.cancel()
            with pytest.raises(penstock.Error, match="cancelled"):
                last.result()
            file.close()
        assert seconds(begun) < SOON_S
    finally:
        fault.remove()
        fs.release()
        file.close()


def test_memory_of_others_is_kept_until_nothing_is_written_there(fs: FaultyFs) -> None:
    stuck = Stuck(fs, "buffered", BYTES)
    array = np.zeros(BYTES, np.uint8)
    kept = weakref.ref(array)
    try:
        with pytest.raises(penstock.Error):
            stuck.file.read(array, timeout_s=TIMEOUT_S)
        del array
        gc.collect()
        assert kept() is not None
    finally:
        stuck.fault.remove()
        fs.release()
    limit = time.monotonic() + 60
    while kept() is not None:
        assert time.monotonic() < limit
        time.sleep(0.01)


READS = {
    "a large read": "file.read(large)",
    "a transfer waited for": "file.start_read(large).wait()",
    "the result of a transfer": "file.start_read(large).result()",
    "a read into memory of others": "file.read(np.empty(8 << 20, np.uint8))",
    "many ranges": "context.start_read([(file, at, large.slice(at, 1 << 20)) for at in (0, 4 << 20)]).result()",
    "the close of a file": "file.start_read(large), file.close()",
    "a dataset": "data[:]",
    "a dataset in pieces": "data[::2]",
    "a compressed dataset": "packed[:]",
}

PROGRAM = """
import sys, time
import numpy as np
import penstock
name, path, work = sys.argv[1:]
code = compile(work, "work", "exec")  # eval() of a text marks the process as ended by Ctrl-C
context = penstock.Context("host", path=path)
file = context.open(name)
large = context.allocate(8 << 20)
data = penstock.open(name, dtype="u1", shape=-1, context=context)["data"]
data[:1]  # its file is open from now on
packed = penstock.open(name.replace("x.bin", "x.zarr"), context=context)["a"]
print("open", flush=True)
sys.stdin.readline()
try:
    exec(code)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@contextlib.contextmanager
def at_last(act: Callable[[], None], after_s: float) -> Iterator[None]:
    """So that a test which fails does not hang itself."""
    timer = threading.Timer(after_s, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def wait_for_hanging(fs: FaultyFs, requests: int = 1) -> None:
    limit = time.monotonic() + 60
    while fs.hanging() < requests:
        assert time.monotonic() < limit, "no read came"
        time.sleep(0.005)


@pytest.mark.parametrize("work", READS)
@pytest.mark.parametrize("path", ["auto", "uring-buffered"])
def test_ctrl_c_leaves_and_the_interpreter_ends(fs: FaultyFs, work: str, path: str) -> None:
    (fs.backing / "x.bin").write_bytes(BYTES * b"a")
    compressed(fs.backing, "zarr")
    program = [sys.executable, "-c", PROGRAM, str(fs.path / "x.bin"), path, READS[work]]
    with (
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
        at_last(child.kill, 60),
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        fault = fs.hang("read")
        try:
            child.stdin.write("\n")
            child.stdin.flush()
            wait_for_hanging(fs)
            begun = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            told = seconds(begun)
            assert child.wait(20) == 0
            assert told < SOON_S
            assert seconds(begun) < SOON_S
        finally:
            fault.remove()
            child.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("path", ["auto", "buffered", "uring-buffered", "mmap"])
def test_the_command_ends_with_its_code(fs: FaultyFs, path: str, number: int, code: int) -> None:
    (fs.backing / "x.bin").write_bytes(BYTES * b"a")
    fault = fs.hang("read", after_bytes=BYTES // 2)
    command = [sys.executable, "-m", "penstock", "read", str(fs.path / "x.bin"), "--to", "host", "--path", path]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child,
        at_last(child.kill, 60),
    ):
        try:
            wait_for_hanging(fs)
            begun = time.monotonic()
            child.send_signal(number)
            assert child.wait(30) == code
            assert seconds(begun) < SOON_S
        finally:
            fault.remove()
            fs.release()


IN_THE_MAIN_THREAD = {"write": ("doctor", "{}"), "create,tmpfile,mknod": ("write", "{}/y.bin", "--bytes", "4KiB")}


@pytest.mark.parametrize("signals", [1, 2])
def test_the_command_leaves_a_system_call_that_no_signal_ends(fs: FaultyFs, signals: int) -> None:
    """The kernel gives the signal to the main thread, which does not come back to take it."""
    faults, children = [], []
    with contextlib.ExitStack() as stack:
        for operations, words in IN_THE_MAIN_THREAD.items():
            faults.append(fs.hang(operations))
            command = [sys.executable, "-m", "penstock", *(word.format(fs.path) for word in words)]
            child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            stack.enter_context(at_last(child.kill, 60))
            children.append(child)
            wait_for_hanging(fs, len(children))
        try:
            begun = time.monotonic()
            for child in children:
                child.send_signal(signal.SIGINT)
            if signals == 2:
                for child in children:
                    again_until_the_end(child)
            assert [child.wait(30) for child in children] == [130, 130]
            assert seconds(begun) < (PATIENCE_S if signals == 2 else PATIENCE_S + SOON_S)
        finally:
            for fault in faults:
                fault.remove()
            fs.release()


def again_until_the_end(child: subprocess.Popen[bytes]) -> None:
    """A user who presses Ctrl-C again and again: signals that still wait are one for the kernel."""
    for _ in range(100):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
            return
        child.send_signal(signal.SIGINT)
