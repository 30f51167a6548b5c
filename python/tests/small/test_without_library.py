"""Datasets of plain numbers of HDF5 files are found without the HDF5 library: what is told of them is what the library
tells, and the file is opened in it only by a question that goes beyond them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

import penstock as ps  # noqa: E402
from penstock.formats.hdf5 import reader as hdf5_reader  # noqa: E402
from penstock.formats.hdf5.reader import Hdf5  # noqa: E402
from penstock.formats.model import Box, DatasetInfo  # noqa: E402

TYPES = ["i1", "<i2", "<i4", "<i8", "u1", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16", "?"]
SHAPES = [(), (1,), (7,), (3, 4), (2, 1, 5, 2)]
LIBVERS = ["earliest", "v108", "v110", "latest"]


def open_in_hdf5() -> int:
    return h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)


@pytest.fixture(autouse=True)
def _nothing_is_left_open() -> Iterator[None]:
    assert open_in_hdf5() == 0
    yield
    assert open_in_hdf5() == 0


def boxes_of(info: DatasetInfo) -> list[Box]:
    """All of it, and nothing of it where it has dimensions."""
    none = (0,) * info.ndim
    return [Box(none, info.shape), Box(none, none)]


def by_the_library(path: Path, monkeypatch: pytest.MonkeyPatch) -> Hdf5:
    with monkeypatch.context() as patch:
        patch.setattr(hdf5_reader, "_parsed", lambda *_: None)
        return Hdf5(path)


def make(path: Path, libver: str, block: int) -> list[str]:
    """Returns the names of what has to be found."""
    draw, names = np.random.default_rng(3), []
    with h5py.File(path, "w", libver=libver, userblock_size=block) as file:
        for number, (kind, shape) in enumerate(itertools.product(TYPES, SHAPES)):
            name = f"g{number % 3}/below/d{number}" if number % 2 else f"d{number}"
            values = np.array(draw.integers(0, 2 if kind == "?" else 100, shape)).astype(kind)
            fill = {} if number % 5 or not shape else {"fillvalue": np.array(1).astype(kind)}
            file.create_dataset(name, data=values, **fill)
            names.append(name)
        file["array"] = np.zeros(3, np.dtype(("<i4", (2, 2))))
        file.create_dataset("of arrays", (3,), np.dtype(("<i4", (2, 2))))[...] = np.arange(12).reshape(3, 2, 2)
        file.create_dataset("enum", (4,), h5py.enum_dtype({"a": 1, "b": 2}, "i2"))[...] = [1, 2, 2, 1]
        file["soft"] = h5py.SoftLink("/d0")
        file["through"] = h5py.SoftLink("g1/below")
        file["d0"].attrs["units"] = "m"
    return [*names, "array", "of arrays", "enum", "soft", "through/d1", "/d0", "d0/"]


@pytest.mark.parametrize("block", [0, 512, 4096])
@pytest.mark.parametrize("libver", LIBVERS)
def test_they_are_told_as_the_library_tells_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libver: str, block: int
) -> None:
    path = tmp_path / "x.h5"
    names = make(path, libver, block)
    found: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    with h5py.File(path) as file:
        offsets = {name: file[name].id.get_offset() for name in names}
    parsed = Hdf5(path)
    for name in names:
        path_in_file = name.strip("/")
        found[name] = parsed.described(name), parsed.info(name), parsed.place(path_in_file), parsed.watch(path_in_file)
        tables[name] = [parsed.table(name, box) for box in boxes_of(parsed.info(name))]
    assert open_in_hdf5() == 0
    library = by_the_library(path, monkeypatch)
    told = [one.name for one in fields(found["d0"][0]) if one.name != "attributes"]
    for name, (described, info, place, watch) in found.items():
        wanted = library.info(name)
        assert [getattr(described, one) for one in told] == [getattr(wanted, one) for one in told], name
        assert described == info and place == library.place(wanted.name) == offsets[name], name
        assert watch == library.watch(wanted.name)
        assert dict(described.attributes) == dict(wanted.attributes), name
        for table, box in zip(tables[name], boxes_of(wanted), strict=True):
            assert repr(table) == repr(library.table(name, box)), name
    library.close()
    parsed.close()


@pytest.mark.parametrize("libver", LIBVERS)
def test_what_are_no_plain_numbers_in_the_file_is_asked_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libver: str
) -> None:
    path, other = tmp_path / "x.h5", tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["y"] = np.arange(4)
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("big chunks", (8,), ">i4", chunks=(8,))[...] = 1
        file.create_dataset("text in chunks", (8,), h5py.string_dtype(), chunks=(4,), compression="gzip")[...] = "a"
        file.create_dataset("unwritten", (8,), "i4", fillvalue=3)
        file.create_dataset("empty", (0, 3), "i4")
        file["null"] = h5py.Empty("f4")
        file["big"] = np.arange(3, dtype=">i4")
        file["text"] = "text"
        file["fixed"] = np.array([b"ab", b"c"])
        file["pairs"] = np.zeros(2, [("a", "i4"), ("b", "f8")])
        file["elsewhere"] = h5py.ExternalLink("other.h5", "y")
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((3,)), create)
        file.create_dataset("outside", (4,), "i4", external=[(str(tmp_path / "raw.bin"), 0, 16)])[...] = 1
        layout = h5py.VirtualLayout((4,), "i8")
        layout[:] = h5py.VirtualSource(other, "y", (4,))
        file.create_virtual_dataset("virtual", layout)
        names = [*file]
    parsed = Hdf5(path)
    assert parsed._parsed is not None
    assert [name for name in names if parsed._parsed.find(name.encode()) is not None] == []
    assert [parsed._parsed.find(one) for one in (b"", b"none", b"big chunks/x", b"..", b"\xff")] == [None] * 5
    library = by_the_library(path, monkeypatch)
    for name in names:
        assert (
            parsed.info(name).layout == library.info(name).layout
            and parsed.info(name).shape == library.info(name).shape
        )
    library.close()
    parsed.close()


CHUNKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "grows": {"maxshape": (None, 9)},
    "grows in the last": {"maxshape": (7, None)},
    "grows in both": {"maxshape": (None, None)},
    "grows to an end": {"maxshape": (20, 9)},
    "gzip": {"compression": "gzip", "compression_opts": 7, "shuffle": True, "fillvalue": 3},
    "sums": {"fletcher32": True},
    "lzf": {"compression": "lzf"},
    "scaled": {"scaleoffset": 3, "fillvalue": 1},
    "single": {"chunks": (7, 9), "compression": "gzip"},
}


@pytest.mark.parametrize("block", [0, 1024])
@pytest.mark.parametrize("libver", LIBVERS)
def test_chunks_are_told_as_the_library_tells_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libver: str, block: int
) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=block) as file:
        for name, options in CHUNKED.items():
            for kind in ("i4", "f8") if name != "scaled" else ("i4",):
                dataset = file.create_dataset(f"{name} {kind}", (7, 9), kind, **{"chunks": (2, 4), **options})
                dataset[:5, :8] = np.arange(40).reshape(5, 8)  # some chunks are not stored
        file.create_dataset("none", (0, 9), "i4", chunks=(2, 4), maxshape=(None, 9))
        file.create_dataset("unwritten", (7, 9), "i4", chunks=(2, 4), fillvalue=4)
        file.create_dataset("arrays", (7,), np.dtype(("<i4", (2, 3))), chunks=(2,), compression="gzip")[:4] = np.full(
            (4, 2, 3), 5
        )
        names = [*file]
    parsed = Hdf5(path)
    found = {name: (parsed.described(name), parsed.watch(name), parsed.lookup(name)) for name in names}
    assert open_in_hdf5() == 0
    library = by_the_library(path, monkeypatch)
    told = [one.name for one in fields(found["none"][0]) if one.name != "attributes"]
    known = 0
    for name, (info, watch, lookup) in found.items():
        wanted, theirs = library.info(name), library.lookup(name)
        assert [getattr(info, one) for one in told] == [getattr(wanted, one) for one in told], name
        assert watch == library.watch(name) and parsed.place(name) is None, name
        cells = [range(-(-extent // size)) for extent, size in zip(info.shape, info.chunk_shape, strict=True)]
        for cell in itertools.product(*cells):
            ours = lookup(cell)
            known += ours is not None
            if theirs is not None:
                assert ours == theirs(cell), (name, cell)
    assert known > 100
    for name in names:
        box = Box((0,) * found[name][0].ndim, found[name][0].shape)
        assert repr(parsed.table(name, box)) == repr(library.table(name, box)), name
    library.close()
    parsed.close()


def test_a_chunk_that_skipped_a_filter_is_left_to_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        packed = file.create_dataset("x", (40, 50), "i4", chunks=(4, 50), compression="gzip", shuffle=True)
        packed[...] = np.arange(2000).reshape(40, 50)
        raw = np.arange(200, dtype="i4").tobytes()
        packed.id.write_direct_chunk((8, 0), raw, filter_mask=3)
    with ps.open(path, device="host") as file:
        assert np.array_equal(file["x"][8:12].to_numpy(), np.arange(200).reshape(4, 50))
        assert np.array_equal(file["x"][4:8].to_numpy(), np.arange(200, 400).reshape(4, 50))
    for container in (Hdf5(path), by_the_library(path, monkeypatch)):
        with closing(container):
            container.described("x")
            lookup = container.lookup("x")
            assert lookup is not None and lookup((2, 0)) is None and lookup((1, 0)) is not None


def test_a_chunk_is_read_without_the_library(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    values = np.arange(40000.0).reshape(400, 100)
    with h5py.File(path, "w") as file:
        file.create_dataset("gzip", data=values, chunks=(10, 100), compression="gzip", shuffle=True)
        file.create_dataset("plain", data=values, chunks=(10, 100))
    for name in ("gzip", "plain"):
        with ps.open(path, device="host") as file:
            assert np.array_equal(file[name][37:38].to_numpy(), values[37:38])
            assert open_in_hdf5() == 0
            assert np.array_equal(file[name][...].to_numpy(), values)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - keeps none


def test_a_closed_file_is_locked_and_open_no_more_whoever_holds_its_datasets(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(4000.0).reshape(40, 100), chunks=(10, 100), compression="gzip")
        file["x"].attrs["units"] = "m"
    os.utime(path, (1, 1))  # chunks of a file that has just changed are not kept
    for asks_the_library in (False, True):
        before = descriptors()
        with ps.open(path, device="host") as found:
            dataset = found["x"]
            for row in (3, 17, 3):
                assert dataset[row].to_numpy()[0] == 100 * row
            if asks_the_library:
                there = descriptors()
                assert dataset.attrs["units"] == "m" and dataset[33].to_numpy()[0] == 3300
                assert descriptors() == there, "the library's descriptor comes in place of the parser's"
        assert descriptors() == before
        with h5py.File(path, "r+", locking=True) as file:
            assert file["x"].shape == dataset.shape
        os.utime(path, (1, 1))


def test_a_row_is_read_without_the_library_and_attributes_by_it(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    values = np.arange(300.0).reshape(100, 3)
    with h5py.File(path, "w") as file:
        file["x"] = values
        file["x"].attrs["units"] = "m"
        file["packed"] = h5py.SoftLink("x")
    with ps.open(path, device="host") as file:
        assert np.array_equal(file["x"][7:8].to_numpy(), values[7:8])
        assert np.array_equal(file["x"][...].to_numpy(), values)
        assert np.array_equal(file["x"][[5, 3, 3]].to_numpy(), values[[5, 3, 3]])
        assert open_in_hdf5() == 0
        assert file["x"].attrs["units"] == "m"
        assert open_in_hdf5() == 1
        assert sorted(file) == ["packed", "x"] and np.array_equal(file["x"][8].to_numpy(), values[8])
    with pytest.raises(ValueError, match="closed"):
        file["x"]


def test_h5py_has_its_cache_of_chunks_beside_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["text"] = "ours"
    with ps.open(path, device="host") as found:
        assert found["text"][()].tolist() == "ours" and open_in_hdf5() == 1
        with h5py.File(path, "r") as file:
            assert file.id.get_access_plist().get_cache() == h5py.h5p.create(h5py.h5p.FILE_ACCESS).get_cache()
            assert file.id.get_access_plist().get_sieve_buf_size() > 0


def test_a_file_that_this_process_has_open_to_write_is_refused_whatever_it_locks(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    for locking, words in ((None, "has it open for writing"), (True, "another setting"), (False, "another setting")):
        with h5py.File(path, "w", locking=locking) as file:
            file["x"] = np.arange(10)
            file.flush()
            with pytest.raises(ps.Error, match=words):
                ps.open(path, device="host")
        with ps.open(path, device="host") as found:
            assert found["x"][3].to_numpy() == 3


WRITES = """
import sys, h5py
with h5py.File(sys.argv[1], "r+") as file:
    print("open", flush=True)
    sys.stdin.read()
