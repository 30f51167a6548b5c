"""Classic netCDF: what others write we read, and what we write others read; damaged files are errors that say where."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_reading import read, whole, write

import penstock
from penstock._arrays.dtype import DType
from penstock.formats.model import Box, NewDataset
from penstock.formats.netcdf3.encode import encode
from penstock.formats.netcdf3.header import read_header
from penstock.formats.netcdf3.reader import NetCDF3
from penstock.formats.netcdf3.write import NetCDF3Writer

netCDF4 = pytest.importorskip("netCDF4")

CLASSIC = ("i1", "i2", "i4", "f4", "f8")
WIDE = (*CLASSIC, "u1", "u2", "u4", "i8", "u8")
FORMATS = {"NETCDF3_CLASSIC": CLASSIC, "NETCDF3_64BIT_OFFSET": CLASSIC, "NETCDF3_64BIT_DATA": WIDE}


def numbers(shape: tuple[int, ...], kind: str, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 100, shape).astype(kind)


@pytest.fixture(params=FORMATS)
def by_library(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """A file of netCDF's own library, and what is in it."""
    path, written = tmp_path / "library.nc", {}
    with netCDF4.Dataset(path, "w", format=request.param) as file:
        file.title = "Größe"
        file.setncattr("levels", np.array([1.5, 2.5]))
        for name, length in (("time", None), ("y", 5), ("x", 7)):
            file.createDimension(name, length)
        for kind in FORMATS[request.param]:
            for name, dimensions in (("fixed", ("y", "x")), ("record", ("time", "x")), ("scalar", ())):
                variable = file.createVariable(f"{name}_{kind}", kind, dimensions)
                variable.units = "m"
                written[f"{name}_{kind}"] = numbers({"fixed": (5, 7), "record": (3, 7)}.get(name, ()), kind)
                variable[...] = written[f"{name}_{kind}"]
        text = file.createVariable("text", "S1", ("y",))
        text[:] = written["text"] = np.array([b"a", b"b", b"c", b"d", b"e"])
    return path, written


