"""Small compressed chunks that are written one by one: what is in the file, what evidence says, and who waits."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import _core
from penstock.formats.packing import one_chunk
from penstock.formats.state import FileState

h5py = pytest.importorskip("h5py")

ROWS = 512  # of a chunk of 64 KiB
LOST = ps.Error(code="io_error", operation="write", cause="it was lost")


def values(chunks: int, dtype: str = "<f4") -> np.ndarray:
    noise = np.random.default_rng(0).integers(0, 9, (chunks * ROWS, 32))
    return (np.arange(noise.size).reshape(noise.shape) // 5 + noise).astype(dtype)


def part(chunk: int) -> slice:
    return slice(chunk * ROWS, (chunk + 1) * ROWS)


def new(file: Any, array: np.ndarray, compression: str = "gzip", **layout: Any) -> Any:
    layout = {"chunk_shape": (ROWS, 32), "compression": compression} | layout
    return file.create_dataset("x", array.shape, array.dtype, **layout)


@pytest.fixture
def no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(*_: Any, **__: Any) -> Any:
        raise AssertionError("a plan was made")

    monkeypatch.setattr(FileState, "start_write", planned)


@pytest.mark.usefixtures("no_plan")
@pytest.mark.parametrize("suffix", ["h5", "nc"])
@pytest.mark.parametrize("compression", ["gzip", "zstd", "lz4"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i2"])
def test_the_stock_library_reads_chunks_that_were_written_one_by_one(
    dtype: str, compression: str, suffix: str, tmp_path: Path
) -> None:
    pytest.importorskip("hdf5plugin")
    array = values(5, dtype)
    with ps.create(tmp_path / f"x.{suffix}", device="host") as file:
        one = new(file, array, compression)
        for chunk in (3, 0, 4, 1, 2):
            one[part(chunk)] = array[part(chunk)].astype(array.dtype.newbyteorder("="))
    with h5py.File(tmp_path / f"x.{suffix}") as stock:
        assert np.array_equal(stock["x"][...], array)
        masks = [stock["x"].id.get_chunk_info(row).filter_mask for row in range(stock["x"].id.get_num_chunks())]
    assert masks == [0] * 5


def test_the_file_is_the_one_that_plans_make(tmp_path: Path) -> None:
    """Their times count seconds: both are made within one."""
    array, began, ended = values(4), 0, 1
    while began != ended:
        began = int(time.time())
        for name in ("here", "planned"):
            with ps.create(tmp_path / f"{name}.h5", device="host") as file:
                one = new(file, array)
                for chunk in range(4):
                    if name == "here":
                        one[part(chunk)] = array[part(chunk)]
                    else:
                        one.start_write(array[part(chunk)], part(chunk)).result()
        ended = int(time.time())
    assert (tmp_path / "here.h5").read_bytes() == (tmp_path / "planned.h5").read_bytes()


def test_evidence_is_that_of_plans(tmp_path: Path) -> None:
    array, told = values(20), []
    for name in ("here", "planned"):
        with ps.create(tmp_path / f"{name}.h5", device="host") as file:
            one = new(file, array)
            for chunk in range(20):
                if name == "here":
                    outcome = one.write(array[part(chunk)], part(chunk))
                else:
                    outcome = one.start_write(array[part(chunk)], part(chunk)).result()
            told.append((outcome.bytes, outcome.path, outcome.evidence["formats"], file.evidence()))
    here, planned = told
    assert here[:2] == planned[:2]
    for at, bytes in ((2, array.nbytes // 20), (3, array.nbytes)):
        ours, theirs = (one[at] if at == 2 else one[at]["formats"] for one in told)
        assert ours["host_encoded_bytes"] == bytes
        assert ours == theirs | {"scratch_peak_bytes": ours["scratch_peak_bytes"]}
    assert here[3]["paths"] == planned[3]["paths"]
    assert here[3]["fallbacks"] == planned[3]["fallbacks"] == []


def test_what_is_no_new_whole_chunk_goes_another_way(tmp_path: Path) -> None:
    array = values(3)
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = new(file, array)
        one[part(1)] = array[part(1)]
        assert np.array_equal(np.asarray(one[part(1)]), array[part(1)]), "it is read back at once"
        one[part(1)] = array[part(0)]
        assert np.array_equal(np.asarray(one[part(1)]), array[part(0)]), "written anew, too"
        one[:5] = array[part(2)][:5]
        with pytest.raises(ValueError, match="shape"):
            one[part(0)] = array[part(0)].reshape(-1)
        with pytest.raises(TypeError, match="elements of"):
            one[part(0)] = array[part(0)].astype("<i4")
        with pytest.raises(IndexError):
            one[part(0), 40] = array[part(0)]
        one[part(2)] = np.asfortranarray(array[part(2)])
        one[part(0)] = array[part(0)]
    with h5py.File(tmp_path / "x.h5") as stock:
        assert np.array_equal(stock["x"][...], np.concatenate([array[part(0)], array[part(0)], array[part(2)]]))


def test_plans_appends_and_single_chunks_take_turns(tmp_path: Path) -> None:
    array = values(6)
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = new(file, array[: 2 * ROWS], resizable=(None, 32))
        one[part(1)] = array[part(1)]
        one.append(array[2 * ROWS : 4 * ROWS])
        one[part(0)] = array[part(0)]
        assert np.array_equal(np.asarray(one[...]), array[: 4 * ROWS])
        one.append(array[4 * ROWS :])
    with h5py.File(tmp_path / "x.h5") as stock:
        assert np.array_equal(stock["x"][...], array)


def test_threads_write_chunks_side_by_side(tmp_path: Path) -> None:
    array = values(64)
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = new(file, array)

        def some(first: int) -> None:
            for chunk in range(first, 64, 4):
                one[part(chunk)] = array[part(chunk)]

        threads = [threading.Thread(target=some, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with h5py.File(tmp_path / "x.h5") as stock:
        assert np.array_equal(stock["x"][...], array)


def test_close_waits_for_a_chunk_that_another_thread_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array, encoding, go_on = values(1), threading.Event(), threading.Event()
    encode = one_chunk.ChunkWrites._encode

    def slow(*given: Any) -> int:
        encoding.set()
        go_on.wait(10)
        return encode(*given)

    monkeypatch.setattr(one_chunk.ChunkWrites, "_encode", slow)
    file = ps.create(tmp_path / "x.h5", device="host")
    one = new(file, array)
    writer = threading.Thread(target=lambda: one.write(array))
    writer.start()
    encoding.wait(10)
    closer = threading.Thread(target=file.close)
    closer.start()
    closer.join(0.2)
    assert closer.is_alive()
    assert not (tmp_path / "x.h5").exists()
    go_on.set()
    closer.join(10)
    writer.join(10)
    with h5py.File(tmp_path / "x.h5") as stock:
        assert np.array_equal(stock["x"][...], array)


@pytest.mark.parametrize("step", ["_encode", "_move"])
@pytest.mark.parametrize("error", [LOST, KeyboardInterrupt])
def test_a_chunk_that_was_not_written_keeps_the_file_from_its_name(
    error: Any, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    file = ps.create(tmp_path / "x.h5", device="host")
    one = new(file, values(2))
    with monkeypatch.context() as broken, pytest.raises((ps.Error, KeyboardInterrupt)):
        broken.setattr(one_chunk.ChunkWrites, step, fails)
        one[part(0)] = values(1)
    one[part(1)] = values(1)
    with pytest.raises((ps.Error, KeyboardInterrupt)):
        file.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_plan")
def test_a_small_array_is_saved_without_a_plan(tmp_path: Path) -> None:
    array = values(1)
    outcome = ps.save(tmp_path / "x.h5", {"x": array}, device="host", compression="gzip")
    assert outcome.evidence["formats"]["host_encoded_bytes"] == array.nbytes
    with h5py.File(tmp_path / "x.h5") as stock:
        assert np.array_equal(stock["x"][...], array)


def test_a_lost_transfer_of_a_chunk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = _core.start_table

    def shorter(context: Any, direction: Any, files: Any, memory: Any, table: np.ndarray, **options: Any) -> Any:
        return start(context, direction, files, memory, table - np.array([[0, 0, 0, 1]]), **options)

    file = ps.create(tmp_path / "x.h5", device="host")
    one = new(file, values(1))
    monkeypatch.setattr(_core, "start_table", shorter)
    with pytest.raises(ps.Error, match="x.h5"):
        one[...] = values(1)
    with pytest.raises(ps.Error):
        file.close()
