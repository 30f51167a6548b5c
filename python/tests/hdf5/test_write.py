"""New HDF5 files: what stock tools see of them, where their extents lie, and what is left when it goes wrong."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
from format_kit import check_round_trips  # noqa: E402
from hdf5_kit import debian_tool, equal, fetch, numbered, put, run_tool, whole  # noqa: E402

import penstock  # noqa: E402
from penstock import Error  # noqa: E402
from penstock._arrays.dtype import DType  # noqa: E402
from penstock.formats.hdf5 import metadata as hdf5_metadata  # noqa: E402
from penstock.formats.hdf5.changing.overlay import Overlay  # noqa: E402
from penstock.formats.hdf5.open import names_of  # noqa: E402
from penstock.formats.hdf5.reader import Hdf5  # noqa: E402
from penstock.formats.hdf5.write import Hdf5Writer, create  # noqa: E402
from penstock.formats.model import NewDataset  # noqa: E402

INT = DType.of("int32")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


def test_the_conformance_kit(tmp_path: Path) -> None:
    def stock(path: Path) -> np.ndarray:
        with h5py.File(path) as file:
            return file["data"][...]

    check_round_trips(tmp_path, ".h5", stock=stock)


def test_extents_are_on_pages_and_stock_tools_read_them(path: Path) -> None:
    shapes = {"a": (1000,), "g/b": (33, 77), "g/h/c": (5, 4, 3), "scalar": (), "none": (0, 3), "tiny": (1,)}
    writer = create(path)
    tables = writer.create([NewDataset(name, shape, INT, attributes={"units": "m"}) for name, shape in shapes.items()])
    writer.set_attributes("", {"title": "new", "steps": 3, "times": [0.5, 1.5], "names": ["x", "y"]})
    writer.set_attributes("g", {"n": np.int8(4)})
    assert not path.exists()
    for name in shapes:
        put(writer, name)
    writer.publish(durable=True)
    for (name, shape), table in zip(shapes.items(), tables, strict=True):
        if np.prod(shape) * 4 >= 4096:
            assert table.offset_bytes[0] % 4096 == 0, name
    with h5py.File(path) as file:
        for name, shape in shapes.items():
            equal(file[name][...].tobytes(), numbered(shape))
            assert file[name].attrs["units"] == "m"
        assert file.attrs["title"] == "new"
        assert list(file.attrs["names"]) == ["x", "y"]
        assert file["g"].attrs["n"] == 4
    shown = run_tool(debian_tool("h5dump"), "-d", "/g/h/c", path)
    assert "DATASPACE  SIMPLE { ( 5, 4, 3 ) / ( 5, 4, 3 ) }" in shown
    assert f"(4,3,0): {', '.join(str(value) for value in numbered((5, 4, 3))[4, 3])}" in shown
    assert [one.name for one in path.parent.iterdir()] == ["x.h5"]


def test_every_type_that_hdf5_can_hold_comes_back(path: Path) -> None:
    pair = DType.of(np.dtype([("position", "<f4", (3,)), ("id", ">i8")]))
    names = ["bool", "int8", "uint64", "float16", "complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2", ">f8"]
    types = {f"t{number}": DType.of(name) for number, name in enumerate(names)} | {"pair": pair, "raw": DType.raw(5)}
    writer = create(path)
    writer.create([NewDataset(name, (4,), dtype) for name, dtype in types.items()])
    writer.publish(durable=False)
    hdf5 = Hdf5(path)
    assert {name: hdf5.info(name).dtype for name in types} == types
    run_tool(debian_tool("h5dump"), "-H", path)
    with pytest.raises(Error, match="float8_e8m0fnu"):
        create(path).create([NewDataset("x", (1,), DType.of("float8_e8m0fnu"))])


def test_one_step_is_one_chunk_or_a_page_of_steps(path: Path) -> None:
    writer = create(path)
    writer.create(
        [
            NewDataset("big", (0, 50, 60), INT, resizable=(None, 50, 60)),
            NewDataset("time", (3,), DType.of("float64"), resizable=(None,)),
            NewDataset("own", (2, 6), INT, chunk_shape=(2, 4), resizable=(10, None)),
            NewDataset("fixed", (7, 6), INT, chunk_shape=(3, 4)),
        ]
    )
    chunks = {name: writer.info(name).chunk_shape for name in writer.names()}
    assert chunks == {"big": (1, 50, 60), "time": (512,), "own": (2, 4), "fixed": (3, 4)}
    for name in writer.names():
        put(writer, name)
    assert len(writer.extend("big", (3, 50, 60)).bytes) == 3
    put(writer, "big")
    writer.publish(durable=False)
    with h5py.File(path) as file:
        assert file["own"].maxshape == (10, None)
        for name in file:
            equal(file[name][...].tobytes(), numbered(file[name].shape).astype(file[name].dtype))


def test_gaps_behind_extents_stay_zero_whatever_is_made_afterwards(path: Path) -> None:
    """A tail of an extent may be written rounded up to a page; nothing of HDF5 may lie there."""
    writer = create(path)
    sizes = [1003 + 700 * number for number in range(24)]
    for number, size in enumerate(sizes):
        writer.create([NewDataset(f"g{number}/x", (size,), INT)])
        for small in range(6):
            attributes = {"text": "t" * small, "number": small}
            writer.create([NewDataset(f"g{number}/s{small}", (small + 1,), INT, attributes=attributes)])
        writer.set_attributes(f"g{number}", {"note": "n" * 100})
    tables = {number: writer.table(f"g{number}/x", whole((size,))) for number, size in enumerate(sizes)}
    for table in tables.values():
        descriptor = os.open(table.files[0], os.O_WRONLY)
        rounded = -(-int(table.bytes[0]) // 4096) * 4096
        os.pwrite(descriptor, b"\xff" * rounded, int(table.offset_bytes[0]))
        os.close(descriptor)
    writer.publish(durable=False)
    with h5py.File(path, "r+") as file:  # stock HDF5 goes on with the file
        for number in range(40):
            file[f"later{number}"] = np.arange(number)
            file[f"later{number}"].attrs["text"] = "of variable length"
            if number < len(sizes):
                del file[f"g{number}/s{number % 6}"]
        for number, size in enumerate(sizes):
            assert (file[f"g{number}/x"][...] == -1).all()
            assert file[f"g{number}/x"].shape == (size,)
    raw = path.read_bytes()
    for table in tables.values():
        end = int(table.offset_bytes[0] + table.bytes[0])
        assert set(raw[end : -(-end // 4096) * 4096]) <= {0xFF}


def test_the_older_file_is_there_until_the_new_one_is_whole(path: Path) -> None:
    path.write_bytes(b"older")
    writer = create(path)
    writer.create([NewDataset("x", (5000,), INT)])
    assert path.read_bytes() == b"older"
    writer.abandon()
    assert path.read_bytes() == b"older"
    assert [one.name for one in path.parent.iterdir()] == ["x.h5"]
    writer = create(path)
    writer.publish(durable=True)
    assert Hdf5(path).names() == ()


def test_a_full_disk_shows_when_datasets_are_made(path: Path) -> None:
    writer = create(path)
    with pytest.raises(Error, match="x.h5") as caught:
        writer.create([NewDataset("x", (1 << 50,), INT)])
    assert caught.value.code in ("no_space", "io_error")
    writer.abandon()
    assert list(path.parent.iterdir()) == []


def test_what_cannot_be_made_is_refused_by_name(path: Path) -> None:
    writer = create(path)
    writer.create([NewDataset("x", (3,), INT)])
    for new, words in (
        (NewDataset("x", (3,), INT), "'x'.*exists"),
        (NewDataset("x/y", (3,), INT), "'x' is a dataset"),
        (NewDataset("", (3,), INT), "not a valid name"),
        (NewDataset("a//b", (3,), INT), "not a valid name"),
        (NewDataset("s", (), INT, resizable=()), "without dimensions"),
        (NewDataset("r", (3, 4), INT, resizable=(None,)), "does not fit"),
    ):
        with pytest.raises(Error, match=words):
            writer.create([new])
    with pytest.raises(Error, match="fixed"):
        writer.extend("x", (4,))
    with pytest.raises(KeyError):
        writer.set_attributes("absent", {"a": 1})
    writer.abandon()


def test_unwritten_elements_and_partial_chunks_hold_the_fill_value(path: Path) -> None:
    writer = create(path)
    writer.create([NewDataset("x", (10,), INT, chunk_shape=(8,), resizable=(None,))])
    writer.publish(durable=False)
    with h5py.File(path, "r+") as file:
        assert file["x"][...].tolist() == [0] * 10
        file["x"].resize((20,))
        assert file["x"][...].tolist() == [0] * 20
        file["x"][19] = 3
    equal(fetch(Hdf5(path), "x"), np.array([0] * 19 + [3], "<i4"))


def test_ten_fields_are_made_quickly(path: Path) -> None:
    best = 1.0
    for _ in range(5):
        begin = time.perf_counter()
        writer = create(path)
        writer.create([NewDataset(f"g/f{number}", (100, 100), INT) for number in range(10)])
        writer.publish(durable=False)
        best = min(best, time.perf_counter() - begin)
    assert best < 0.05  # measured 0.005 s; two busy cores take longer


def test_larger_pages_align_extents_to_them(path: Path) -> None:
    writer = create(path, page_bytes=65536)
    tables = writer.create([NewDataset(f"f{number}", (20000,), INT) for number in range(3)])
    assert [int(table.offset_bytes[0]) % 65536 for table in tables] == [0, 0, 0]
    writer.publish(durable=False)
    run_tool(debian_tool("h5dump"), "-H", path)


class Work:
    """What is done while it is watched: calls of Python and C functions, and bytes that HDF5 hands over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.bytes = 0
        write = Overlay.write

        def counted(overlay: Overlay, buffer: memoryview) -> int:
            self.bytes += len(buffer)
            return write(overlay, buffer)

        monkeypatch.setattr(Overlay, "write", counted)

    def of(self, action: Callable[[], None]) -> tuple[int, int]:
        def called(frame: object, event: str, argument: object) -> None:
            self.calls += event in ("call", "c_call")

        self.calls = self.bytes = 0
        sys.setprofile(called)
        try:
            action()
        finally:
            sys.setprofile(None)
        return self.calls, self.bytes