def test_what_the_library_writes_is_read(by_library: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, written = by_library
    container = NetCDF3(path)
    assert set(container.names()) == set(written)
    for name, data in written.items():
        found = read(container, name)
        assert np.array_equal(found.view("S1") if name == "text" else found, data), name
        assert container.info(name).shape == data.shape
    assert container.attributes() == {"title": "Größe", "levels": pytest.approx([1.5, 2.5])}
    assert container.info("fixed_f4").attributes["units"] == "m"
    assert container.info("record_f4").dimensions == ("time", "x")
    assert container.info("record_f4").resizable == (None, 7)


def test_a_header_is_written_back_byte_for_byte(by_library: tuple[Path, dict[str, np.ndarray]]) -> None:
    header = read_header(str(by_library[0]))
    assert encode(header) == by_library[0].read_bytes()[: header.bytes]


@pytest.mark.parametrize("version", [1, 2])
def test_what_scipy_writes_is_read(version: int, tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    path = str(tmp_path / "scipy.nc")
    fixed, record = numbers((4, 3), ">f4"), numbers((6, 3), ">i2")
    with scipy_io.netcdf_file(path, "w", version=version) as file:
        file.createDimension("t", None)
        file.createDimension("a", 4)
        file.createDimension("b", 3)
        file.createVariable("fixed", ">f4", ("a", "b"))[:] = fixed
        file.createVariable("record", ">i2", ("t", "b"))[:] = record
    container = NetCDF3(path)
    assert np.array_equal(read(container, "fixed"), fixed)
    assert np.array_equal(read(container, "record"), record)


@pytest.mark.parametrize("kind", ["i1", "i2", "f4"])
def test_the_only_record_variable_is_not_padded(kind: str, tmp_path: Path) -> None:
    path, data = tmp_path / "one.nc", numbers((5, 3), kind)
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("only", kind, ("t", "x"))[:] = data
    container = NetCDF3(path)
    assert container.table("only", whole((5, 3))).bytes.tolist() == [data.nbytes], "its records are one range"
    assert np.array_equal(read(container, "only"), data)


def test_many_records_of_one_variable_are_few_rows(tmp_path: Path) -> None:
    path, data = tmp_path / "one.nc", np.arange(1_200_000, dtype="f8")
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("t", None)
        file.createVariable("only", "f8", ("t",))[:] = data
    container = NetCDF3(path)
    assert len(container.table("only", whole(data.shape)).bytes) == 3
    assert np.array_equal(read(container, "only"), data)
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(penstock.Error, match="the file at"):
        container.table("only", whole(data.shape))
    assert np.array_equal(read(container, "only", Box((5,), (9,))), data[5:9]), "the blocks before are there"


@pytest.mark.parametrize(
    "box", [Box((0, 0, 0), (3000, 3, 2)), Box((7, 1, 0), (2990, 3, 1)), Box((2700, 0, 0), (3000, 1, 2))]
)
def test_many_small_records_are_gathered_on_the_host(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.formats.netcdf3.reader._GATHER_BYTES", 10_000)
    path, data = tmp_path / "two.nc", numbers((3000, 3, 2), "i2")
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        for name, length in (("t", None), ("x", 3), ("y", 2)):
            file.createDimension(name, length)
        file.createVariable("other", "i1", ("t",))[:] = np.zeros(3000, "i1")
        file.createVariable("small", "i2", ("t", "x", "y"))[:] = data
    container = NetCDF3(path)
    assert container.table("small", box).encoded.all()
    wanted = data[tuple(slice(first, last) for first, last in zip(box.start, box.stop, strict=True))]
    assert np.array_equal(read(container, "small", box), wanted)
    assert not NetCDF3Writer(path, append=True).table("small", box).encoded.any(), "writing goes to the records"
    os.truncate(path, path.stat().st_size - 20)
    with pytest.raises(penstock.Error, match="the file at"):
        container.decode("small", Box((0, 0, 0), (3000, 3, 2)))


def test_a_box_has_the_rows_of_its_records_only(by_library: tuple[Path, dict[str, np.ndarray]]) -> None:
    container = NetCDF3(by_library[0])
    table = container.table("record_f4", Box((1, 2), (3, 4)))
    assert table.origin.tolist() == [[1, 0], [2, 0]]
    assert len(container.table("record_f4", Box((1, 2), (1, 4))).bytes) == 0
    assert np.array_equal(read(container, "record_f4", Box((1, 2), (3, 4))), by_library[1]["record_f4"][1:3, 2:4])


def test_a_streaming_writers_records_are_counted_by_the_size(tmp_path: Path) -> None:
    path = tmp_path / "stream.nc"
    make_series(path, records=4)
    raw = bytearray(path.read_bytes())
    raw[4:12] = b"\xff" * 8
    path.write_bytes(raw)
    container = NetCDF3(path)
    assert container.info("a").shape == (4, 3)
    path.write_bytes(raw[: len(raw) - 1])
    assert NetCDF3(path).info("a").shape == (3, 3)


def test_fill_is_the_variables_or_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "fill.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 2)
        file.createVariable("own", "f4", ("x",), fill_value=-1.0)
        file.createVariable("plain", "i2", ("x",))
    container = NetCDF3(path)
    assert container.info("own").fill == struct.pack(">f", -1)
    assert container.info("plain").fill == struct.pack(">h", -32767)


def create(path: Path, *datasets: NewDataset, version: int = 5) -> NetCDF3Writer:
    writer = NetCDF3Writer(path, version=version)
    writer.create(datasets)
    return writer


def new(name: str, data: np.ndarray, dimensions: tuple[str, ...] | None = None, **more: Any) -> NewDataset:
    return NewDataset(name, data.shape, DType.of(data.dtype), dimensions=dimensions, **more)


def make_series(path: Path, records: int) -> tuple[np.ndarray, np.ndarray]:
    """Two record variables and a fixed one."""
    a, b = numbers((records, 3), "f4"), numbers((records,), "i2", seed=2)
    fixed = numbers((70, 20), "f8")
    writer = NetCDF3Writer(path)
    made = [
        new("a", a, ("t", "x"), resizable=(None, 3)),
        new("b", b, ("t",), resizable=(None,)),
        new("fixed", fixed, ("p", "q")),
    ]
    for dataset, table, data in zip(made, writer.create(made), (a, b, fixed), strict=True):
        write(writer, table, writer.info(dataset.name), data)
    writer.set_attributes("", {"title": "series"})
    writer.publish(durable=False)
    return a, b


def test_scipy_reads_what_we_write(tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    path, fixed, record, scalar = tmp_path / "ours.nc", numbers((3, 5), "f8"), numbers((4, 5), "i2"), np.float32(4.5)
    made = [new("fixed", fixed), new("record", record, resizable=(None, 5)), new("scalar", scalar)]
    writer = NetCDF3Writer(path, version=2)
    for dataset, table, data in zip(made, writer.create(made), (fixed, record, scalar), strict=True):
        write(writer, table, writer.info(dataset.name), data)
    writer.publish(durable=False)
    with scipy_io.netcdf_file(str(path), mmap=False) as file:
        assert np.array_equal(file.variables["fixed"][...], fixed)
        assert np.array_equal(file.variables["record"][...], record)
        assert file.variables["scalar"].getValue() == scalar


@pytest.mark.parametrize("version", [2, 5])
def test_others_read_what_we_write(version: int, tmp_path: Path) -> None:
    path = tmp_path / "ours.nc"
    written = {f"fixed_{kind}": numbers((3, 5), kind) for kind in (WIDE if version == 5 else CLASSIC)}
    written |= {f"record_{kind}": numbers((4, 5), kind) for kind in (WIDE if version == 5 else CLASSIC)}
    written["scalar"] = np.float32(4.5)
    made = [
        new(name, data, resizable=(None, 5) if name.startswith("record") else None, attributes={"units": "m", "n": 3})
        for name, data in written.items()
    ]
    writer = NetCDF3Writer(path, version=version)
    for dataset, table in zip(made, writer.create(made), strict=True):
        write(writer, table, writer.info(dataset.name), written[dataset.name])
    writer.set_attributes("/", {"title": "ours", "levels": [1.0, 2.0]})
    writer.publish(durable=True)
    with netCDF4.Dataset(path) as file:
        assert file.title == "ours"
        for name, data in written.items():
            assert np.array_equal(file[name][...].data, data), name
            assert file[name].units == "m"
    container = NetCDF3(path)
    for name, data in written.items():
        assert np.array_equal(read(container, name), data)
    if shutil.which("ncdump"):
        text = subprocess.run(
            ["ncdump", "-h", str(path)], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        assert "record = UNLIMITED ; // (4 currently)" in text


def test_data_begin_at_pages(tmp_path: Path) -> None:
    writer = create(tmp_path / "x.nc", *(new(f"v{n}", np.zeros((70, 20))) for n in range(3)))
    for n in range(3):
        assert writer.table(f"v{n}", whole((70, 20))).offset_bytes[0] % 4096 == 0
    writer.abandon()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["i1", "i2", "f8"])
def test_records_are_appended_in_place_and_every_prefix_is_readable(kind: str, tmp_path: Path) -> None:
    path, data = tmp_path / "one.nc", numbers((5, 3), kind)
    writer = create(path, new("only", data[:0], ("t", "x"), resizable=(None, 3)))
    writer.publish(durable=False)
    for step in range(5):
        writer = NetCDF3Writer(path, append=True)
        table = writer.extend("only", (step + 1, 3))
        assert_library_sees(path, data[:step])  # as if we died before a byte was written
        write(writer, table, writer.info("only"), data)
        assert_library_sees(path, data[:step])  # and before the number of records was
        writer.publish(durable=step == 2)
        writer.abandon()
        assert_library_sees(path, data[: step + 1])


def assert_library_sees(path: Path, data: np.ndarray) -> None:
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["only"][...].data, data)


def test_the_library_appends_to_ours_and_we_to_its(tmp_path: Path) -> None:
    path = tmp_path / "turns.nc"
    a, b = make_series(path, records=2)
    with netCDF4.Dataset(path, "a") as file:
        file["a"][2] = [7, 8, 9]
        file["b"][2] = 5
    writer = NetCDF3Writer(path, append=True)
    write(writer, writer.extend("a", (4, 3)), writer.info("a"), np.full((4, 3), 6.0))
    writer.publish(durable=False)
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["a"][...].data, [*a, [7, 8, 9], [6, 6, 6]])
        assert np.array_equal(file["b"][:3].data, [*b, 5])
        assert file["b"][3] is np.ma.masked, "a variable that was not extended holds its fill value"


def test_a_stream_is_appended_to_without_a_moment_of_garbage(tmp_path: Path) -> None:
    path = tmp_path / "stream.nc"
    make_series(path, records=2)
    with path.open("r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 8)
    writer = NetCDF3Writer(path, append=True)
    writer.extend("a", (9, 3))
    assert NetCDF3(path).info("a").shape == (2, 3)
    writer.abandon()


def test_abandoned_appends_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "series.nc"
    make_series(path, records=2)
    before = path.read_bytes()
    writer = NetCDF3Writer(path, append=True)
    write(writer, writer.extend("a", (90, 3)), writer.info("a"), np.ones((90, 3)))
    writer.abandon()
    assert path.read_bytes() == before


def test_a_new_file_appears_whole_and_replaces_an_older_one_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    path.write_bytes(b"older")
    writer = create(path, new("v", np.zeros(9)))
    assert path.read_bytes() == b"older"
    writer.publish(durable=False)
    assert read(NetCDF3(path), "v").tolist() == [0] * 9
    assert list(tmp_path.iterdir()) == [path]


def test_fixed_variables_may_come_one_by_one(tmp_path: Path) -> None:
    path, writer = tmp_path / "x.nc", None
    writer = create(path, new("r", np.zeros((0, 2), "f4"), resizable=(None, 2)))
    data = {f"v{n}": numbers((n + 1, 700), "f4", seed=n) for n in range(5)}
    for name, values in data.items():
        (table,) = writer.create([new(name, values)])
        write(writer, table, writer.info(name), values)
    write(writer, writer.extend("r", (2, 2)), writer.info("r"), np.ones((2, 2)))
    with pytest.raises(penstock.Error, match="laid out already"):
        writer.create([new("late", np.zeros(3))])
    writer.publish(durable=False)
    with netCDF4.Dataset(path) as file:
        for name, values in data.items():
            assert np.array_equal(file[name][...], values)
        assert file["r"][...].sum() == 4


@pytest.mark.parametrize(
    ("dataset", "version", "words"),
    [
        (NewDataset("v", (3,), DType.of("bfloat16")), 5, "has no bfloat16; it has int8"),
        (NewDataset("v", (3,), DType.of("int64")), 2, "CDF-2 has no int64"),
        (NewDataset("v", (0, 3), DType.of("f4")), 5, "make it resizable"),
        (NewDataset("v", (2, 3), DType.of("f4"), resizable=(2, None)), 5, "only the first dimension can grow"),
        (NewDataset("v", (2, 3), DType.of("f4"), resizable=(9, 3)), 5, "without limit"),
        (NewDataset("v", (4, 4), DType.of("f4"), chunk_shape=(2, 2)), 5, "has no chunks"),
        (NewDataset("v", (4, 4), DType.of("f4"), shard_shape=(2, 2)), 5, "shards are Zarr's"),
        (NewDataset("g/v", (4, 4), DType.of("f4")), 5, "not a valid name for a variable"),
        (NewDataset("v", (1 << 31,), DType.of("f8")), 2, "too large for CDF-2"),
        (NewDataset("v", (4,), DType.of("f4"), attributes={"a": ["b", "c"]}), 5, "join texts"),
        (NewDataset("v", (4,), DType.of("i2"), attributes={"_FillValue": 1.5}), 5, "is no int16"),
        (NewDataset("v", (4,), DType.of("i2"), dimensions=("x", "y")), 5, "2 names for 1"),
    ],
)
def test_what_the_format_cannot_say_is_refused(dataset: NewDataset, version: int, words: str, tmp_path: Path) -> None:
    writer = NetCDF3Writer(tmp_path / "x.nc", version=version)
    with pytest.raises(penstock.Error, match=words) as caught:
        writer.create([dataset])
    assert repr(dataset.name) in str(caught.value)
    writer.abandon()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_shows_at_creation(tmp_path: Path) -> None:
    writer = NetCDF3Writer(tmp_path / "x.nc")
    with pytest.raises(penstock.Error) as caught:
        writer.create([NewDataset("v", (1 << 59,), DType.of("f4"))])
    assert caught.value.code in ("no_space", "io_error")
    writer.abandon()


def test_attributes_that_fit_into_a_page_are_set_in_place(tmp_path: Path) -> None:
    path = tmp_path / "series.nc"
    make_series(path, records=2)
    writer = NetCDF3Writer(path, append=True)
    writer.set_attributes("a", {"units": "K"})
    writer.set_attributes("", {"title": "other"})
    writer.publish(durable=False)
    writer.abandon()
    with netCDF4.Dataset(path) as file:
        assert (file.title, file["a"].units) == ("other", "K")
    with pytest.raises(penstock.Error, match="more than a page"):
        NetCDF3Writer(path, append=True).set_attributes("", {"history": "x" * 9000})


def test_a_file_cut_short_names_the_variable_and_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "series.nc"
    make_series(path, records=5)
    os.truncate(path, path.stat().st_size - 8)
    container = NetCDF3(path)
    with pytest.raises(penstock.Error, match=r"dataset 'b'.*the file at") as caught:
        container.table("b", whole((5,)))
    assert caught.value.code == "damaged"
    assert len(container.table("b", whole((4,))).bytes) == 4, "what is there can be read"
    with pytest.raises(penstock.Error, match="was cut short"):  # what is missing would become zeros
        NetCDF3Writer(path, append=True)


def test_a_file_that_took_the_name_of_the_locked_one_is_not_written(tmp_path: Path) -> None:
    path, other = tmp_path / "series.nc", tmp_path / "other.nc"
    make_series(path, records=2)
    make_series(other, records=7)
    before = other.read_bytes()
    writer = NetCDF3Writer(path, append=True)
    write(writer, writer.extend("a", (3, 3)), writer.info("a"), np.ones((3, 3)))
    other.replace(path)
    with pytest.raises(penstock.Error, match="another file has taken its name"):
        writer.publish(durable=False)
    writer.abandon()
    assert path.read_bytes() == before


def test_unknown_names_come_with_close_ones(tmp_path: Path) -> None:
    make_series(tmp_path / "x.nc", 1)
    with pytest.raises(KeyError, match="close names: fixed"):
        NetCDF3(tmp_path / "x.nc").info("fixd")


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("absent", "fifo", "."):
        with pytest.raises(penstock.Error):
            NetCDF3(tmp_path / name)
