"""DataFile and Dataset as a user meets them: mapping, evidence, memory of others, waiting, closing, threads, fork."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from format_kit import same, sample, slow

import penstock
from penstock.formats.reading import record


@pytest.fixture
def content() -> dict[str, np.ndarray]:
    return {
        "fields/T": sample((20, 30), "f4"),
        "fields/deep/p": sample((7,), "i8", 2),
        "mass": sample((), "f8", 3),
        "none": sample((0, 3), "u1"),
    }


@pytest.fixture
def path(tmp_path: Path, content: dict[str, np.ndarray]) -> Path:
    penstock.save(tmp_path / "x.safetensors", content, "host")
    return tmp_path / "x.safetensors"


@pytest.fixture
def file(path: Path) -> Iterator[penstock.DataFile]:
    with penstock.open(path, device="host") as file:
        yield file


@pytest.fixture
def large(tmp_path: Path) -> Path:
    np.save(tmp_path / "large.npy", np.arange(1_000_000, dtype="f8"))
    return tmp_path / "large.npy"


def test_a_file_is_a_mapping_of_datasets(file: penstock.DataFile, content: dict[str, np.ndarray]) -> None:
    assert set(file) == set(file.keys()) == content.keys()
    assert len(file) == 4
    assert "fields/T" in file
    assert "fields" in file
    assert "absent" not in file
    assert all(isinstance(one, penstock.Dataset) for one in file.values())
    for name, dataset in file.items():
        same(dataset.read(), content[name])
    assert file.visit(lambda name, dataset: name if dataset.ndim == 0 else None) == "mass"
    with pytest.raises(KeyError, match="fields/T"):
        file["field/T"]
    with pytest.raises(TypeError, match="names"):
        file[3]  # type: ignore[index]
    assert repr(file["/"]).startswith("<penstock.Group")
    assert set(file["/"]) == content.keys()


def test_options_that_a_format_does_not_have_are_told_with_those_it_has(path: Path, tmp_path: Path) -> None:
    for refused in (
        lambda: penstock.open(path, colour="red"),
        lambda: penstock.open(path, write=True, colour="red"),
        lambda: penstock.create(tmp_path / f"new{path.suffix}", colour="red"),
    ):
        with pytest.raises(TypeError, match="files have no option 'colour'; options of the format: "):
            refused()
    assert not (tmp_path / f"new{path.suffix}").exists()


def test_groups_are_prefixes(file: penstock.DataFile, content: dict[str, np.ndarray]) -> None:
    group = file["fields"]
    assert set(group) == {"T", "deep/p"}
    assert file.groups() == ["fields"]
    assert group.groups() == ["deep"]
    same(group["deep"]["p"].read(), content["fields/deep/p"])
    same(group.load()["deep/p"], content["fields/deep/p"])
    assert list(group.read_many(["T"]).result()) == ["T"]
    assert "Group 'fields'" in repr(group)


def test_what_a_dataset_says_of_itself(file: penstock.DataFile) -> None:
    dataset = file["fields/T"]
    assert (dataset.shape, dataset.ndim, dataset.size, dataset.nbytes) == ((20, 30), 2, 600, 2400)
    assert dataset.dtype == np.float32
    assert (dataset.chunks, dataset.filters, dataset.dims, dict(dataset.attrs)) == (None, (), None, {})
    assert len(dataset) == 20
    (extent,) = dataset.extents(slice(2, 4))
    assert extent.bytes == 240
    assert dataset.extents(slice(0, 0)) == []
    assert "(20, 30) float32" in repr(dataset)
    assert "fields/T  (20, 30)  float32" in repr(file)
    assert np.asarray(dataset).shape == (20, 30)


def test_several_datasets_in_one_submission(file: penstock.DataFile, content: dict[str, np.ndarray]) -> None:
    out = np.zeros((20, 30), "f4")
    pending = file.read_many({"fields/T": out, "mass": None, "fields/deep/p": slice(2, 5), "none": ...})
    assert pending.wait(30)
    found = pending.result()
    assert found["fields/T"] is out
    same(out, content["fields/T"])
    same(found["mass"], content["mass"])
    same(found["fields/deep/p"], content["fields/deep/p"][2:5])
    assert pending.done
    assert pending.bytes_done == pending.bytes_total
    assert pending.outcome.evidence["formats"]["requested_bytes"] == 2400 + 8 + 24


def test_evidence_sums_up(file: penstock.DataFile) -> None:
    assert file.evidence()["paths"] == []
    for _ in range(200):
        file["mass"].read()
    evidence = file.evidence()
    assert evidence["formats"]["requested_bytes"] == 1600
    assert sum(share["bytes"] for share in evidence["paths"]) == 1600
    assert len(evidence["plan"]) < 1000


def test_some_datasets_are_loaded(path: Path, content: dict[str, np.ndarray]) -> None:
    assert list(penstock.load(path, "host", names=["mass", "fields/T"])) == ["mass", "fields/T"]
    with pytest.raises(KeyError, match="fields/T"):
        penstock.load(path, "host", names=["fields/U"])


def test_arrays_outlive_their_file(path: Path, content: dict[str, np.ndarray]) -> None:
    array = penstock.load(path, "host")["fields/T"]
    same(array, content["fields/T"])


@pytest.mark.parametrize("kind", [bytearray, memoryview, "array"])
def test_any_memory_of_the_host_is_filled(
    file: penstock.DataFile, content: dict[str, np.ndarray], kind: object
) -> None:
    expected = content["fields/deep/p"]
    if kind == "array":
        out: object = penstock.Array(file.context.allocate(56), "int64", (7,))
    else:
        out = memoryview(bytearray(56)).cast("q")
    assert file["fields/deep/p"].read(out=out) is out
    same(np.asarray(out), expected)


def test_memory_without_a_type_does_not_fit(file: penstock.DataFile) -> None:
    with pytest.raises(TypeError, match="uint8.*int64"):
        file["fields/deep/p"].read(out=bytearray(56))
    with pytest.raises(TypeError, match="not a stream"):
        file["mass"].read(stream="default")


def test_streams_of_the_host_device(file: penstock.DataFile) -> None:
    class Stream:
        ptr = 0

    assert file["mass"].read(stream=0).shape == ()
    assert file["mass"].read(stream=Stream()).shape == ()
    with pytest.raises(penstock.Error):
        file["mass"].read(stream=12345)


def test_progress_is_told(large: Path) -> None:
    seen: list[tuple[int, int]] = []
    with penstock.open(large, context=slow()) as file:
        file["data"].read(slice(0, 200_000), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1_600_000, 1_600_000)
    assert len(seen) > 2
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("index", [slice(None), slice(None, None, 2)])
def test_background_reads_go_on_alone_and_can_be_cancelled(large: Path, index: slice) -> None:
    with penstock.open(large, context=slow()) as file:
        pending = file["data"].start_read(slice(0, 100_000, index.step))
        assert not pending.wait(0)
        deadline = time.monotonic() + 20
        while not pending.done and time.monotonic() < deadline:
            time.sleep(0.01)
        assert pending.done
        assert pending.result().shape == (100_000 // (index.step or 1),)
        pending = file["data"].start_read(index)
        pending.cancel()
        with pytest.raises(penstock.Error) as caught:
            pending.result()
        assert caught.value.code == "cancelled"
        assert "Pending done" in repr(pending)


def test_a_time_limit_ends_a_read(large: Path) -> None:
    with penstock.open(large, context=slow()) as file, pytest.raises(penstock.Error) as caught:
        file["data"].read(timeout_s=0.05)
    assert caught.value.code == "timed_out"


@pytest.mark.parametrize("index", [slice(None), slice(None, None, -2)])
def test_an_interrupt_ends_a_read_and_nothing_is_left(large: Path, index: slice) -> None:
    with penstock.open(large, context=slow()) as file:
        count = len(range(1_000_000)[index])
        out = penstock.Array(file.context.allocate(8 * count), "float64", (count,))
        np.asarray(out)[...] = -1
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            file["data"].read(index, out=out)
        assert time.monotonic() - began < 3
        held = out.to_numpy()
        time.sleep(0.2)
        assert np.array_equal(held, np.asarray(out))


def test_closing_waits_for_what_is_under_way(large: Path) -> None:
    with penstock.open(large, context=slow()) as file:
        pending = file["data"].start_read(slice(0, 300_000))
        strided = file["data"].start_read(slice(0, 100_000, 3))
    assert pending.done
    assert strided.done
    same(pending.result(), np.arange(300_000.0))
    same(strided.result(), np.arange(0.0, 100_000, 3))


def test_an_error_in_the_block_cancels_what_is_under_way(large: Path) -> None:
    with pytest.raises(RuntimeError), penstock.open(large, context=slow()) as file:
        pending = file["data"].start_read()
        raise RuntimeError
    with pytest.raises(penstock.Error) as caught:
        pending.result()
    assert caught.value.code == "cancelled"


def test_closed_files_say_so(path: Path) -> None:
    file = penstock.open(path, device="host")
    dataset = file["mass"]
    file.close()
    file.close()
    for use in (
        lambda: file["mass"],
        dataset.read,
        dataset.extents,
        lambda: list(file),
        lambda: file.read_many(["mass"]),
    ):
        with pytest.raises(ValueError, match="closed"):
            use()
    assert "closed" in repr(file)


def test_files_opened_for_reading_are_not_written(file: penstock.DataFile) -> None:
    for write in (
        lambda: file.__setitem__("x", np.arange(3)),
        lambda: file["mass"].__setitem__(..., np.array(1.0)),
        lambda: file["mass"].append(np.array(1.0)),
        lambda: file.create_dataset("x", (3,), "f4"),
        lambda: file.attrs.__setitem__("a", "b"),
    ):
        with pytest.raises(TypeError, match="write=True"):
            write()


def test_a_file_cut_short_while_open_is_an_error_that_names_it(large: Path) -> None:
    with penstock.open(large, device="host") as file:
        dataset = file["data"]
        pending = file["data"].start_read(slice(0, 10))
        pending.result()
        os.truncate(large, 100_000)
        for index in (slice(None), slice(None, None, 2), slice(20_000, 20_010)):
            with pytest.raises(penstock.Error, match="large.npy"):
                dataset.read(index)


def test_a_file_cut_short_while_it_is_read(large: Path) -> None:
    with penstock.open(large, context=slow()) as file:
        for index in (slice(None), slice(None, None, 3)):
            np.save(large, np.arange(1_000_000, dtype="f8"))
            pending = file["data"].start_read(index)
            os.truncate(large, 100_000)
            with pytest.raises(penstock.Error, match="large.npy"):
                pending.result()


def test_a_read_that_ends_while_others_are_summed_counts_too(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with penstock.open(large, device="host") as file:
        file["data"].read(path="buffered")  # by a transfer
        (one,), kept = file._file._record._parts, record.Record()
    late = [threading.Thread(target=kept.add, args=(one,)) for _ in range(3)]
    waiting, summed = list(late), record._sum

    def slow(parts: list[penstock.Outcome]) -> penstock.Outcome:
        found = summed(parts)
        if waiting:
            waiting[0].start()
            waiting.pop(0).join(0.2)  # it ends here, unless it has to wait
        return found

    monkeypatch.setattr(record, "_sum", slow)
    for _ in range(200):
        kept.add(one)
    for thread in late:
        thread.join()
    assert kept.evidence()["formats"]["requested_bytes"] == 203 * one.evidence["formats"]["requested_bytes"]


def test_threads_share_a_file(large: Path) -> None:
    expected = np.arange(1_000_000.0)
    starts = [37 * turn for turn in range(100)]
    with penstock.open(large, device="host") as file, ThreadPoolExecutor(8) as pool:
        dataset = file["data"]
        for start, array in zip(starts, pool.map(lambda n: dataset[n : 900_000 : 1 + n % 3], starts), strict=True):
            same(array, expected[start : 900_000 : 1 + start % 3])
        assert file.evidence()["formats"]["requested_bytes"] == sum(
            8 * len(range(n, 900_000, 1 + n % 3)) for n in starts
        )


def test_one_pending_may_be_awaited_by_several_threads(large: Path) -> None:
    with penstock.open(large, context=slow()) as file, ThreadPoolExecutor(4) as pool:
        pending = file["data"].start_read(slice(0, 200_000))
        found = list(pool.map(lambda _: pending.result(), range(4)))
    assert all(one is found[0] for one in found)


def test_a_forked_child_is_refused_and_may_open_the_file_itself(path: Path) -> None:
    script = f"""
