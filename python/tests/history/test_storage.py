"""A history on a storage that is full, slow or does not answer: the model goes on, the error names step and variable,
and the steps before it are there."""

from __future__ import annotations

import contextlib
import errno
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from faulty_fs import FaultyFs, faulty_fs
from hdf5_kit import debian_tool, run_tool
from mounts import Mounted, root_only

import penstock

netCDF4 = pytest.importorskip("netCDF4")
LIMIT_S = 60
SOON_S = 5.0  # without an answer it would take for ever
COUNT = 50_000  # elements of each field of a step: 200 kB

# Writes 10 steps of two fields, whatever the history says, and prints each error.
MODEL = f"""
import sys, numpy as np, penstock, resource
path, limit, durable = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "durable"
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
history = penstock.History(path, device="host", durable=durable)
for name in ("a", "b"):
    history.define(name, ("x",), shape=({COUNT},), source_dtype="f8")
for step in range(10):
    try:
        for name in ("a", "b"):
            history.put(name, np.full({COUNT}, float(step)))
        history.end_step(step)
        history.wait()
    except penstock.Error as error:
        print(step + 1, error.code, str(error).replace(path, "FILE"))
try:
    history.close()
except penstock.Error as error:
    print("close", error.code, str(error).replace(path, "FILE"))
print("the model ended", history.facts().steps_published)
"""