def write_steps(path: Path, count: int, many_members: bool) -> None:
    writer = create(path, many_members=many_members)
    for step in range(count):
        writer.create([NewDataset(f"Timestep_{step}/{name}", (1,), INT) for name in "xy"])
        writer.set_attributes(f"Timestep_{step}", {"step": step})
        put(writer, f"Timestep_{step}/x")
    writer.publish(durable=False)


@pytest.mark.parametrize("many_members", [False, True])
def test_as_many_steps_again_are_as_much_work_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, many_members: bool
) -> None:
    work = Work(monkeypatch)
    write_steps(path, 10, many_members)  # what is done once
    calls, bytes = zip(
        *(work.of(lambda n=count: write_steps(path, n, many_members)) for count in (150, 300)), strict=True
    )
    assert calls[1] < 2.1 * calls[0]
    assert bytes[1] < 2.5 * bytes[0]


@pytest.mark.parametrize("many_members", [False, True])
def test_members_move_to_a_heap_while_they_are_few_or_never(path: Path, many_members: bool) -> None:
    """Moving 1000 takes HDF5 minutes."""
    count = 1100
    write_steps(path, count, many_members)
    assert (b"FRHP" in path.read_bytes()) == many_members
    with h5py.File(path) as file:
        assert len(file) == count
        assert all(file[f"Timestep_{step}"].attrs["step"] == step for step in range(0, count, 50))
    writer = Hdf5Writer(path, append=True)
    if many_members:
        with pytest.raises(Error, match="in place"):
            writer.create([NewDataset("more", (3,), INT)])
            writer.publish(durable=False)
        writer.abandon()
        return
    writer.create([NewDataset("more", (3,), INT)])
    put(writer, "more")
    writer.publish(durable=False)
    with h5py.File(path) as file:
        assert len(file) == count + 1
        equal(file["more"][...].tobytes(), numbered((3,)))


def test_a_group_is_found_without_a_walk_through_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_steps(path, 5, False)
    with h5py.File(path, "a") as file:
        file["soft"] = h5py.SoftLink("/Timestep_1")
        file["again"] = file["Timestep_2"]  # two names: the datasets are listed by one of them
        file.create_group("none")
        file["deep/inner/x"] = 1
    walks = 0

    def walk(file: object) -> list[str]:
        nonlocal walks
        walks += 1
        return names_of(file)

    monkeypatch.setattr(hdf5_metadata, "names_of", walk)
    with penstock.open(path, device="host") as file:
        for step in (0, 1, 3, 4):
            assert file[f"Timestep_{step}"].attrs["step"] == step
        assert walks == 0
        for name in ("Timestep_2", "again", "soft", "none", "deep", "deep/inner"):  # whether they are listed or not
            assert name in file and isinstance(file[name], penstock.Group)
        assert walks == 0
        assert list(file["deep"]["inner"]) == ["x"]
    walks = 0
    with penstock.create(path, device="host") as file:
        for step in range(20):
            file.create_datasets({f"Timestep_{step}/x": ((1,), "int32")})
            file[f"Timestep_{step}"].attrs["step"] = step
    assert walks == 0
