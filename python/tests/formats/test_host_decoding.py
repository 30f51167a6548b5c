"""Decoding by the format's library goes on in the background, part by part: what is shown of it, and how it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.formats import pending as pending_module
from penstock.formats.hdf5.metadata import Metadata
from penstock.formats.reading import aside, plan
from penstock.formats.reading.mover import Mover

h5py = pytest.importorskip("h5py")

ROWS, PARTS, PART_S = 40_000, 20, 0.03
CONTENT = np.arange(float(ROWS))


@pytest.fixture(params=["h5", "zarr"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of 20 parts, each of which takes 30 ms to decode: more than a caller makes himself."""
    path = tmp_path / f"x.{request.param}"
    _write(path)
    monkeypatch.setattr(plan, "DECODE_BYTES", CONTENT.nbytes // PARTS)
    monkeypatch.setattr(Metadata, "part_bytes", CONTENT.nbytes // PARTS)
    monkeypatch.setattr(pending_module, "INLINE_BYTES", CONTENT.nbytes // PARTS)
    monkeypatch.setattr(Mover, "pipeline", lambda *_: "")  # nothing for the cores
    with penstock.open(path, device="host") as opened:
        opened._file._mover.decode = _Slow(opened._file._mover.decode)
        yield opened


def _write(path: Path) -> None:
    if path.suffix == ".h5":
        with h5py.File(path, "w") as made:
            made.create_dataset("x", data=CONTENT, chunks=(ROWS // PARTS,), compression="gzip")
        return
    zarr = pytest.importorskip("zarr")
    packer = zarr.codecs.GzipCodec()
    array = zarr.create_group(path).create_array(
        "x", shape=(ROWS,), dtype="f8", chunks=(ROWS // PARTS,), compressors=packer
    )
    array[...] = CONTENT


class _Slow:
    """The decoder of the format, and which threads asked it for how many parts."""

    def __init__(self, decode: Callable[..., Any]) -> None:
        self.decode, self.threads = decode, []
        self.interrupt_at = 0  # the part that sends Ctrl-C, and goes on when the main thread has taken it
        self.taken = threading.Event()

    def __call__(self, *what: Any) -> Any:
        self.threads.append(threading.current_thread())
        if len(self.threads) == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
            if threading.current_thread() is not threading.main_thread():
                assert self.taken.wait(20)
        time.sleep(PART_S)
        return self.decode(*what)


def parts(file: penstock.DataFile) -> int:
    return len(file._file._mover.decode.threads)


def interrupt_after(seconds: float) -> None:
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def memory(file: penstock.DataFile) -> penstock.Array:
    return penstock.Array(file.context.allocate(CONTENT.nbytes), "float64", (ROWS,))


@pytest.mark.parametrize("start", [lambda file: file["x"].start_read(), lambda file: file.read_many(["x"])])
def test_nothing_is_decoded_before_a_start_returns(file: penstock.DataFile, start: Callable[..., Any]) -> None:
    began = time.monotonic()
    pending = start(file)
    assert time.monotonic() - began < PARTS * PART_S / 2
    assert not pending.done
    found = pending.result()
    assert np.array_equal((found["x"] if isinstance(found, dict) else found).to_numpy(), CONTENT)
    assert parts(file) == PARTS
    assert threading.main_thread() not in file._file._mover.decode.threads


@pytest.mark.parametrize("background", [True, False])
def test_progress_grows_while_the_host_decodes(file: penstock.DataFile, background: bool) -> None:
    seen: list[tuple[int, int]] = []
    note = lambda *progress: seen.append(progress)  # noqa: E731
    if background:
        file["x"].start_read().wait(progress=note)
    else:
        file["x"].read(progress=note)
    done = [one for one, _ in seen]
    assert len(set(done)) >= 4, "of 0.6 s in all"
    assert done == sorted(done)
    assert seen[-1] == (CONTENT.nbytes, CONTENT.nbytes)


def test_a_cancelled_decoding_ends_within_a_part(file: penstock.DataFile) -> None:
    pending = file["x"].start_read()
    while parts(file) < 3:
        time.sleep(0.001)
    pending.cancel()
    with pytest.raises(penstock.Error) as caught:
        pending.result()
    assert caught.value.code == "cancelled"
    assert parts(file) <= 5


@pytest.mark.parametrize("background", [True, False])
def test_a_time_limit_ends_decoding(file: penstock.DataFile, background: bool) -> None:
    with pytest.raises(penstock.Error, match="the deadline passed") as caught:
        file["x"].start_read(timeout_s=0.1).result() if background else file["x"].read(timeout_s=0.1)
    assert caught.value.code == "timed_out"
    assert caught.value.file == file.name
    assert 0 < parts(file) < PARTS
    assert np.array_equal(file["x"].read(timeout_s=60).to_numpy(), CONTENT)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "soon"])
def test_a_time_limit_that_is_none_is_refused(file: penstock.DataFile, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="timeout_s"):
        file["x"].read(timeout_s=wrong)


@pytest.mark.parametrize("how", ["read", "result", "wait"])
def test_an_interrupt_ends_decoding_and_nothing_is_left(
    file: penstock.DataFile, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "_PATIENCE_S", 20)  # of a machine that is busy with other things
    out, decode = memory(file), file._file._mover.decode
    np.asarray(out)[...] = -1
    decode.interrupt_at = 5

    def take(number: int, frame: Any) -> None:
        decode.taken.set()
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, take)
    try:
        with pytest.raises(KeyboardInterrupt):
            file["x"].read(out=out) if how == "read" else getattr(file["x"].start_read(out=out), how)()
    finally:
        signal.signal(signal.SIGINT, before)
    made, held = parts(file), out.to_numpy()
    assert decode.interrupt_at <= made <= decode.interrupt_at + 1
    time.sleep(3 * PART_S)
    assert parts(file) == made
    assert np.array_equal(held, np.asarray(out))
    placed = np.flatnonzero(held == CONTENT).size  # the part that was being made may be placed or not
    assert made - 1 <= placed / (ROWS // PARTS) <= made
    assert np.count_nonzero(held == -1) == ROWS - placed


@pytest.mark.parametrize("by_library", [True, False])
def test_an_interrupt_inside_of_a_decoder_is_not_lost(
    by_library: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A little of a large chunk, which the caller decodes himself."""
    if by_library:
        monkeypatch.setattr(Mover, "pipeline", lambda *_: "")
    rows = 32 << 20
    with h5py.File(tmp_path / "x.h5", "w") as made:
        made.create_dataset("x", (rows,), "f8", chunks=(rows,), compression="gzip", compression_opts=1)[:8] = 1
    with penstock.open(tmp_path / "x.h5", device="host") as opened:
        dataset = opened["x"]
        interrupt_after(0.1)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            while time.monotonic() < began + 5:
                dataset[:8]


def test_little_is_decoded_without_a_thread(file: penstock.DataFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", None)
    part = slice(0, ROWS // PARTS)
    assert np.array_equal(file["x"][part].to_numpy(), CONTENT[part])
    assert file._file._mover.decode.threads == [threading.main_thread()]


def test_where_the_system_has_no_thread_left_the_one_who_waits_decodes(
    file: penstock.DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert np.array_equal(file["x"].read().to_numpy(), CONTENT)
    pending = file["x"].start_read()
    assert not pending.done
    assert np.array_equal(pending.result().to_numpy(), CONTENT)


def test_others_are_answered_while_the_host_decodes(file: penstock.DataFile) -> None:
    pending = file["x"].start_read()
    assert file["x"].shape == (ROWS,)
    assert list(file) == ["x"]
    assert file["x"][:8].shape == (8,)
    assert not pending.done
    pending.result()


@pytest.mark.parametrize("abandon", [False, True])
def test_closing_ends_the_thread(file: penstock.DataFile, abandon: bool) -> None:
    pending = file["x"].start_read()
    file.abandon() if abandon else file.close()
    assert pending.done
    assert not [one for one in threading.enumerate() if one.name == "penstock-pending"]
    assert parts(file) == PARTS or abandon


def test_a_forked_child_is_refused_while_the_host_decodes(file: penstock.DataFile) -> None:
    """The thread is not there, and a lock that it held is never let go."""
    pending = file["x"].start_read()
    while not parts(file):
        time.sleep(0.001)
    file._file._source.lock.acquire()
    child = os.fork()
    if not child:
        os._exit(_refused(pending.result) + 2 * _refused(lambda: file["x"].read()))
    file._file._source.lock.release()
    limit = time.monotonic() + 10
    found = (0, 0)
    while not found[0] and time.monotonic() < limit:
        found = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not found[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert found == (child, 3 << 8)
    assert np.array_equal(pending.result().to_numpy(), CONTENT)


def _refused(use: Callable[[], Any]) -> bool:
    try:
        use()
    except penstock.Error as error:
        return "fork" in str(error)
    return False


def test_threads_that_nobody_closed_end_with_what_they_worked_for() -> None:
    before = set(threading.enumerate())
    threads, together = aside.Threads(3, "decoders"), threading.Barrier(3)
    threads.map(lambda _row: together.wait(60), 3)
    mine = set(threading.enumerate()) - before
    assert len(mine) == 2
    del threads
    for one in mine:
        one.join(20)
        assert not one.is_alive()