import os, penstock
file = penstock.open({str(path)!r}, device="host")
file["mass"].read()
child = os.fork()
if child == 0:
    try:
        file["mass"].read()
    except penstock.Error as error:
        if error.code != "unsupported" or "fork" not in str(error):
            os._exit(2)
    else:
        os._exit(3)
    with penstock.open({str(path)!r}, device="host") as mine:
        os._exit(0 if mine["mass"].read().shape == () else 4)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("end", ["file.close()", "file._file.abandon()"])
def test_a_forked_child_closes_a_file_that_a_thread_of_its_parent_uses(path: Path, end: str) -> None:
    script = f"""
import os, signal, threading, penstock
file = penstock.open({str(path)!r}, device="host")
asks, forked = threading.Event(), threading.Event()
def ask():
    with file._file._source.metadata():
        asks.set()
        forked.wait()
thread = threading.Thread(target=ask)
thread.start()
asks.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    {end}
    os._exit(0 if file.closed else 2)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
forked.set()
thread.join()
raise SystemExit(code or file["mass"].read().shape != ())
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, check=False).returncode == 0


def test_a_dropped_read_goes_on(large: Path) -> None:
    with penstock.open(large, context=slow()) as file:
        out = penstock.Array(file.context.allocate(80_000), "float64", (10_000,))
        file["data"].start_read(slice(0, 10_000), out=out)
        gc.collect()
    same(out, np.arange(10_000.0))


def test_importing_penstock_imports_neither_numpy_nor_h5py() -> None:
    script = "import sys, penstock; sys.exit(sum(name in sys.modules for name in ('numpy', 'h5py', 'torch')))"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_contexts_are_shared_unless_one_is_given(path: Path) -> None:
    mine = penstock.Context("host")
    with penstock.open(path, device="host") as one, penstock.open(path, device="host") as two:
        assert one.context is two.context
        with penstock.open(path, context=mine) as three:
            assert three.context is mine