def run_model(path: Path, limit: int = 0, durable: str = "") -> list[str]:
    command = [sys.executable, "-c", MODEL, str(path), str(limit), durable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_six_steps(path: Path, lines: list[str], cause: str, variable: str = "'b'") -> None:
    assert lines[-1] == "the model ended 6"
    assert [line.split()[0] for line in lines[:-1]] == ["7", "8", "9", "10", "close"]
    for line in lines[:-1]:
        assert " no_space write history FILE" in line and f"step 7, variable {variable}" in line and cause in line, line
    with netCDF4.Dataset(path) as file:
        assert (file["b"][:, -1] == np.arange(6)).all() and (file["a"][:, 0] == np.arange(6)).all()
    assert "time = 0, 1, 2, 3, 4, 5 ;" in run_tool(debian_tool("ncdump"), "-v", "time", path)


@pytest.mark.parametrize("durable", ["", "durable"])
def test_a_limit_of_file_sizes_at_step_7_leaves_six_steps(tmp_path: Path, durable: str) -> None:
    limit = 4096 + 6 * (8 * COUNT + 8) + 6 * COUNT
    check_six_steps(tmp_path / "x.nc", run_model(tmp_path / "x.nc", limit, durable), "File too large")


@root_only
def test_a_disk_full_at_step_7_leaves_six_steps(tmp_path: Path) -> None:
    size = (6 * (8 * COUNT + 8) + 6 * COUNT) // 4096 * 4096
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", f"size={size}", "none") as folder:
        check_six_steps(folder / "x.nc", run_model(folder / "x.nc"), "No space left")


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[FaultyFs]:
    with faulty_fs(tmp_path) as fs:
        yield fs


@pytest.mark.parametrize("durable", ["", "durable"])
def test_a_write_that_the_storage_refuses_is_told(fs: FaultyFs, durable: str) -> None:
    fault = fs.fail("write", errno.EIO, after_bytes=4096 + 6 * (8 * COUNT + 8) + 6 * COUNT)
    lines = run_model(fs.path / "x.nc", durable=durable)
    assert fault.fired
    assert "io_error" in lines[0] and "step 7" in lines[0] and lines[-1] == "the model ended 6", lines
    with netCDF4.Dataset(fs.backing / "x.nc") as file:
        assert (file["b"][:, -1] == np.arange(6)).all()


@pytest.mark.parametrize("durable", ["", "durable"])
def test_a_quota_used_up_at_step_7_leaves_six_steps(fs: FaultyFs, durable: str) -> None:
    fault = fs.fail("write", errno.EDQUOT, after_bytes=4096 + 6 * (8 * COUNT + 8) + 6 * COUNT)
    lines = run_model(fs.path / "x.nc", durable=durable)
    assert fault.fired
    check_six_steps(fs.backing / "x.nc", lines, "Disk quota exceeded", variable="'")


def test_room_that_a_quota_does_not_give_is_told_as_a_full_disk_is(fs: FaultyFs) -> None:
    """Where room is asked for first, as by a snapshot, nothing is left of the file."""
    fault = fs.fail("fallocate", errno.EDQUOT)
    fields = {"PartType0/Coordinates": np.zeros((200_000, 3))}
    with pytest.raises(penstock.Error, match="Disk quota exceeded") as caught:
        penstock.Snapshot(fs.path / "s.hdf5", fields, device="host").write()
    assert fault.fired and caught.value.code == "no_space" and "\n" not in str(caught.value)
    assert not list(fs.backing.iterdir())


def test_a_sync_that_fails_publishes_nothing_that_it_should_have_made_durable(fs: FaultyFs) -> None:
    fault = fs.fail("fsync", errno.EIO, name="x.nc", skip=8)
    lines = run_model(fs.path / "x.nc", durable="durable")
    assert fault.fired
    assert "Input/output error" in lines[0] and lines[-2].startswith("close io_error"), lines
    published = int(lines[-1].split()[-1])
    assert 0 < published < 10
    with netCDF4.Dataset(fs.backing / "x.nc") as file:
        assert (file["b"][:published, -1] == np.arange(published)).all()


def test_a_slow_file_makes_the_model_wait_and_facts_tell_that_apart(fs: FaultyFs) -> None:
    fs.delay("write", 20)
    with penstock.History(fs.path / "x.nc", device="host") as history:
        history.define("T", ("x",), shape=(1000,))
        for step in range(8):
            history.put("T", np.full(1000, step, "f4"))
            history.end_step(step)
        facts = history.facts()
    assert facts.wait_seconds > 0.1 > facts.put_seconds
    assert facts.steps_published >= 5


# Prints what an interrupt ended; goes on after it.
WAITS = """
import sys, numpy as np, penstock
history = penstock.History(sys.argv[1], device="host")
history.define("T", ("x",), shape=(1000,))
def interrupted(name, act):
    print(name, flush=True)
    try:
        act()
        print("not interrupted", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
history.put("T", np.full(1000, 0, "f4"))
print("begun", flush=True)
sys.stdin.readline()
history.end_step(0)
history.put("T", np.full(1000, 1, "f4"))
history.end_step(1)
interrupted("put", lambda: history.put("T", np.full(1000, 2, "f4")))
interrupted("wait", history.wait)
interrupted("close", history.close)
print("goes on", flush=True)
sys.stdin.readline()
history.put("T", np.full(1000, 2, "f4"))
history.end_step(2)
history.close()
print("closed", flush=True)
"""


@contextlib.contextmanager
def waiting(fs: FaultyFs) -> Iterator[subprocess.Popen[str]]:
    """A model whose writes hang from its first step on."""
    command = [sys.executable, "-c", WAITS, str(fs.path / "x.nc")]
    model = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield model
    finally:
        model.kill()
        model.wait()


def test_an_interrupt_ends_a_wait_and_the_history_goes_on(fs: FaultyFs) -> None:
    with waiting(fs) as model:
        assert model.stdin is not None and model.stdout is not None
        assert model.stdout.readline() == "begun\n"
        fault = fs.hang("write")
        print(file=model.stdin, flush=True)
        for name in ("put", "wait", "close"):
            assert model.stdout.readline() == f"{name}\n"
            begun = time.monotonic()
            while not fs.hanging():
                assert time.monotonic() - begun < LIMIT_S
                time.sleep(0.01)
            time.sleep(0.2)
            begun = time.monotonic()
            model.send_signal(signal.SIGINT)
            assert model.stdout.readline() == "interrupted\n"
            assert time.monotonic() - begun < SOON_S
        assert model.stdout.readline() == "goes on\n"
        fault.remove()
        fs.release()
        print(file=model.stdin, flush=True)
        assert model.stdout.readline() == "closed\n"
        assert model.wait(LIMIT_S) == 0
    with netCDF4.Dataset(fs.backing / "x.nc") as file:
        assert (file["T"][:, 5] == [0, 1, 2]).all()


def test_a_model_whose_file_does_not_answer_can_be_ended(fs: FaultyFs) -> None:
    with waiting(fs) as model:
        assert model.stdin is not None and model.stdout is not None
        assert model.stdout.readline() == "begun\n"
        fs.hang("write")
        print(file=model.stdin, flush=True)
        for line in model.stdout:
            if line == "goes on\n":
                break
            if not line.startswith("interrupted"):
                time.sleep(0.5)
                model.send_signal(signal.SIGINT)
        model.stdin.close()
        begun, interrupts = time.monotonic(), 0
        while model.poll() is None and time.monotonic() - begun < LIMIT_S:
            time.sleep(0.5)
            if model.poll() is None:
                model.send_signal(signal.SIGINT)
                interrupts += 1
        assert model.poll() is not None and interrupts <= 8


FULL_TABLE = """
import os, resource, sys, numpy as np, penstock
context = penstock.Context("host")
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
history = penstock.History(sys.argv[1], context=context)
history.define("T", ("x",), shape=(1000,))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
try:
    history.put("T", np.zeros(1000, "f4"))
except penstock.Error as error:
    print(error)
for one in taken[-12:]:
    os.close(one)
for step in range(5):
    history.put("T", np.full(1000, step, "f4"))
    history.end_step(step)
history.close()
print(history.facts().steps_published)
"""


@pytest.mark.parametrize("limit", [64, 256])
def test_without_descriptors_the_first_field_is_refused_and_later_taken(tmp_path: Path, limit: int) -> None:
    command = [sys.executable, "-c", FULL_TABLE, str(tmp_path / "x.nc"), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert "Too many open files" in first and "raise the limit of open files (ulimit -n)" in first
    assert last == "5"


FORK = """
import os, sys, numpy as np, penstock
history = penstock.History(sys.argv[1], device="host")
history.define("T", ("x",), shape=(1000,))
field = np.zeros(1000, "f4")
for step in range(3):
    history.put("T", field + step)
    history.end_step(step)
child = os.fork()
if not child:
    for act in (lambda: history.put("T", field), lambda: history.end_step(9), history.wait, history.close,
                history.facts, lambda: history.define("U", ("x",), shape=(3,))):
        try:
            act()
            print("not refused", flush=True)
        except penstock.Error as error:
            print(error.code, error.cause, flush=True)
    if sys.argv[2] == "drop":
        del history
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
history.put("T", field + 3)
history.end_step(3)
history.close()
"""


@pytest.mark.parametrize("how", ["keep", "drop"])
def test_a_forked_child_is_refused_ends_and_harms_nothing(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "x.nc"), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {"unsupported this process was forked from the one that opened the history"}
    assert len(done.stdout.splitlines()) == 6
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert (file["T"][:, 5] == np.arange(4)).all()


RACE = """
import os, sys, time, numpy as np, penstock
number = int(sys.argv[2])
history = penstock.History(sys.argv[1], device="host")
history.define("T", ("x",), shape=(1000,))
print("ready", flush=True)
sys.stdin.readline()
try:
    history.put("T", np.full(1000, number, "f4"))
except penstock.Error as error:
    print("refused", error, flush=True)
    sys.exit(0)
history.end_step(0)
history.wait()
print("wrote", flush=True)
sys.stdin.readline()
history.close()
"""
RACERS, RACES = 4, 3


@pytest.mark.parametrize("exists", [False, True])
def test_of_histories_that_begin_at_once_one_writes_and_the_others_are_told(tmp_path: Path, exists: bool) -> None:
    for race in range(RACES):
        path = tmp_path / f"{race}.nc"
        if exists:
            path.write_bytes(b"older")
        command = [sys.executable, "-c", RACE, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        all_of = [subprocess.Popen([*command, str(n)], text=True, **pipes) for n in range(RACERS)]  # type: ignore
        for one in all_of:
            assert one.stdout.readline() == "ready\n"
        for one in all_of:
            one.stdin.write("\n")
            one.stdin.flush()
        told = [one.stdout.readline() for one in all_of]
        winners = [number for number, line in enumerate(told) if line == "wrote\n"]
        assert len(winners) == 1, told
        with netCDF4.Dataset(path) as file:
            assert (file["T"][0] == winners[0]).all()
        for one in all_of:
            one.communicate("\n", timeout=LIMIT_S)
            assert one.returncode == 0
    assert all(one.suffix == ".nc" for one in tmp_path.iterdir())