"""


def test_readers_and_writers_of_other_processes_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(10)
    command = [sys.executable, "-c", WRITES, str(path)]
    with ps.open(path, device="host") as file:
        assert file["x"][3].to_numpy() == 3 and open_in_hdf5() == 0
        refused = subprocess.run(command, input="", capture_output=True, text=True, check=False)
        assert refused.returncode != 0 and "unable to lock file" in refused.stderr
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        with pytest.raises(ps.Error, match="has it open for writing"):
            ps.open(path, device="host")
        writer.communicate("")
    assert writer.returncode == 0
    with ps.open(path, device="host") as file:
        assert file["x"][3].to_numpy() == 3


def test_hdf5s_own_word_about_locks_is_left_to_hdf5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(10)
    monkeypatch.setenv("HDF5_USE_FILE_LOCKING", "FALSE")
    with ps.open(path, device="host") as file:
        assert open_in_hdf5() == 1 and file["x"][3].to_numpy() == 3


def test_a_file_that_changed_is_told_by_every_question(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = np.arange(10), np.arange(5)
    with ps.open(path, device="host") as found:
        dataset = found["x"]
        other = tmp_path / "other.h5"
        with h5py.File(other, "w") as file:
            file["x"], file["y"] = np.arange(20), np.arange(6)
        other.replace(path)
        for ask in (lambda: found["x"], lambda: found["y"], lambda: dataset[3], lambda: list(found)):
            with pytest.raises(ps.Error, match="changed or replaced"):
                ask()
    with ps.open(path, device="host") as found:
        assert found["x"].shape == (20,)


def test_threads_open_and_read_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    values = np.arange(4000.0).reshape(1000, 4)
    with h5py.File(path, "w") as file:
        file["x"] = values
    wrong: list[BaseException | int] = []

    def work(first: int) -> None:
        try:
            for row in range(first, 1000, 25):
                with ps.open(path, device="host") as file:
                    if not np.array_equal(file["x"][row].to_numpy(), values[row]):
                        wrong.append(row)
                    if row % 3 == 0 and dict(file["x"].attrs):
                        wrong.append(row)
        except BaseException as error:  # noqa: BLE001 - told below
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
