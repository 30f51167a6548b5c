"""How decoding on the host's cores ends: done, cancelled, out of time, damaged, or left to transfers.

Each way of reading is tried: the threads that decode read too, or transfers read before them.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core
from penstock.formats import pending as pending_module
from penstock.formats.reading import execution, plan

h5py = pytest.importorskip("h5py")


def same(found: Any, wanted: np.ndarray) -> bool:
    given = np.asarray(found)
    return bool(given.dtype == wanted.dtype and given.shape == wanted.shape and (given == wanted).all())


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of batches that take some time each."""
    data = np.cumsum(np.random.default_rng(1).integers(-9, 9, 1 << 20)).astype("f8")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(1 << 13,), compression="gzip", shuffle=True)
    monkeypatch.setattr(plan, "CORES_BYTES", 1 << 19)
    monkeypatch.setattr(execution, "_READ_AT_ONCE", 1 << 19)
    monkeypatch.setattr(pending_module, "INLINE_BYTES", 0)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        yield file, data


WAYS = [{}, {"path": "buffered"}]  # the threads that decode read too; transfers read before them


@pytest.mark.parametrize("options", WAYS)
def test_batches_follow_each_other(large: Any, options: Any) -> None:
    file, data = large
    assert same(file["x"].start_read(**options).result(), data)  # read() of 8 MiB makes no batches
    counts = file.evidence()["formats"]
    assert counts["batches"] == 16
    assert counts["decoders"] == {"host by libdeflate": data.nbytes}
    assert 0 < counts["range_bytes"] < data.nbytes
    assert counts["staged_bytes"] == counts["range_bytes"]
    assert 0 < counts["scratch_peak_bytes"] < data.nbytes
    assert file.evidence()["path"] == "buffered"


