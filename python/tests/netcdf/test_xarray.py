"""xarray's engine "penstock" gives what xarray's own engines give, lazily."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core

xarray = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")

from penstock.xarray import PenstockBackendEntrypoint  # noqa: E402
from penstock.xarray.decode import decoding_of  # noqa: E402
from penstock.xarray.lazy import as_slice, read_outer  # noqa: E402 - needs xarray


def climate() -> Any:
    """Times, scale factors, missing values, coordinates, text."""
    time = np.array(["2000-01-01", "2000-01-02T12", "2000-01-05"], "datetime64[ns]")
    field = np.random.default_rng(1).normal(280, 10, (3, 4, 5)).astype("f4")
    field[0, 1, 2] = np.nan
    data = xarray.Dataset(
        {
            "T": (("time", "y", "x"), field, {"units": "K", "long_name": "Temperatur"}),
            "packed": (("time", "x"), np.arange(15.0).reshape(3, 5) / 10),
            "counts": (("y",), np.arange(4, dtype="i4")),
            "scalar": ((), np.float64(3.5)),
        },
        coords={"time": time, "x": np.arange(5.0), "y": [10, 20, 30, 40], "height": ("y", [1.0, 2, 3, 4])},
        attrs={"title": "test", "levels": [1.0, 2.0]},
    )
    data["packed"].encoding = {"dtype": "i2", "scale_factor": 0.1, "add_offset": 0.5, "_FillValue": -99}
    return data


WRITERS = {
    "netcdf3": lambda data, path: data.to_netcdf(path, format="NETCDF3_64BIT", engine="scipy", unlimited_dims=["time"]),
    "netcdf4": lambda data, path: data.to_netcdf(path, format="NETCDF4", engine="netcdf4", unlimited_dims=["time"]),
    "zarr3": lambda data, path: data.to_zarr(path, zarr_format=3, consolidated=False),
    "zarr2": lambda data, path: data.to_zarr(path, zarr_format=2, consolidated=False),
}
ENGINES = {"netcdf3": "scipy", "netcdf4": "netcdf4", "zarr3": "zarr", "zarr2": "zarr"}


@pytest.fixture(params=WRITERS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    if request.param.startswith("zarr"):
        pytest.importorskip("zarr")
    else:
        pytest.importorskip("scipy" if request.param == "netcdf3" else "penstock.formats.netcdf4.reader")
    path = tmp_path / ("x.zarr" if request.param.startswith("zarr") else "x.nc")
    WRITERS[request.param](climate(), path)
    return request.param, path


def open_both(stored: tuple[str, Path], own: Any = None, **options: Any) -> tuple[Any, Any]:
    """By our engine (`own`: options of it) and by one of xarray's."""
    more = {"consolidated": False} if stored[0].startswith("zarr") else {}
    ours = xarray.open_dataset(stored[1], engine=PenstockBackendEntrypoint, **options, **(own or {}))
    return ours, xarray.open_dataset(stored[1], engine=ENGINES[stored[0]], **options, **more)


@pytest.mark.parametrize("decoded", [True, False])
def test_it_gives_what_xarrays_own_engines_give(stored: tuple[str, Path], decoded: bool) -> None:
    ours, theirs = open_both(stored, decode_cf=decoded)
    with ours, theirs:
        assert_same(ours, theirs)
        assert set(ours.coords) == set(theirs.coords)
        assert ours.encoding["unlimited_dims"] == (set() if stored[0].startswith("zarr") else {"time"})


def assert_same(ours: Any, theirs: Any) -> None:
    xarray.testing.assert_identical(ours.load(), theirs.load())
    for name in theirs.variables:
        assert ours[name].dtype == theirs[name].dtype, name


