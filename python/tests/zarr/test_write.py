"""Zarr stores that we write: zarr-python reads them, in every state that a writer can leave behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_reading import read, whole, write

import penstock
from penstock._arrays.dtype import DType
from penstock.formats.model import Box, ChunkTable, NewDataset
from penstock.formats.new_file import WriterLock
from penstock.formats.zarr.document import write_document
from penstock.formats.zarr.hidden import HiddenNames
from penstock.formats.zarr.reader import Zarr
from penstock.formats.zarr.write import ZarrWriter

zarr = pytest.importorskip("zarr")
codecs = pytest.importorskip("zarr.codecs")

KINDS = ("bool", "int8", "uint16", ">i4", "int64", "float16", ">f8", "complex64", "complex128")
SHARDED = {"chunk_shape": (2, 3), "shard_shape": (4, 6)}


def numbers(shape: tuple[int, ...], kind: Any = "float32") -> np.ndarray:
    return np.random.default_rng(1).integers(0, 100, shape).astype(kind)


def new(name: str, data: np.ndarray, **more: Any) -> NewDataset:
    return NewDataset(name, data.shape, DType.of(data.dtype), **more)


def make(path: Path, arrays: dict[str, np.ndarray], **more: Any) -> None:
    writer = ZarrWriter(path)
    fill_in(writer, arrays, **more)
    writer.publish(durable=False)


def fill_in(writer: ZarrWriter, arrays: dict[str, np.ndarray], **more: Any) -> None:
    tables = writer.create([new(name, data, **more) for name, data in arrays.items()])
    for table, (name, data) in zip(tables, arrays.items(), strict=True):
        write(writer, table, writer.info(name), data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", [{}, {"chunk_shape": (2, 3)}, SHARDED])
def test_zarr_python_reads_what_we_write(kind: str, layout: dict[str, Any], tmp_path: Path) -> None:
    data = numbers((7, 8), kind)
    make(tmp_path / "x.zarr", {"a": data, "g/h/b": data}, attributes={"units": "K"}, dimensions=("y", "x"), **layout)
    group = zarr.open_group(tmp_path / "x.zarr", mode="r")
    for name in ("a", "g/h/b"):
        assert np.array_equal(group[name][...], data)
        assert group[name].dtype == data.dtype.newbyteorder("=")
        assert dict(group[name].attrs) == {"units": "K"}
        assert group[name].metadata.dimension_names == ("y", "x")
        assert np.array_equal(read(Zarr(tmp_path / "x.zarr"), name), data)
    assert list(tmp_path.iterdir()) == [tmp_path / "x.zarr"]


@pytest.mark.parametrize("shape", [(), (5,), (3, 0), (2, 3, 4)])
def test_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    data = numbers(shape)
    make(tmp_path / "x.zarr", {"a": data})
    assert np.array_equal(zarr.open_group(tmp_path / "x.zarr", mode="r")["a"][...], data)


def test_raw_bytes(tmp_path: Path) -> None:
    data = numbers((5, 3), "u1").view("V3").reshape(5)
    make(tmp_path / "x.zarr", {"a": data})
    assert read(Zarr(tmp_path / "x.zarr"), "a").tobytes() == data.tobytes()


@pytest.mark.filterwarnings("ignore:The data type")
def test_zarr_python_reads_raw_bytes(tmp_path: Path) -> None:
    data = numbers((5, 3), "u1").view("V3").reshape(5)
    make(tmp_path / "x.zarr", {"a": data})
    array = zarr.open_group(tmp_path / "x.zarr", mode="r")["a"]
    assert array.dtype == data.dtype
    assert array[...].tobytes() == data.tobytes()
    assert bytes(array.fill_value) == bytes(3)


@pytest.mark.parametrize("fill", [[1, 2, 3], "AQID"])
def test_raw_bytes_under_the_name_of_the_specification_are_read(fill: Any, tmp_path: Path) -> None:
    make(tmp_path / "x.zarr", {"a": numbers((5, 3), "u1").view("V3").reshape(5)})
    document = json.loads((tmp_path / "x.zarr/a/zarr.json").read_text())
    (tmp_path / "x.zarr/a/zarr.json").write_text(json.dumps(document | {"data_type": "r24", "fill_value": fill}))
    (tmp_path / "x.zarr/a/c/0").unlink()
    assert read(Zarr(tmp_path / "x.zarr"), "a").tobytes() == bytes([1, 2, 3]) * 5


def test_chunks_in_shards_begin_at_pages(tmp_path: Path) -> None:
    make(tmp_path / "x.zarr", {"a": numbers((7, 8))}, **SHARDED)
    table = Zarr(tmp_path / "x.zarr").table("a", whole((7, 8)))
    assert (table.offset_bytes % 4096 == 0).all()
    assert len(table.files) == 4


def test_chunks_that_nobody_chose_are_large_but_not_too_large(tmp_path: Path) -> None:
    for shape, expected in (
        ((3, 1000, 1000), (3, 1000, 1000)),
        ((100, 1000, 1000), (25, 1000, 1000)),
        ((2, 9000, 9000), (1, 3000, 9000)),
    ):
        writer = ZarrWriter(tmp_path / "x.zarr")
        writer.create([NewDataset("a", shape, DType.of("f4"))])
        assert writer.info("a").chunk_shape == expected
        writer.abandon()
    assert not list(tmp_path.iterdir())


def test_a_new_store_replaces_an_older_one_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    make(path, {"old": numbers((3,))})
    writer = ZarrWriter(path)
    fill_in(writer, {"new": numbers((4,))})
    assert Zarr(path).names() == ("old",)
    writer.publish(durable=True)
    assert Zarr(path).names() == ("new",)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("layout", [{}, {"chunk_shape": (2, 3)}, SHARDED])
@pytest.mark.parametrize("growing", [True, False])
def test_every_state_of_an_append_is_readable(layout: dict[str, Any], growing: bool, tmp_path: Path) -> None:
    """Rows are added one or three at a time, so that they begin in chunks and shards that are there, or are new."""
    path, data = tmp_path / "x.zarr", numbers((12, 8))
    make(path, {"a": data[:3]}, resizable=(None, 8) if growing else None, **layout)
    rows = 3
    for more in (1, 3, 1, 4):
        writer = ZarrWriter(path, append=True)
        writer.extend("a", (rows + more, 8))
        table = writer.table("a", Box((rows, 0), (rows + more, 8)))
        assert_sees(path, data[:rows])  # as if we died before a byte was written
        write_rows(writer, table, data, (rows, rows + more))
        assert np.array_equal(read(writer.container, "a"), data[: rows + more]), "what is written is read back"
        assert_sees(path, data[:rows])
        writer.publish(durable=rows == 4)
        writer.abandon()
        rows += more
        assert_sees(path, data[:rows])
        assert not [name for _, _, names in os.walk(path) for name in names if ".penstock-" in name]


def write_rows(writer: ZarrWriter, table: ChunkTable, data: np.ndarray, rows: tuple[int, int]) -> None:
    """Only these rows, as the mover does: what else is in the chunks stays."""
    info = writer.info("a")
    for row in range(len(table.offset_bytes)):
        (top, left), (high, wide) = table.origin[row].tolist(), info.chunk_shape
        for line in range(max(top, rows[0]), min(top + high, rows[1])):
            part = np.zeros(wide, data.dtype)
            values = data[line, left : left + wide]
            part[: len(values)] = values
            descriptor = os.open(table.files[table.file_index[row]], os.O_WRONLY)
            os.pwrite(descriptor, part.tobytes(), int(table.offset_bytes[row]) + (line - top) * part.nbytes)
            os.close(descriptor)


def assert_sees(path: Path, data: np.ndarray) -> None:
    assert np.array_equal(zarr.open_group(path, mode="r")["a"][...], data)
    assert np.array_equal(read(Zarr(path), "a"), data)


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("order", [None, "inside", "outside"])
def test_shards_of_others_grow(location: str, order: str | None, tmp_path: Path) -> None:
    path, data = tmp_path / "x.zarr", numbers((12, 12))
    turn = [codecs.TransposeCodec(order=(1, 0))]
    inner = [*(turn if order == "inside" else []), codecs.BytesCodec()]
    index = [codecs.BytesCodec(endian="big")] if location == "start" else [codecs.BytesCodec(), codecs.Crc32cCodec()]
    sharding = codecs.ShardingCodec(chunk_shape=(2, 3), codecs=inner, index_location=location, index_codecs=index)
    options = {"filters": turn if order == "outside" else None, "serializer": sharding, "compressors": None}
    array = zarr.open_group(path, mode="a").create_array(
        "a", shape=(5, 12), chunks=(6, 6), dtype="f4", fill_value=3.5, **options
    )
    array[:3] = data[:3]
    writer = ZarrWriter(path, append=True)
    writer.extend("a", (12, 9) if order else (9, 12))
    writer.publish(durable=False)
    assert zarr.open_group(path, mode="r")["a"].shape == ((9, 12) if order else (9, 12))
    expected = np.full((9, 12), 3.5, "f4")
    expected[:3] = data[:3]
    assert np.array_equal(zarr.open_group(path, mode="r")["a"][...], expected)
    assert np.array_equal(read(Zarr(path), "a"), expected)


def test_chunks_that_are_not_stored_get_a_place_when_written_to(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    group = zarr.open_group(path, mode="a")
    group.create_array("a", shape=(4, 6), chunks=(2, 3), dtype="f4", fill_value=2, compressors=None)
    writer = ZarrWriter(path, append=True)
    table = writer.table("a", Box((0, 0), (1, 3)))
    write_rows(writer, table, np.ones((4, 6), "f4"), (0, 1))
    assert (zarr.open_group(path, mode="r")["a"][...] == 2).all()
    writer.publish(durable=False)
    expected = np.full((4, 6), 2.0)
    expected[0, :3] = 1
    assert np.array_equal(zarr.open_group(path, mode="r")["a"][...], expected)


def test_abandoned_changes_leave_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    make(path, {"a": numbers((3, 8)), "g/b": numbers((3,))}, resizable=None)
    shutil.copytree(path, tmp_path / "before")
    writer = ZarrWriter(path, append=True)
    writer.extend("a", (9, 8))
    fill_in(writer, {"h/c": numbers((4,))})
    writer.set_attributes("", {"title": "x"})
    writer.abandon()
    assert tree(path) == tree(tmp_path / "before")


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in path.rglob("*")}


def test_new_arrays_groups_and_attributes_of_an_existing_store(tmp_path: Path) -> None:
    path, data = tmp_path / "x.zarr", numbers((4,))
    make(path, {"a": data})
    zarr.consolidate_metadata(path)
    writer = ZarrWriter(path, append=True)
    fill_in(writer, {"g/h/b": data})
    writer.set_attributes("", {"title": "all", "levels": np.arange(2)})
    writer.set_attributes("g", {"of": "group"})
    writer.set_attributes("a", {"units": "m"})
    writer.set_attributes("g/h/b", {"units": np.float32(2)})
    writer.extend("a", (6,))
    assert writer.attributes() == {"title": "all", "levels": [0, 1]}
    assert set(writer.names()) == {"a", "g/h/b"}
    assert Zarr(path).names() == ("a",)
    writer.publish(durable=True)
    for consolidated in (True, False):
        group = zarr.open_group(path, mode="r", use_consolidated=consolidated)
        assert dict(group.attrs) == {"title": "all", "levels": [0, 1]}
        assert dict(group["g"].attrs) == {"of": "group"}
        assert dict(group["a"].attrs) == {"units": "m"}
        assert group["a"].shape == (6,)
        assert np.array_equal(group["g/h/b"][...], data)


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (NewDataset("../x", (3,), DType.of("f4")), "not a valid name for an array"),
        (NewDataset("g//x", (3,), DType.of("f4")), "not a valid name for an array"),
        (NewDataset("__x", (3,), DType.of("f4")), "not a valid name for an array"),
        (NewDataset("zarr.json", (3,), DType.of("f4")), "not a valid name for an array"),
        (NewDataset("a", (3,), DType.of("f4")), "already"),
        (NewDataset("a/b", (3,), DType.of("f4")), "is an array, not a group"),
        (NewDataset("link/b", (3,), DType.of("f4")), "already"),
        (NewDataset("b", (3,), DType.of([("x", "f4"), ("y", "f8")])), "Zarr has no type"),
        (NewDataset("b", (3,), DType.of("f4"), chunk_shape=(0,)), "chunks of shape"),
        (NewDataset("b", (3,), DType.of("f4"), chunk_shape=(2,), shard_shape=(3,)), "do not divide"),
        (NewDataset("b", (3,), DType.of("f4"), dimensions=("x", "y")), "2 names for 1"),
        (NewDataset("b", (3,), DType.of("f4"), attributes={"x": b"raw"}), "not a type of JSON"),
    ],
)
def test_what_zarr_cannot_say_is_refused(dataset: NewDataset, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    make(path, {"a": numbers((3,))})
    (path / "link").symlink_to(tmp_path)
    before = tree(path)
    writer = ZarrWriter(path, append=True)
    with pytest.raises(penstock.Error, match=words):
        writer.create([dataset])
    writer.abandon()
    assert tree(path) == before


def test_packed_arrays_and_version_2_are_not_appended_to(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="a")
    group.create_array("a", data=numbers((4,)), compressors=codecs.BloscCodec())
    with pytest.raises(penstock.Error, match=r"are encoded \(blosc\)"):
        ZarrWriter(tmp_path / "x.zarr", append=True).extend("a", (9,))
    zarr.open_group(tmp_path / "old.zarr", mode="a", zarr_format=2)
    with pytest.raises(penstock.Error, match="version 2"):
        ZarrWriter(tmp_path / "old.zarr", append=True)
    make(tmp_path / "y.zarr", {"a": numbers((4,))})
    with pytest.raises(penstock.Error, match="only grow"):
        ZarrWriter(tmp_path / "y.zarr", append=True).extend("a", (3,))


def test_a_full_disk_shows_at_creation(tmp_path: Path) -> None:
    writer = ZarrWriter(tmp_path / "x.zarr")
    with pytest.raises(penstock.Error) as caught:
        writer.create([NewDataset("a", (1 << 55,), DType.of("f4"), chunk_shape=(1 << 55,))])
    assert caught.value.code in ("no_space", "io_error")
    writer.abandon()
    assert not list(tmp_path.iterdir())


KILLED = """
import os, signal, sys
import numpy as np, penstock
file = penstock.open(sys.argv[1], write=True, device="host")
file["plain"].append(np.ones((3, 4)))
file["shards"].append(np.ones((3, 4)))
file["g/new"] = np.ones(4)
file.attrs["title"] = "more"
if sys.argv[2] == "kill": os.kill(os.getpid(), signal.SIGKILL)
file.close()
"""


def test_what_a_killed_writer_left_inside_goes_with_the_next_and_nothing_else(tmp_path: Path) -> None:
    store, precious = tmp_path / "x.zarr", tmp_path / "precious"
    precious.write_text("precious")
    with penstock.create(store, device="host") as file:
        for name, layout in {"plain": {}, "shards": {"shard_shape": (4, 4)}}.items():
            shape: dict[str, Any] = {"resizable": (None, 4), "chunk_shape": (2, 4)}
            file.create_dataset(name, (0, 4), "f8", **shape, **layout).append(np.zeros((3, 4)))
    subprocess.run([sys.executable, "-c", KILLED, store, "kill"], check=False)
    left = [one.name for one in store.rglob("*.penstock-*")]
    assert len(left) == 3 and ".new.penstock-0" in left, left
    (store / ".zarr.json.penstock-0").symlink_to(precious)  # as a stranger would, who knows the name
    (store / "plain" / ".zarr.json.penstock-0").write_text("half a document")
    subprocess.run([sys.executable, "-c", KILLED, store, "close"], check=True)
    assert not list(store.rglob("*.penstock-*"))
    assert precious.read_text() == "precious"
    with penstock.open(store, device="host") as file:
        assert np.asarray(file["plain"][...]).sum() == np.asarray(file["shards"][...]).sum() == 12
        assert np.asarray(file["g/new"][...]).sum() == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user, and so root")
def test_what_a_stranger_put_under_a_hidden_name_stays(tmp_path: Path) -> None:
    with penstock.create(tmp_path / "x.zarr", device="host"):
        pass
    lock = WriterLock(str(tmp_path / "x.zarr"))
    others = Path(HiddenNames(lock).name_for(str(tmp_path / "x.zarr" / "a")))
    others.mkdir()
    os.chown(others, 65534, 65534)
    assert HiddenNames(lock).name_for(str(tmp_path / "x.zarr" / "a")) != str(others)
    assert others.is_dir()
    os.chown(others, 0, 0)
    assert HiddenNames(lock).name_for(str(tmp_path / "x.zarr" / "a")) == str(others)
    others.mkdir()
    HiddenNames(None).name_for(str(tmp_path / "x.zarr" / "a"))  # without a lock it may be a living writer's
    assert others.is_dir()
    lock.release()


def test_a_document_is_not_written_through_a_link_that_came_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "temporary").symlink_to(tmp_path / "precious")
    with pytest.raises(penstock.Error):
        write_document(str(tmp_path / "zarr.json"), {}, False, str(tmp_path / "temporary"))
    assert (tmp_path / "precious").read_text() == "precious" and not (tmp_path / "zarr.json").exists()