def test_what_is_not_in_the_page_cache_is_left_to_transfers(large: Any, tmp_path: Path) -> None:
    file, data = large
    file.close()  # a mapping would keep its pages
    with (tmp_path / "x.h5").open("rb") as plain:
        os.fsync(plain.fileno())
        os.posix_fadvise(plain.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with penstock.open(tmp_path / "x.h5", device="host") as cold:
        first = data.size // 4 * 3  # what says where the chunks are lies before
        assert same(cold["x"][first:], data[first:])


def slowed(monkeypatch: pytest.MonkeyPatch, until: float = 0.0) -> list[float]:
    """Each batch takes 50 ms, or until that time; when each began."""
    began: list[float] = []

    def slow(function: Any) -> Any:
        def run(*what: Any) -> Any:
            began.append(time.monotonic())
            time.sleep(max(0.05, until - began[-1]))
            return function(*what)

        return run

    for name in ("decode", "read"):
        monkeypatch.setattr(execution.cores, name, slow(getattr(execution.cores, name)))
    return began


@pytest.mark.parametrize("options", WAYS)
def test_a_cancelled_read_ends_within_a_batch(large: Any, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = large
    began = slowed(monkeypatch)
    pending = file["x"].start_read(**options)
    while len(began) < 3:
        time.sleep(0.001)
    pending.cancel()
    with pytest.raises(penstock.Error) as caught:
        pending.result()
    assert caught.value.code == "cancelled"
    assert len(began) <= 4


@pytest.mark.parametrize("options", WAYS)
def test_a_time_limit_ends_decoding(large: Any, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file, data = large
    limit_s = 1.5  # to come to the first batch, which takes until it is over
    began = slowed(monkeypatch, until=time.monotonic() + limit_s + 0.05)
    with pytest.raises(penstock.Error, match="the deadline passed") as caught:
        file["x"].read(timeout_s=limit_s, **options)
    assert caught.value.code == "timed_out"
    assert 0 < len(began) < 16
    assert same(file["x"].read(timeout_s=60, **options), data)


def test_what_a_disk_still_has_to_give_is_read_by_transfers(large: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first part says that it waited, with one chunk done."""
    file, data = large
    asked, read = [], _core.read_chunks

    def waiting(context: Any, pipeline: Any, source: Any, target: Any, *rest: Any) -> Any:
        asked.append(len(source[1]))
        first = (target[0], target[1][:1], *target[2:])
        done, _, row, fault = read(context, pipeline, (source[0], source[1][:1], source[2]), first, *rest)
        return done + bytes(len(source[1]) - 1), True, row, fault

    monkeypatch.setattr(_core, "read_chunks", waiting)
    assert same(file["x"].start_read().result(), data)
    counts = file.evidence()["formats"]
    assert len(asked) == 1
    assert counts["decoders"] == {"host by libdeflate": data.nbytes}
    assert counts["batches"] > 2
    assert file.evidence()["paths"][0]["bytes"] == counts["range_bytes"]


def test_the_core_stops_between_two_chunks() -> None:
    context = _core.Context(device="host")
    pipeline, stop = _core.make_pipeline([("shuffle", [8])], 80), _core.Stop()
    source, to = np.zeros(80, np.uint8), np.zeros(160, np.uint8)
    streams = np.array([[0, 80, 0], [0, 80, 0]], np.int64)
    boxes = np.array([[0, 0, 10, 8, 8], [80, 0, 10, 8, 8]], np.int64)
    assert _core.decode_chunks(context, pipeline, (source, streams), (to, boxes, 8), 0, stop) == (2, -1, "")
    assert _core.decode_chunks(context, pipeline, (source, streams), (to, boxes, 8), 0, stop, 0.0) == (0, -1, "")
    stop.stop()
    assert _core.decode_chunks(context, pipeline, (source, streams), (to, boxes, 8), 0, stop) == (0, -1, "")


def test_tables_that_reach_outside_are_refused() -> None:
    context = _core.Context(device="host")
    pipeline, stop = _core.make_pipeline([], 80), _core.Stop()
    source, to = np.zeros(80, np.uint8), np.zeros(80, np.uint8)
    good = ([0, 80, 0], [0, 0, 10, 8, 8])
    for stream, box in (
        ([1, 80, 0], good[1]),
        ([-1, 80, 0], good[1]),
        (good[0], [8, 0, 10, 8, 8]),
        (good[0], [0, 8, 10, 8, 8]),
        (good[0], [0, 0, 10, 8, 9]),
        ([0, 80], good[1]),
    ):
        tables = np.array([stream], np.int64), np.array([box], np.int64)
        with pytest.raises(penstock.Error) as caught:
            _core.decode_chunks(context, pipeline, (source, tables[0]), (to, tables[1], 8), 0, stop)
        assert caught.value.code == "invalid_argument"


def test_threads_share_a_file(large: Any) -> None:
    file, data = large
    wrong: list[int] = []

    def read(number: int) -> None:
        for _ in range(3):
            if not same(file["x"][number * 1000 :], data[number * 1000 :]):
                wrong.append(number)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_a_gpu_gets_its_elements_through_pinned_memory(large: Any) -> None:
    """The way of a device that the host cannot write to, on the emulated one."""
    file, data = large
    file._file._mover.emulated = False
    assert same(file["x"].read(np.s_[100:900_000:7], decode="host"), data[100:900_000:7])
    assert same(file["x"].read(np.s_[::-1], decode="host"), data[::-1])
    assert set(file.evidence()["formats"]["decoders"]) == {"host by libdeflate"}


def test_a_chunk_that_is_not_in_the_page_cache_leaves_no_other_to_a_transfer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.random.default_rng(1).integers(0, 1000, (64, 1 << 14)).astype("i4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", data=data, chunks=(1, 1 << 14), compression="gzip")
        place = x.id.get_chunk_info(40)
    with (tmp_path / "x.h5").open("rb") as plain:
        os.fsync(plain.fileno())
        os.posix_fadvise(plain.fileno(), place.byte_offset, place.size, os.POSIX_FADV_DONTNEED)
    decode, transferred = execution.cores.decode, []

    def counted(mover: Any, streams: Any, *rest: Any) -> bool:
        transferred.append(streams.packed.count)
        return decode(mover, streams, *rest)

    monkeypatch.setattr(execution.cores, "decode", counted)
    with penstock.open(tmp_path / "x.h5", device="host") as cold:
        assert same(cold["x"].start_read().result(), data)
        assert cold.evidence()["formats"]["decoders"] == {"host by libdeflate": data.nbytes}
    assert sum(transferred) <= 3, "its pages are its neighbours' too"