def test_values_are_read_when_they_are_needed(stored: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, _ = open_both(stored)
    reads: list[Any] = []
    read = penstock.Dataset.read

    def spy(self: Any, selection: Any = ..., **options: Any) -> Any:
        reads.append((self.name, selection))
        return read(self, selection, **options)

    monkeypatch.setattr(penstock.Dataset, "read", spy)
    with ours:
        part = ours["T"].isel(time=1, y=slice(1, 3)).isel(y=-1, x=slice(None, None, 2))
        assert reads == []
        part.load()
        assert dict(reads) == {"T": (1, 2, slice(0, 5, 2)), "height": (2,)}, "one read each, of the part alone"
        assert part.shape == (3,)


@pytest.mark.parametrize(
    "index",
    [
        {"time": 0},
        {"x": [0, 3, 1]},
        {"x": [4, 4, 0], "y": [0, 3]},
        {"y": slice(None, None, -1), "x": slice(1, 4, 2)},
        {"time": [0, 2], "y": [3, 0, 2], "x": [-1, 0, 2, 4]},
        {"x": np.array([], int)},
    ],
)
def test_indexing_is_xarrays(stored: tuple[str, Path], index: dict[str, Any]) -> None:
    ours, theirs = open_both(stored)
    with ours, theirs:
        xarray.testing.assert_identical(ours["T"].isel(index).load(), theirs["T"].isel(index).load())


def test_pointwise_indexing(stored: tuple[str, Path]) -> None:
    ours, theirs = open_both(stored)
    where = {"x": xarray.DataArray([0, 3, 3], dims="p"), "y": xarray.DataArray([1, 0, 2], dims="p")}
    with ours, theirs:
        xarray.testing.assert_identical(ours["T"].isel(where).load(), theirs["T"].isel(where).load())
        where = {"x": 2.0, "y": 30, "time": np.datetime64("2000-01-05")}
        xarray.testing.assert_identical(ours["T"].sel(where).load(), theirs["T"].sel(where).load())


def test_a_pickled_dataset_opens_its_file_again(stored: tuple[str, Path]) -> None:
    ours, theirs = open_both(stored)
    with ours, theirs:
        again = pickle.loads(pickle.dumps(ours))
        xarray.testing.assert_identical(again.load(), theirs.load())
        again.close()


def test_groups_and_dropped_variables(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    data = climate()
    zarr.open_group(tmp_path / "x.zarr", mode="w", attributes={"of": "root"})
    data.to_zarr(tmp_path / "x.zarr", group="in/side", consolidated=False)
    options = {"engine": PenstockBackendEntrypoint, "group": "in/side", "drop_variables": ["T", "height"]}
    with xarray.open_dataset(tmp_path / "x.zarr", **options) as ours:
        assert set(ours.variables) == {"packed", "counts", "scalar", "time", "x", "y"}
        assert ours.attrs["title"] == "test"
    with pytest.raises(KeyError, match="no group 'other'"):
        xarray.open_dataset(tmp_path / "x.zarr", engine=PenstockBackendEntrypoint, group="other")


@pytest.mark.parametrize(("kind", "options"), [("nc", {}), ("zarr", {"zarr_format": 3}), ("zarr", {"zarr_format": 2})])
def test_trees_of_groups_are_xarrays(tmp_path: Path, kind: str, options: dict[str, Any]) -> None:
    path = tmp_path / f"x.{kind}"
    values = {"/": numbers("x", 3), "/a": numbers("p", 2), "/a/b/c": numbers("p", 2), "/d": numbers("q", 4)}
    tree = xarray.DataTree.from_dict(values | {"/a/b": xarray.Dataset(attrs={"note": "between"})})
    tree.to_netcdf(path) if kind == "nc" else tree.to_zarr(path, **options)
    engine, more = ("netcdf4", {}) if kind == "nc" else ("zarr", {"consolidated": False})
    for group in (None, "a", "/a/b"):
        ours = xarray.open_groups(path, engine=PenstockBackendEntrypoint, group=group)
        theirs = xarray.open_groups(path, engine=engine, group=group, **more)
        assert ours.keys() == {f"/{name.strip('./')}" for name in theirs}
        for name, one in theirs.items():
            xarray.testing.assert_identical(ours[f"/{name.strip('./')}"].load(), one.load())
    with xarray.open_datatree(path, engine=PenstockBackendEntrypoint) as ours:
        xarray.testing.assert_identical(ours.load(), tree)
        assert float(ours["a/b/c/v"].sum()) == 1


def numbers(dim: str, count: int) -> xarray.Dataset:
    return xarray.Dataset(
        {"v": (dim, np.arange(count, dtype="f8"))}, {dim: np.arange(count) * 2}, {"count": str(count)}
    )


def test_records_of_classic_netcdf_are_no_chunks(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    made = xarray.Dataset({"T": (("time", "x"), np.zeros((4, 5)))})
    made.to_netcdf(path, format="NETCDF3_64BIT", engine="scipy", unlimited_dims=["time"])
    with xarray.open_dataset(path, engine=PenstockBackendEntrypoint) as data:
        assert not {"chunksizes", "preferred_chunks"} & data["T"].encoding.keys()


def test_an_address_is_no_name(tmp_path: Path) -> None:
    for use in (xarray.open_dataset, xarray.open_datatree, xarray.open_groups):
        with pytest.raises(penstock.Error, match=r"open https://a.b/x.nc: it is a URL \(https\), Penstock takes names"):
            use("https://a.b/x.nc", engine=PenstockBackendEntrypoint)


def test_text_of_classic_netcdf(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    data = xarray.Dataset({"name": (("s", "n"), np.array([list("abc"), list("de ")], "S1")), "tag": ("s", ["xy", "z"])})
    data.to_netcdf(tmp_path / "x.nc", format="NETCDF3_CLASSIC", engine="scipy")
    with (
        xarray.open_dataset(tmp_path / "x.nc", engine=PenstockBackendEntrypoint) as ours,
        xarray.open_dataset(tmp_path / "x.nc", engine="scipy") as theirs,
    ):
        assert_same(ours, theirs)


def test_what_cannot_be_read_is_left_out_with_a_word(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a", data=np.arange(3), dimension_names=("x",))
    group.create_array("s", shape=(3,), dtype="i4", dimension_names=("x",))
    document = json.loads((tmp_path / "x.zarr/s/zarr.json").read_text()) | {"data_type": "unheard"}
    (tmp_path / "x.zarr/s/zarr.json").write_text(json.dumps(document))
    with pytest.warns(UserWarning, match=r"s \(its elements are of type 'unheard'"):
        opened = xarray.open_dataset(tmp_path / "x.zarr", engine=PenstockBackendEntrypoint)
    with opened:
        assert set(opened.variables) == {"a"}


def test_datasets_without_names_of_dimensions(tmp_path: Path) -> None:
    with penstock.create(tmp_path / "x.zarr", device="host") as file:
        file["a"] = np.ones((3, 3, 4))
    with xarray.open_dataset(tmp_path / "x.zarr", engine=PenstockBackendEntrypoint) as opened:
        assert opened["a"].dims == ("phony_dim_3", "phony_dim_3_1", "phony_dim_4")


def test_open_files_are_no_names(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="by name"):
        PenstockBackendEntrypoint().open_dataset(b"CDF\x01")


def test_the_engine_is_registered() -> None:
    engines = xarray.backends.list_engines()
    assert "penstock" in engines
    assert isinstance(engines["penstock"], PenstockBackendEntrypoint)


def test_outer_indexing_is_numpys() -> None:
    """All kinds of keys, by reads of integers and slices only; positions far apart are read run by run."""
    chance = np.random.default_rng(2)
    whole = np.arange(60 * 9 * 11).reshape(60, 9, 11)
    read: list[int] = []

    def plain(index: tuple[Any, ...]) -> Any:
        assert all(isinstance(one, int | slice) for one in index)
        read.append(whole[index].size)
        return whole[index]

    for _ in range(300):
        key = tuple(one_key(chance, length) for length in whole.shape)
        expected = whole
        for axis in reversed(range(3)):
            expected = expected[(slice(None),) * axis + (key[axis],)]
        read.clear()
        assert np.array_equal(read_outer(key, whole.shape, plain), expected)
        assert sum(read) <= 64 * max(1, expected.size)
    read.clear()
    read_outer((np.array([0, 1, 30, 59]), slice(None), 3), whole.shape, plain)
    assert read == [2 * 9, 9, 9]


def one_key(chance: np.random.Generator, length: int) -> Any:
    kind = chance.integers(4)
    if kind == 0:
        return int(chance.integers(length))
    if kind == 1:
        return slice(int(chance.integers(length)), None, int(chance.integers(1, 4)))
    return chance.integers(-length, length, chance.integers(0, 5))


@pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason="no GPU")
def test_values_come_as_cupy_arrays(stored: tuple[str, Path]) -> None:
    """But for indices, and for times, which CuPy does not have; decoded as by xarray's own engines."""
    cupy = pytest.importorskip("cupy")
    ours, theirs = open_both(stored, {"device": "cuda:0"})
    with ours, theirs:
        for name in ("T", "packed", "counts", "scalar", "height"):
            found = ours[name].load()
            assert isinstance(found.data, cupy.ndarray), name
            assert np.allclose(found.data.get(), theirs[name].values, equal_nan=True), name
        for name in ("time", "x", "y"):
            assert np.array_equal(ours[name].values, theirs[name].values)
        part = ours["T"].isel(x=[0, 4, 1], y=slice(None, None, -2)).mean("time")
        expected = theirs["T"].isel(x=[0, 4, 1], y=slice(None, None, -2)).mean("time")
        assert np.allclose(part.data.get(), expected.values, equal_nan=True)
        assert float(ours["T"].sel(x=2.0, y=30).isel(time=-1).data.get()) == float(theirs["T"][-1, 2, 2])


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"_FillValue": 3},
        {"_FillValue": 3, "missing_value": 5},
        {"missing_value": [3, 5]},
        {"scale_factor": 0.1},
        {"add_offset": 10.0},
        {"scale_factor": np.float32(0.5), "add_offset": np.float32(2), "_FillValue": 3},
        {"scale_factor": [0.25], "_FillValue": np.nan},
        {"_Unsigned": "true", "_FillValue": -1},
        {"_Unsigned": "true", "scale_factor": 0.5},
        {"_Unsigned": "false", "_FillValue": 255},
        {"units": "K"},
    ],
)
@pytest.mark.filterwarnings("ignore::xarray.SerializationWarning")
@pytest.mark.parametrize("shape", [(), (7, 5)])
def test_missing_values_and_scales_are_xarrays(kind: str, attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
    """What is applied on a GPU gives what xarray's own decoding gives, type for type."""
    if attributes.get("_Unsigned") == ("true" if kind[0] == "u" else "false" if kind[0] == "i" else "") or (
        kind[0] == "f" and "_Unsigned" in attributes
    ):
        pytest.skip("says nothing of this type")
    attributes = {
        key: np.asarray(value).astype(kind)[()] if key in ("_FillValue", "missing_value") and value == value else value
        for key, value in attributes.items()
    }
    stored = np.random.default_rng(1).integers(0, 9, shape).astype(kind)
    if stored.ndim:
        stored[0, 0], stored[0, 1] = np.array([-1, 255]).astype(kind)
    dims = ("y", "x")[: len(shape)]
    theirs = xarray.conventions.decode_cf_variable("v", xarray.Variable(dims, stored, dict(attributes)))
    decode, example = decoding_of(dims, stored.dtype, attributes)
    ours = stored if decode is None else decode(stored)
    assert ours.dtype == theirs.dtype == example.dtype
    assert np.array_equal(ours, theirs.values, equal_nan=ours.dtype.kind == "f")
    assert dict(example.attrs) == dict(theirs.attrs)
    assert set(example.encoding) == set(theirs.encoding)


def test_even_steps_become_slices() -> None:
    assert as_slice(np.array([], int)) == slice(0, 0)
    assert as_slice(np.array([4])) == slice(4, 5, 1)
    assert as_slice(np.array([1, 3, 5])) == slice(1, 6, 2)
    assert as_slice(np.array([1, 3, 6])) is None


def test_units_written_as_strings_are_decoded_as_by_the_library(tmp_path: Path) -> None:
    import netCDF4

    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", 3)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = [0, 31, 60]
        time.setncattr_string("units", "days since 2001-01-01")
        time.setncattr_string("calendar", "noleap")
        file.createVariable("T", "f4", ("time",))[:] = [1, 2, 3]
        file["T"].setncattr_string("units", "K")
        file.setncattr_string("title", "a title")
    with xarray.open_dataset(path, engine="penstock") as ours, xarray.open_dataset(path, engine="netcdf4") as stock:
        xarray.testing.assert_identical(ours.load(), stock.load())
        assert ours["time"].dt.calendar == "noleap"
