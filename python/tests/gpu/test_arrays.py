"""Stored arrays: rows of files through a page cache, compared with NumPy; what makes no sense is refused in words.

On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_rig import OnlyDLPack
from gpu_rig import DEVICE, ROWS, WIDTH, equal, make, on_device

import penstock as ps
from penstock.gpu import OutOfRange, StoredArray


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(5).random((ROWS, WIDTH), np.float32)


@pytest.fixture
def path(tmp_path: Path, table: np.ndarray) -> Path:
    table.tofile(tmp_path / "rows.bin")
    return tmp_path / "rows.bin"


@pytest.fixture
def rows(path: Path) -> Iterator[StoredArray]:
    with make(path) as array:
        yield array


def test_what_is_gathered_is_what_numpy_takes(rows: StoredArray, table: np.ndarray) -> None:
    picked = np.random.default_rng(1).integers(-ROWS, ROWS, 2000)
    assert equal(rows.gather(picked), table[picked])
    assert equal(rows.gather(picked.astype(np.int32)), table[picked])
    assert equal(rows.gather(list(picked[:9])), table[picked[:9]])
    assert equal(rows.gather(range(5, 500, 7)), table[5:500:7])
    assert equal(rows.gather(picked.reshape(40, 50)), table[picked.reshape(40, 50)])
    assert equal(rows.gather([]), table[[]])
    inside = picked[picked >= 0]
    assert equal(rows.gather(on_device(inside)), table[inside])
    assert equal(rows.gather(on_device(inside.astype(np.uint64))), table[inside])


def test_rows_by_number_slice_and_list(rows: StoredArray, table: np.ndarray) -> None:
    assert rows.shape == (ROWS, WIDTH) and len(rows) == ROWS and rows.dtype == "float32"
    for index in (
        0,
        -1,
        1234,
        np.int32(7),
        slice(None),
        slice(10, 20),
        slice(-5, None),
        slice(20, 10),
        slice(0, 99, 7),
    ):
        assert equal(rows[index], table[index]), index
    assert equal(rows[::-1], table[::-1])
    assert equal(rows[[3, 1, 3]], table[[3, 1, 3]])
    assert equal(rows.read(5, 9), table[5:9])


def test_indices_and_values_by_dlpack_alone(path: Path, table: np.ndarray) -> None:
    with make(path, mode="r+") as rows:
        assert equal(rows.gather(OnlyDLPack(np.array([5, 2999, -1]))), table[[5, 2999, -1]])
        rows[10:12] = OnlyDLPack(np.full((2, WIDTH), 3, np.float32))
        assert equal(rows[10:12], np.full((2, WIDTH), 3, np.float32))


def test_indices_and_values_of_pytorch(path: Path, table: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    place = "cpu" if DEVICE == "host" else DEVICE
    with make(path, mode="r+") as rows:
        picked = torch.tensor([5, 2999, 0], device=place)
        assert equal(rows.gather(picked), table[picked.cpu().numpy()])
        rows[10:12] = torch.full((2, WIDTH), 3.0, device=place)
        assert equal(rows[10:12], np.full((2, WIDTH), 3, np.float32))
        if DEVICE != "host":
            with pytest.raises(OutOfRange, match="names? row -1"):
                rows.gather(torch.tensor([0, -1], device=place))
            with pytest.raises(TypeError, match="64-bit"):
                rows.gather(picked.int())


def test_results_are_shared_without_a_copy(rows: StoredArray, table: np.ndarray) -> None:
    out = on_device(np.zeros((3, WIDTH), np.float32))
    assert rows.gather([1, 2, 3], out=out) is out
    assert equal(out, table[1:4])
    assert rows.read(7, 10, out=out) is out
    assert equal(out, table[7:10])
    if DEVICE == "host":
        assert np.array_equal(np.asarray(rows[3]), table[3])
        assert np.array_equal(np.from_dlpack(rows[3:5]), table[3:5])


def test_what_is_written_is_in_the_file(path: Path, table: np.ndarray) -> None:
    random = np.random.default_rng(2)
    with make(path, mode="r+") as rows:
        for turn in range(30):
            start, count = int(random.integers(0, ROWS - 200)), int(random.integers(1, 200))
            values = random.random((count, WIDTH), np.float32)
            table[start : start + count] = values
            rows.write(start, on_device(values) if turn % 2 else values)
        rows[7] = table[7] = np.arange(WIDTH, dtype=np.float32)
        rows[-1] = on_device(table[0])
        rows[100:300:50] = table[100:300:50] = random.random((4, WIDTH), np.float32)
        rows[[5, 6]] = table[[5, 6]] = random.random((2, WIDTH), np.float32)
        rows[50:51] = [[1.0] * WIDTH]
        table[-1], table[50] = table[0], 1.0
        assert equal(rows[:], table)
        rows.flush()
        assert np.array_equal(np.fromfile(path, np.float32).reshape(table.shape), table)
        rows.write(0, table[:1])
    assert path.stat().st_size == table.nbytes


def test_close_writes_what_no_flush_wrote(path: Path, table: np.ndarray) -> None:
    rows = make(path, mode="r+")
    rows[0] = np.zeros(WIDTH, np.float32)
    assert np.array_equal(np.fromfile(path, np.float32)[:WIDTH], table[0]), "control: not yet"
    rows.close()
    rows.close()
    assert not np.fromfile(path, np.float32)[:WIDTH].any()


def test_rows_after_a_header_and_before_more(tmp_path: Path, table: np.ndarray) -> None:
    path = tmp_path / "table.bin"
    path.write_bytes(b"h" * 77 + table.tobytes() + b"t" * 5000)
    with make(path, (ROWS, WIDTH), offset_bytes=77, mode="r+") as rows:
        assert equal(rows[:], table)
        assert equal(rows.gather([2999, 0]), table[[2999, 0]])
        with pytest.raises(OutOfRange):
            rows.gather(on_device([ROWS]))  # the file goes on, the array does not
        rows[ROWS - 1] = table[0]
    assert path.read_bytes() == b"h" * 77 + table[:-1].tobytes() + table[0].tobytes() + b"t" * 5000


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", ">f4", [("a", "<i4"), ("b", "u1")]])
def test_elements_of_any_type(tmp_path: Path, dtype: Any) -> None:
    values = np.random.default_rng(3).integers(0, 255, 999 * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    values.tofile(tmp_path / "x.bin")
    with ps.gpu.open(tmp_path / "x.bin", np.dtype(dtype), device=DEVICE, cache_bytes=4096) as rows:
        assert rows.shape == (999,)
        got = rows.gather([998, 5]).to_numpy()
        assert got.astype(dtype).tobytes() == values[[998, 5]].tobytes()


def test_files_that_say_themselves_what_they_hold(tmp_path: Path, table: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", table)
    ps.save(tmp_path / "x.safetensors", {"a": table[:100], "b": table})
    with ps.gpu.open(tmp_path / "x.npy", device=DEVICE) as rows:
        assert equal(rows[[2999, 4]], table[[2999, 4]])
    with ps.gpu.open(tmp_path / "x.safetensors", dataset="b", device=DEVICE) as rows:
        assert equal(rows[10:400], table[10:400])
    with pytest.raises(TypeError, match="dataset= names one of a, b"):
        ps.gpu.open(tmp_path / "x.safetensors", device=DEVICE)
    np.save(tmp_path / "f.npy", np.asfortranarray(table))
    with pytest.raises(ps.Error, match="not stored as rows in one piece"):
        ps.gpu.open(tmp_path / "f.npy", device=DEVICE)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["whole"] = table
        file.create_dataset("chunked", data=table, chunks=(100, WIDTH), compression="gzip")
    with ps.gpu.open(tmp_path / "x.h5", dataset="whole", device=DEVICE) as rows:
        assert equal(rows[[7, 2000]], table[[7, 2000]])
    with pytest.raises(ps.Error, match="not stored as rows in one piece"):
        ps.gpu.open(tmp_path / "x.h5", dataset="chunked", device=DEVICE)
    for wrong, cause in (("/", "is a group"), ("", "no dataset"), ("whol", "close names: whole"), ("x", "no dataset")):
        with pytest.raises(ps.Error, match=f"{cause}.*dataset= names one of chunked, whole"):
            ps.gpu.open(tmp_path / "x.h5", dataset=wrong, device=DEVICE)


def test_pins_prefetches_and_advice(path: Path, table: np.ndarray) -> None:
    with make(path) as rows:
        rows.pin(100, 400)
        rows.read()
        misses = rows.stats()["misses"]
        assert equal(rows[100:400], table[100:400])
        assert rows.stats()["misses"] == misses
        with pytest.raises(ps.Error, match=r"cache can pin \d+; pin fewer, or give the cache more") as caught:
            rows.pin()
        assert caught.value.code == "out_of_memory"
        with pytest.raises(ps.Error, match="unpin some, or give the cache more bytes"):
            for start in range(400, ROWS - 300, 300):
                rows.pin(start, start + 300)
        for at in range(400, start, 300):
            rows.unpin(at, at + 300)
        rows.unpin(100, 400)
        with pytest.raises(ps.Error, match="was not pinned"):
            rows.unpin(100, 400)
        rows.prefetch(2000, 2100)
        rows.advise("sweep")
        with pytest.raises(ps.Error, match="no advice 'often'; use one of"):
            rows.advise("often")
        with pytest.raises(ps.Error, match="policy of the cache is sweep-resistant"):
            rows.keep(0, 10)
        for wrong in ((5, 4), (-1, 4), (0, ROWS + 1)):
            with pytest.raises(OutOfRange):
                rows.prefetch(*wrong)


@pytest.mark.parametrize("policy", ["sweep-resistant", "clock", "fifo", "pinned-range"])
def test_every_policy_gives_the_same_rows(path: Path, table: np.ndarray, policy: str) -> None:
    with make(path, policy=policy, page_bytes=512, cache_bytes=64 << 10) as rows:
        if policy == "pinned-range":
            rows.keep(0, 100)
        for _ in range(3):
            assert equal(rows[:], table)


def test_rows_forgotten_are_read_anew(path: Path, table: np.ndarray) -> None:
    with make(path, mode="r+") as rows:
        assert equal(rows[5], table[5])
        table[5] = 0
        table.tofile(path)
        rows.invalidate()
        assert equal(rows[5], table[5])
        rows[5] = table[6]
        with pytest.raises(ps.Error, match="not written back"):
            rows.invalidate(5, 6)


def test_rows_that_are_not_there(rows: StoredArray) -> None:
    wrong: list[Callable[[], Any]] = [
        lambda: rows[ROWS],
        lambda: rows[-ROWS - 1],
        lambda: rows.gather([0, ROWS]),
        lambda: rows.gather(np.array([2**63], np.uint64)),
        lambda: rows.gather([0, 2**64]),
        lambda: rows.gather(on_device([0, ROWS])) if DEVICE != "host" else rows[ROWS],
    ]
    for one in wrong:
        with pytest.raises(IndexError, match=r"rows|row") as caught:
            one()
        assert isinstance(caught.value, ps.Error) and caught.value.file == rows.name
    for index, words in (
        (True, "row number"),
        (1.0, "1.0 is not a row number"),
        ("x", "row number"),
        ((0, 1), "first dimension"),
        (None, "first"),
        (np.ones(ROWS, bool), "flatnonzero"),
        (np.ma.array([1, 2], mask=[0, 1]), "compressed"),
        ([0.5], "whole numbers"),
        (..., "first dimension"),
    ):
        with pytest.raises(TypeError, match=words):
            rows[index]  # type: ignore[index]
    with pytest.raises(TypeError, match="to_numpy"):
        np.asarray(rows)


def test_values_and_memory_that_do_not_fit(path: Path) -> None:
    with make(path, mode="r+") as rows:
        good = np.zeros((2, WIDTH), np.float32)
        wrong: list[tuple[str, type[Exception], Callable[[], Any]]] = [
            ("float64", TypeError, lambda: rows.write(0, good.astype("f8"))),
            ("shape", ValueError, lambda: rows.write(0, good[:, 1:].copy())),
            ("shape", ValueError, lambda: rows.__setitem__(slice(0, 3), good)),
            ("shape", ValueError, lambda: rows.__setitem__(slice(0, 3), 0.0)),
            ("not contiguous", (ValueError, TypeError), lambda: rows.write(0, np.zeros((4, WIDTH), np.float32)[::2])),
            ("leave", OutOfRange, lambda: rows.write(ROWS - 1, good)),
            ("shape", ValueError, lambda: rows.gather([0], out=on_device(good))),
            ("not an array", TypeError, lambda: rows.write(0, object())),
        ]
        for words, kind, action in wrong:
            with pytest.raises(kind, match=words):
                action()


def test_a_file_that_may_not_be_written(rows: StoredArray, path: Path, table: np.ndarray) -> None:
    for action in (lambda: rows.write(0, table[:1]), lambda: rows.__setitem__([0], table[:1])):
        with pytest.raises(ps.Error, match='mode="r\\+"') as caught:
            action()
        assert caught.value.code == "read_only" and caught.value.file == str(path)


def test_a_file_cut_short_underneath_is_an_error_in_words(rows: StoredArray, path: Path, table: np.ndarray) -> None:
    os.truncate(path, 100_000)
    for action in (rows.read, lambda: rows.gather([ROWS - 1])):
        with pytest.raises(ps.Error, match="shorter than it was") as caught:
            action()
        assert caught.value.code == "end_of_file" and caught.value.file == str(path)
    assert equal(rows[:100], table[:100])


def test_elements_in_a_file_are_not_compared_by_identity(rows: StoredArray, table: np.ndarray) -> None:
    for compare in (lambda: rows == 0, lambda: rows != table[0, 0].item(), lambda: table[0, 0].item() in rows):
        with pytest.raises(TypeError, match=r"its elements are in a file; read them: storedarray\[...\]"):
            compare()
    with pytest.raises(TypeError, match="not read as a whole by chance"):
        rows == table  # noqa: B015
    assert rows == rows  # noqa: PLR0124
    assert {rows: 1}[rows] == 1


def test_a_closed_array_is_refused(path: Path) -> None:
    rows = make(path)
    rows.close()
    assert rows.closed and "closed" in repr(rows)
    for action in (lambda: rows[0], lambda: rows.gather([0]), rows.flush, rows.stats, rows.pin, lambda: rows.ref):
        with pytest.raises(ValueError, match="is closed"):
            action()


def test_a_forked_child_is_refused(rows: StoredArray) -> None:
    child = os.fork()
    if child == 0:
        try:
            rows.gather([0])
        except ps.Error as error:
            os._exit(0 if error.code == "unsupported" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_an_array_left_behind_flushes_when_it_goes(path: Path) -> None:
    rows = make(path, mode="r+")
    rows[0] = np.zeros(WIDTH, np.float32)
    del rows
    assert not np.fromfile(path, np.float32, WIDTH).any()


def test_an_interrupt_ends_a_long_gather(rows: StoredArray) -> None:
    count = 1 << 22
    picked = np.zeros(count, np.int64)
    out = rows.gather(picked[:1])

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            rows.gather(picked)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rows.stats()["hits"] < count, "not all of it was done"
    assert out.shape == (1, WIDTH)
