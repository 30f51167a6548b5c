"""Reads of some MiB, and of rows, by the calling thread: the same elements and errors as by a transfer, without one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _api
from penstock._error import Error
from penstock.formats.reading import quick
from penstock.formats.state import FileState

h5py = pytest.importorskip("h5py")

ROWS = 700
WHOLE = np.random.default_rng(5).random((ROWS, 512))  # 2.8 MB


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("medium")
    with h5py.File(made / "x.h5", "w") as file:
        file["contiguous"] = WHOLE
        file["foreign"] = WHOLE.astype(">f4")
        file.create_dataset("chunked", data=WHOLE, chunks=(33, 512))
        file.create_dataset("tiles", data=WHOLE, chunks=(33, 7))
    np.save(made / "c.npy", WHOLE)
    np.save(made / "f.npy", np.asfortranarray(WHOLE))
    return made


@pytest.fixture
def no_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a transfer was made")

    monkeypatch.setattr(FileState, "start_read", refuse)
    monkeypatch.setattr(_api.Context, "open", refuse)


@pytest.mark.usefixtures("no_transfers")
@pytest.mark.parametrize("index", [..., np.s_[3:-5], [5, 0, 699, 5], np.arange(ROWS) > 99])
def test_boxes_of_some_mib_make_no_transfer(folder: Path, index: Any) -> None:
    for name, whole in (("contiguous", WHOLE), ("foreign", WHOLE.astype("f4")), ("chunked", WHOLE)):
        with penstock.open(folder / "x.h5", device="host") as file:
            found = file[name][index]
            assert np.array_equal(np.asarray(found), whole[index])
            assert file.evidence()["formats"]["requested_bytes"] == found.nbytes
            assert file.evidence()["path"] == "buffered"


LARGER = np.random.default_rng(6).random((3000, 512))  # 12.3 MB


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("larger") / "x.h5"
    with h5py.File(made, "w") as file:
        file["contiguous"] = LARGER
        file["foreign"] = LARGER.astype(">f8")
        file.create_dataset("chunked", data=LARGER, chunks=(100, 512))
    return made


@pytest.mark.usefixtures("no_transfers")
@pytest.mark.parametrize("index", [..., np.s_[3:-5]])
@pytest.mark.parametrize("name", ["contiguous", "foreign", "chunked"])
def test_what_is_larger_makes_no_transfer_where_the_page_cache_has_it(larger: Path, name: str, index: Any) -> None:
    larger.read_bytes()
    with penstock.open(larger, device="host") as file:
        assert np.array_equal(np.asarray(file[name][index]), LARGER[index])
        out = np.empty_like(LARGER[index])
        assert file[name].read(index, out=out) is out
        assert np.array_equal(out, LARGER[index])
        assert file.evidence()["formats"]["requested_bytes"] == 2 * out.nbytes
        assert file.evidence()["path"] == "buffered"


@pytest.mark.parametrize("name", ["contiguous", "foreign", "chunked"])
@pytest.mark.parametrize("into", [False, True])
def test_what_is_larger_comes_from_storage_too(larger: Path, name: str, into: bool) -> None:
    descriptor = os.open(larger, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    with penstock.open(larger, device="host") as file:
        out = np.empty_like(LARGER) if into else None
        assert np.array_equal(np.asarray(file[name].read(out=out)), LARGER)
        assert file.evidence()["formats"]["requested_bytes"] == LARGER.nbytes


def test_boxes_into_memory_of_another_kind_are_read_as_before(larger: Path) -> None:
    with penstock.open(larger, device="host") as file:
        for wrong in (np.empty((3000, 512), "f4"), np.empty((3000, 511)), np.empty((512, 3000)).T):
            with pytest.raises((TypeError, ValueError)):
                file["contiguous"].read(out=wrong)
        whole = np.zeros((3000, 512))
        whole.flags.writeable = False
        with pytest.raises((TypeError, ValueError)):
            file["contiguous"].read(out=whole)
        assert not whole.any()


@pytest.mark.usefixtures("no_transfers")
@pytest.mark.parametrize(
    "index", [np.s_[1:, :200], np.s_[::3], np.s_[:, 5], np.s_[10:300, 30:40], np.s_[5], np.s_[::2, ::9]]
)
@pytest.mark.parametrize("name", ["contiguous", "foreign", "chunked", "tiles"])
def test_boxes_of_many_ranges_make_no_transfer(folder: Path, name: str, index: Any) -> None:
    whole = WHOLE.astype("f4") if name == "foreign" else WHOLE
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset = file[name]
        dataset._quick.looked = 1  # the first read of many chunks is left to a plan, which asks for few of them
        out = np.empty_like(whole[index])
        assert dataset.read(index, out=out) is out
        assert np.array_equal(out, whole[index])
        assert np.array_equal(np.asarray(dataset[index]), whole[index])
        assert file.evidence()["formats"]["requested_bytes"] == 2 * out.nbytes
        assert file.evidence()["path"] == "buffered"


@pytest.mark.usefixtures("no_transfers")
@pytest.mark.parametrize(
    "index", [np.s_[5, :300], np.s_[690:, 500:], np.s_[-1, -1], np.s_[30:40, 3:9], np.s_[0:70:7, 11]]
)
@pytest.mark.parametrize("into", [False, True])
def test_the_first_box_of_a_dataset_of_many_chunks_looks_for_its_own(folder: Path, index: Any, into: bool) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        out = np.empty_like(np.asarray(WHOLE[index])) if into else None
        assert np.array_equal(np.asarray(file["tiles"].read(index, out=out)), WHOLE[index])
        assert file["tiles"]._quick.reader is None
        assert file.evidence()["path"] == "buffered"


def test_the_first_box_of_chunks_that_are_missing_or_filtered_or_many_is_planned(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as made:
        holes = made.create_dataset("holes", WHOLE.shape, "f8", chunks=(33, 7), fillvalue=3)
        holes[:40] = WHOLE[:40]
        made.create_dataset("gzip", data=WHOLE, chunks=(33, 7), compression="gzip")
    expected = np.full_like(WHOLE, 3)
    expected[:40] = WHOLE[:40]
    for name, whole in (("holes", expected), ("gzip", WHOLE)):
        for index in (np.s_[30:70, 5:30], np.s_[:, :], np.s_[[3, 1]], np.s_[2, [3, 1]], np.s_[3:3]):
            with penstock.open(tmp_path / "x.h5", device="host") as file:
                assert np.array_equal(np.asarray(file[name][index]), whole[index]), (name, index)
    with penstock.open(tmp_path / "x.h5", device="host") as file, pytest.raises(IndexError):
        file["holes"][700]


def test_threads_ask_for_readers_of_many_datasets_at_once() -> None:
    kept = quick.QuickReadsOfFile()
    numbers = range(8 * quick.MOST_DATASETS)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: kept.of(str(number % 700)), numbers))
    assert len(found) == len(numbers) and all(isinstance(one, quick.QuickReads) for one in found)
    kept.of("last")
    assert len(kept._kept) == quick.MOST_DATASETS


def test_boxes_backwards_and_of_very_many_ranges_are_left_to_plans(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        for index in (np.s_[::-1], np.s_[:, ::2]):
            assert np.array_equal(np.asarray(file["contiguous"][index]), WHOLE[index])


def test_a_loop_that_names_the_dataset_each_time_looks_for_its_chunks_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    looks_for = FileState.small_reader
    monkeypatch.setattr(FileState, "small_reader", lambda *given, **how: asked.append(1) or looks_for(*given, **how))
    with penstock.open(folder / "x.h5", device="host") as file:
        for row in range(20):
            assert np.array_equal(np.asarray(file["tiles"][row]), WHOLE[row])
            assert np.array_equal(np.asarray(file["/tiles"][row]), WHOLE[row])
    assert len(asked) == 2  # the first may be the last: it looks for few chunks


def test_a_file_keeps_the_readers_of_the_datasets_that_were_read_last() -> None:
    kept = quick.QuickReadsOfFile()
    first = kept.of("first")
    for number in range(quick.MOST_DATASETS - 1):
        kept.of(str(number))
        assert kept.of("first") is first
    kept.of("one too many")
    assert kept.of("first") is first
    assert kept.of("0").looked == 0 and len(kept._kept) == quick.MOST_DATASETS


@pytest.mark.usefixtures("no_transfers")
@pytest.mark.parametrize("name", ["c.npy", "f.npy"])
def test_an_npy_file_is_loaded_without_a_transfer(folder: Path, name: str) -> None:
    found = penstock.load(folder / name, "host")
    assert np.array_equal(np.asarray(found), WHOLE)


@pytest.mark.usefixtures("no_transfers")
@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 1_000_001, 4 << 20])
def test_bytes_are_loaded_without_a_transfer(tmp_path: Path, size: int) -> None:
    content = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    (tmp_path / "x.bin").write_bytes(content)
    for _ in range(3):  # the later ones into memory that was used before
        assert bytes(penstock.load(tmp_path / "x.bin", "host")) == content


def test_loaded_arrays_do_not_share_memory(tmp_path: Path) -> None:
    held = []
    for number in range(4):
        np.save(tmp_path / "x.npy", np.full(100_000, number))
        held.append(np.asarray(penstock.load(tmp_path / "x.npy", "host")))
    del held[1]  # its memory may serve the next one
    held.append(np.asarray(penstock.load(tmp_path / "x.npy", "host")))
    assert [set(one.tolist()) for one in held] == [{0}, {2}, {3}, {3}]


def test_a_file_that_shrinks_is_an_error_and_no_old_bytes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", WHOLE)
    with penstock.open(tmp_path / "x.npy", device="host") as file:
        dataset = file["data"]
        for index in (..., [5, 1, 2], np.s_[3:400]):
            assert np.array_equal(np.asarray(dataset[index]), WHOLE[index])
        with (tmp_path / "x.npy").open("r+b") as raw:
            raw.truncate(9000)
        for index in (..., [5, 1, 2], np.s_[3:400]):
            with pytest.raises(Error, match=r"x\.npy"):
                dataset[index]
    with pytest.raises(Error, match=r"x\.npy"):
        penstock.load(tmp_path / "x.npy", "host")


def held(file: Path) -> int:
    """Descriptors of the file that this process has."""
    links = [Path("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]  # noqa: PTH208
    return sum(os.path.realpath(link) == str(file) for link in links)


def test_the_first_read_of_a_file_keeps_nothing_open(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", WHOLE)
    with penstock.open(tmp_path / "x.npy", device="host") as file:
        assert np.array_equal(np.asarray(file["data"][3]), WHOLE[3])
        assert held(tmp_path / "x.npy") == 0
        assert np.array_equal(np.asarray(file["data"][4]), WHOLE[4])
        assert held(tmp_path / "x.npy") > 0
        assert file.evidence()["paths"][0]["operations"] == 2
    assert held(tmp_path / "x.npy") == 0
