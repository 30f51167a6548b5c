"""netCDF-4: what the netCDF library wrote is read as it shows it, and what we write it reads and goes on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")
import format_kit as kit  # noqa: E402
from hdf5_kit import debian_tool, fetch, run_tool  # noqa: E402
from hdf5_steps import Steps  # noqa: E402

import penstock  # noqa: E402
from penstock import Error  # noqa: E402
from penstock._arrays.dtype import DType  # noqa: E402
from penstock.formats.model import Box, NewDataset  # noqa: E402
from penstock.formats.netcdf4.reader import NetCDF4  # noqa: E402
from penstock.formats.netcdf4.write import NetCDF4Writer  # noqa: E402

NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.nc"


def field(steps: int, *shape: int) -> np.ndarray:
    return np.arange(steps * np.prod(shape, dtype=int)).reshape(steps, *shape).astype("f4")


# -- reading


def make_stock(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, length in {"time": None, "y": 3, "x": 4, "nv": 2}.items():
            file.createDimension(name, length)
        file.createVariable("y", "f8", ("y",))[:] = [1, 2, 3]
        field_t = file.createVariable("T", "f4", ("time", "y", "x"), fill_value=-1)
        field_t.setncatts({"units": "K", "n": 3, "list": np.arange(3), "empty": "", "coordinates": "lat lon"})
        field_t[0:2] = field(2, 3, 4)
        packed = file.createVariable("packed", "i2", ("time", "x"), zlib=True, shuffle=True)
        packed[0:5] = np.arange(20).reshape(5, 4)
        file.createVariable("bounds", "f8", ("y", "nv"))[:] = np.arange(6).reshape(3, 2)
        file.createVariable("nv", "i4", ("nv", "x"))[:] = 7  # a coordinate variable of two dimensions
        file.createVariable("g/x", "i4", ("nv",))
        file.createVariable("letters", "S1", ("x",))[:] = np.array([b"a", b"b", b"c", b"d"])
        file.createVariable("words", str, ("x",))
        file.createVariable("one", "i4", ())[...] = 5
        file.title = "stock"


def test_names_dimensions_and_attributes_are_those_of_the_library(path: Path) -> None:
    make_stock(path)
    with penstock.open(path, device="host") as file:
        with netCDF4.Dataset(path) as stock:
            names = [*stock.variables, *(f"g/{name}" for name in stock["g"].variables)]
            assert sorted(file) == sorted(names)
            for name in names:
                assert file[name].dims == stock[name].dimensions, name
                assert file[name].shape == stock[name].shape, name
                assert set(file[name].attrs) == set(stock[name].ncattrs()), name
        assert file["T"].attrs["units"] == "K"
        assert (file["T"].attrs["n"], file["T"].attrs["_FillValue"], file["T"].attrs["empty"]) == (3, -1, "")
        assert dict(file.attrs) == {"title": "stock"}
        assert file["words"].dtype.name == "text" and not file["words"].info.refusal


def test_a_dimension_without_a_variable_is_none_by_its_name_either(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", 5)
        file.createVariable("x", "f4", ("t",))[:] = np.arange(5)
    with penstock.open(path, device="host") as found:
        assert "t" not in found and list(found) == ["x"]
        with pytest.raises(KeyError, match="'t' is a dimension, and no variable has its name"):
            found["t"]
    with pytest.raises(KeyError, match="'t' is a dimension"):
        penstock.load(path, "host", names=["x", "t"])


@pytest.mark.parametrize("text", ["days since 2000-01-01", "größe", ""])
def test_one_text_in_an_array_is_a_text_as_for_the_library(path: Path, text: str) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createVariable("one", "i4", ())[...] = 5
        for target in (file, file["one"]):
            target.setncattr_string("units", text)
            target.setncattr_string("several", [text, "b"])
    with penstock.open(path, device="host") as ours, netCDF4.Dataset(path) as stock:
        assert dict(ours.attrs) == {name: stock.getncattr(name) for name in stock.ncattrs()}
        assert dict(ours["one"].attrs) == {"units": text, "several": [text, "b"]}
    with penstock.open(path, device="host", format="hdf5") as file:
        assert file.attrs["units"] == [text]  # HDF5 tells them apart


def test_values_are_those_of_the_library(path: Path) -> None:
    make_stock(path)
    with penstock.open(path, device="host") as file, netCDF4.Dataset(path) as stock:
        stock.set_auto_mask(False)
        for name in file:
            if file[name].dtype.name == "text":
                assert file[name].read().tolist() == stock[name][...].tolist(), name
            else:
                assert np.asarray(file[name].read()).tobytes() == stock[name][...].tobytes(), name


@pytest.mark.parametrize("chunks", [(1, 3, 4), (4, 2, 3)])
def test_steps_that_a_variable_lacks_are_fill_values(path: Path, chunks: tuple) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, length in {"time": None, "y": 3, "x": 4}.items():
            file.createDimension(name, length)
        short = file.createVariable("short", "f4", ("time", "y", "x"), chunksizes=chunks, fill_value=9)
        short[0:2] = field(2, 3, 4)
        file.createVariable("time", "f8", ("time",))[0:7] = np.arange(7)
    container = NetCDF4(path)
    assert container.info("short").shape == (7, 3, 4)
    expected = np.concatenate([field(2, 3, 4), np.full((5, 3, 4), 9, "f4")])
    assert fetch(container, "short") == expected.tobytes()
    assert fetch(container, "short", Box((1, 1, 0), (4, 2, 3))) == expected[1:4, 1:2, 0:3].tobytes()
    assert fetch(container, "short", Box((5, 0, 0), (7, 3, 4))) == expected[5:].tobytes()
    with penstock.open(path, device="host") as file:
        kit.check_selections(file, "short", expected)


def test_a_variable_named_like_a_dimension_without_being_its_coordinate(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 4)
        file.createDimension("y", 2)
        file.createVariable("x", "i4", ("y",))[:] = [5, 6]
    container = NetCDF4(path)
    assert list(container.names()) == ["x"]
    assert container.info("x").dimensions == ("y",)
    assert fetch(container, "x") == np.array([5, 6], "<i4").tobytes()


def test_an_hdf5_file_without_dimensions_has_none(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["g/x"] = field(2, 3)
    container = NetCDF4(path)
    assert container.info("g/x").dimensions is None
    assert fetch(container, "g/x") == field(2, 3).tobytes()


# -- writing


def test_the_kit(tmp_path: Path) -> None:
    def stock(path: Path) -> np.ndarray:
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return file["data"][...]

    kit.check_round_trips(tmp_path, ".nc", dtypes=NUMBERS, stock=stock)
    kit.check_appends(tmp_path, ".nc")
    kit.check_changes_in_place(tmp_path, ".nc")
    kit.check_big_endian_values(tmp_path, ".nc")
    kit.check_attributes(tmp_path, ".nc")
    kit.check_leaves_nothing_after_an_error(tmp_path, ".nc")


def test_bools_come_back_and_xarray_knows_them(tmp_path: Path) -> None:
    kit.check_round_trips(tmp_path, ".nc", dtypes=("bool",), shapes=[(5,)])
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(tmp_path / "case0.nc", engine="netcdf4") as found:
        assert found["data"].dtype == bool


def make_ours(path: Path, steps: int = 3) -> None:
    with penstock.create(path, device="host") as file:
        layout = {"resizable": (None, 3, 4), "dimensions": ("time", "y", "x")}
        attributes = {"units": "K", "_FillValue": -1.0, "valid_range": [0.0, 5.0], "coordinates": "time"}
        T = file.create_dataset("T", (0, 3, 4), "f4", attributes=attributes, **layout)
        file.create_dataset("time", (0,), "f8", resizable=(None,), dimensions=("time",), attributes={"units": "s"})
        file.create_dataset("y", (3,), "f8", dimensions=("y",))[...] = np.arange(3.0)
        file.create_dataset("g/q", (4, 2), "i2", dimensions=("x", "nv"))[...] = np.arange(8, dtype="i2").reshape(4, 2)
        file.attrs["title"] = "käse"
        file.attrs["words"] = ["a", "bc"]
        T.append(field(steps, 3, 4))
        file["time"].append(np.arange(float(steps)))


def test_stock_tools_read_what_we_write(path: Path) -> None:
    make_ours(path)
    with netCDF4.Dataset(path) as file:
        assert {name: (len(one), one.isunlimited()) for name, one in file.dimensions.items()} == {
            "time": (3, True),
            "y": (3, False),
            "x": (4, False),
        }
        assert list(file.variables) == ["T", "time", "y"]
        assert file["T"].dimensions == ("time", "y", "x")
        assert (file["T"].units, file["T"]._FillValue, file["T"].chunking()) == ("K", -1, [85, 3, 4])
        assert np.array_equal(file["T"][...], field(3, 3, 4))
        assert (file.title, file.words) == ("käse", ["a", "bc"])
        assert file["g/q"].dimensions == ("x", "nv")
        assert [len(one) for one in file["g"].dimensions.values()] == [2]
    shown = run_tool(debian_tool("ncdump"), path)
    assert "time = UNLIMITED ; // (3 currently)" in shown
    assert 'T:units = "K"' in shown
    run_tool(debian_tool("h5dump"), "-H", path)
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(path, engine="netcdf4") as found:
        assert dict(found.sizes) == {"time": 3, "y": 3, "x": 4}
        assert list(found.coords) == ["time", "y"]
        assert np.array_equal(found["T"].values, field(3, 3, 4))


def test_the_netcdf_library_goes_on_where_we_stopped_and_we_where_it_did(path: Path) -> None:
    make_ours(path)
    with netCDF4.Dataset(path, "a") as file:
        file["T"][3:5] = field(5, 3, 4)[3:]
        file["time"][3:5] = [3, 4]
        file.createVariable("more", "f4", ("time", "x"))[0:5] = 2
        file.history = "went on"
    with penstock.open(path, write=True, device="host") as file:
        file["T"].append(field(6, 3, 4)[5:])
        file["time"].append(np.float64(5))
        file["more"].append(np.full(4, 2, "f4"))
        file.attrs["title"] = "another, longer title"
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["T"][...], field(6, 3, 4))
        assert file["time"][...].tolist() == [0, 1, 2, 3, 4, 5]
        assert (file["more"][...] == 2).all()
        assert (file.title, file.history) == ("another, longer title", "went on")


def test_variables_are_added_to_existing_files(path: Path) -> None:
    make_ours(path)
    for number in range(5):
        with penstock.open(path, write=True, device="host", durable=True) as file:
            file.create_dataset(f"z{number}", (3, 5), "f4", dimensions=("y", f"k{number}"))[...] = field(3, 5)
            file.create_dataset(f"s{number}", (3, 3, 4), "f4", dimensions=("time", "y", "x"))[...] = field(3, 3, 4)
            file.create_dataset(f"k{number}", (5,), "f8", dimensions=(f"k{number}",))[...] = np.arange(5.0)
    with netCDF4.Dataset(path) as file:
        for number in range(5):
            assert file[f"z{number}"].dimensions == ("y", f"k{number}")
            assert np.array_equal(file[f"z{number}"][...], field(3, 5))
            assert np.array_equal(file[f"s{number}"][...], field(3, 3, 4))
        assert len(file.dimensions) == 8
    run_tool(debian_tool("ncdump"), "-h", path)


@pytest.mark.parametrize("how", ["ours", "stock"])
def test_every_state_between_two_steps_is_a_valid_file(path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "ours":
        make_ours(path)
    else:
        make_stock(path)
    steps = Steps(monkeypatch)
    with netCDF4.Dataset(path) as file:
        old = file["T"][:2].data.copy()

    def check(image: Path) -> None:
        with netCDF4.Dataset(image) as file:
            file.set_auto_mask(False)
            found = file["T"][...]
            assert np.array_equal(found[: len(old)], old)
            assert set(before) <= set(file.variables)
            assert file.title in ("käse", "stock", "new")

    for number in range(6):
        writer = NetCDF4Writer(path, append=True)
        before = [name for name in writer.names() if "/" not in name]
        writer.extend("T", (writer.info("T").shape[0] + 1, 3, 4))
        if number == 3 and how == "ours":
            writer.create([NewDataset("new", (3,), DType.of("f4"), dimensions=("y",))])
            writer.set_attributes("", {"title": "new"})
        steps.publish(writer, check)
    assert steps.looked > 15


def test_netcdf_files_of_the_library_get_steps(path: Path) -> None:
    make_stock(path)
    with penstock.open(path, write=True, device="host") as file:
        assert file["T"].shape == (2, 3, 4)  # while it is written: as far as it was written
        file["T"].append(field(5, 3, 4)[2:])
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["T"][...], field(5, 3, 4))
        assert np.array_equal(file["packed"][...], np.arange(20).reshape(5, 4))


def test_missing_values_are_those_of_netcdf(path: Path) -> None:
    with penstock.create(path, device="host") as file:
        grows = file.create_dataset("a", (0, 4), "f4", resizable=(None, 4), dimensions=("time", "x"))
        file.create_dataset("b", (0,), "i2", resizable=(None,), dimensions=("time",))
        grows.append(field(2, 4))
        file["b"].append(np.arange(5, dtype="i2"))
    with netCDF4.Dataset(path) as file:
        assert file["a"].shape == (5, 4)
        assert file["a"][2:].mask.all()
        assert np.array_equal(file["a"][:2], field(2, 4))
    with penstock.open(path, device="host") as file:
        assert file["a"].shape == (5, 4)
        assert np.allclose(np.asarray(file["a"][2:]), 9.969209968386869e36)


def test_dimensions_must_agree(path: Path) -> None:
    writer = NetCDF4Writer(path)
    writer.create([NewDataset("a", (3, 4), DType.of("f4"), dimensions=("y", "x"))])
    for new, words in (
        (NewDataset("b", (5,), DType.of("f4"), dimensions=("x",)), "'x' has length 4, not 5"),
        (NewDataset("b", (4,), DType.of("f4"), dimensions=("x", "y")), "2 names for 1"),
        (NewDataset("b", (4,), DType.of("f4"), resizable=(None,), dimensions=("x",)), "'x' has length 4"),
        (NewDataset("b", (4,), DType.of("complex64")), "complex64"),
        (NewDataset("b", (4,), DType.of("float16")), "float16"),
        (NewDataset("b", (4,), DType.of("f4"), resizable=(8,)), "no limit"),
        (NewDataset("b", (4,), DType.of("f4"), dimensions=("a/b",)), "not a valid name for a dimension"),
    ):
        with pytest.raises(Error, match=words):
            writer.create([new])
    assert list(writer.names()) == ["a"]
    writer.create([NewDataset("g/b", (5,), DType.of("f4"), dimensions=("x",))])  # another x, of the group
    writer.publish(durable=False)
    with netCDF4.Dataset(path) as file:
        assert (len(file.dimensions["x"]), len(file["g"].dimensions["x"])) == (4, 5)


def test_a_variable_named_like_another_dimension_is_refused(path: Path) -> None:
    writer = NetCDF4Writer(path)
    writer.create([NewDataset("x", (3,), DType.of("f4"), dimensions=("y",))])
    writer.create([NewDataset("b", (4,), DType.of("f4"), dimensions=("x",))])
    with pytest.raises(Error, match="'x' has the name of a dimension"):
        writer.publish(durable=False)
    writer.abandon()
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones((2, 2)), "attribute 'a' has 2 dimensions"),
        ([[1, 2], [3, 4]], "attribute 'a' has 2 dimensions"),
        (np.ones((1, 1, 1)), "attribute 'a' has 3 dimensions"),
        ([["x"], ["y"]], "attribute 'a' has 2 dimensions"),
        (1 + 2j, "attribute 'a' is complex"),
        ([[1], [2, 3]], "attribute 'a' cannot be written"),
    ],
)
def test_attributes_that_the_library_cannot_read_are_refused_before_anything_is_made(
    value: Any, words: str, path: Path
) -> None:
    with penstock.create(path, device="host") as file:
        file.create_dataset("v", (3,), "f4", dimensions=("x",))[...] = np.zeros(3, "f4")
        with pytest.raises(Error, match=words):
            file.create_dataset("w", (3,), "f4", dimensions=("y",), attributes={"a": value})
        with pytest.raises(Error, match=f"'v'.*{words}"):
            file["v"].attrs["a"] = value
        with pytest.raises(Error, match=words):
            file.attrs["a"] = value
        file.attrs["list"] = np.arange(3)
    run_tool(debian_tool("ncdump"), "-h", path)
    with netCDF4.Dataset(path) as file:
        assert list(file.variables) == ["v"]
        assert list(file.dimensions) == ["x"]
        assert file["v"].ncattrs() == []
        assert file.getncattr("list").tolist() == [0, 1, 2]


def test_a_coordinate_variable_of_several_dimensions(path: Path) -> None:
    with penstock.create(path, device="host") as file:
        names = file.create_dataset("station", (3, 8), "i1", dimensions=("station", "letters"))
        names[...] = np.arange(24, dtype="i1").reshape(3, 8)
        file.create_dataset("T", (3,), "f4", dimensions=("station",))[...] = field(3)
    with netCDF4.Dataset(path) as file:
        assert file["station"].dimensions == ("station", "letters")
        assert file["T"].dimensions == ("station",)
    assert NetCDF4(path).info("station").dimensions == ("station", "letters")


def test_reading_back_before_publishing(path: Path) -> None:
    with penstock.create(path, device="host") as file:
        dataset = file.create_dataset("a", (3, 4), "f4", dimensions=("y", "x"))
        dataset[...] = field(3, 4)
        assert dataset.dims == ("y", "x")
        kit.same(dataset.read(), field(3, 4))
        assert list(file) == ["a"]


def test_many_steps_one_by_one(path: Path) -> None:
    make_ours(path, 0)
    for step in range(100):
        with penstock.open(path, write=True, device="host") as file:
            file["T"].append(field(100, 3, 4)[step])
            file["time"].append(np.float64(step))
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["T"][...], field(100, 3, 4))
        assert len(file.dimensions["time"]) == 100


def test_options_of_reading(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 100)
        file.createVariable("a", "f4", ("x",), fletcher32=True, chunksizes=(10,))[:] = field(100)
    options: dict[str, Any] = {"skip_checksums": True}
    with penstock.open(path, device="host", **options) as file:
        kit.same(file["a"].read(), field(100))
        assert file.evidence()["formats"]["host_decoded_bytes"] == 0


def test_hdf5_is_asked_once_for_the_name_of_a_dimension(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with penstock.create(path, device="host") as file:
        layout = {"dimensions": ("y", "x")}
        file.create_datasets({f"g{i % 3}/v{i}": ((2, 3), "f4", layout) for i in range(30)})
    asked: list[bytes] = []

    class Counting:
        @staticmethod
        def get_name(one: h5py.h5i.ObjectID) -> bytes:
            asked.append(h5py.h5i.get_name(one))
            return asked[-1]

    monkeypatch.setattr("penstock.formats.netcdf4.dims.h5i", Counting)
    with penstock.open(path, device="host") as file:
        assert {file[name].dims for name in file} == {("y", "x")}
    assert len(asked) == len(set(asked)) == 6
