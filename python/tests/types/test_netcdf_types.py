"""Text, lists, characters and dates of netCDF-4: values are those of netCDF4, and xarray's those of its own engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

netCDF4 = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        for name, extent in {"time": None, "n": 3, "letters": 4}.items():
            file.createDimension(name, extent)
        file.createVariable("station", str, ("n",))[:] = np.array(["Bern", "Zürich", ""], object)
        file.createVariable("short", str, ("time", "n"))[0] = np.array(["a", "b", "c"], object)
        file.createVariable("alone", str, ())[...] = "one"
        letters = file.createVariable("letters_of", "S1", ("n", "letters"))
        letters[:] = netCDF4.stringtochar(np.array(["ab", "cdef", "x"], "S4"))
        lists = file.createVariable("lists", file.createVLType("i4", "list_of_ints"), ("time",))
        lists[0] = np.array([1, 2], "i4")
        kinds = file.createEnumType("u1", "kind", {"dry": 0, "wet": 1})
        file.createVariable("kinds", kinds, ("n",), fill_value=0)[:] = np.array([1, 0, 1], "u1")
        days = file.createVariable("time", "f8", ("time",))
        days[:], days.units = np.arange(5.0), "days since 2000-01-01"
        values = file.createVariable("T", "f4", ("time", "n"), fill_value=-1)
        values[:], values.coordinates = np.arange(15).reshape(5, 3), "station"
        file.note = "about"
    return tmp_path / "x.nc"


def plain(value: Any) -> Any:
    return (
        [plain(one) for one in value]
        if isinstance(value, (np.ndarray, list)) and np.ndim(value)
        else np.asarray(value).item()
    )


def test_values_are_those_of_netcdf4(path: Path) -> None:
    with netCDF4.Dataset(path) as stock, ps.open(path, device="host") as ours:
        stock.set_auto_mask(False)
        for name, variable in stock.variables.items():
            expected = np.asarray(variable[...], object if variable.dtype is str else None)
            found = np.asarray(ours[name][...])
            assert found.shape == variable.shape, name
            assert plain(found) == plain(expected.reshape(variable.shape)), name
            if variable.shape:
                assert plain(np.asarray(ours[name][::-2])) == plain(expected[::-2]), name
                assert plain(np.asarray(ours[name][1:])) == plain(expected[1:]), name
        assert ours["letters_of"].dtype == "S1"


def test_xarray_gives_what_its_own_engine_gives(path: Path) -> None:
    with xarray.open_dataset(path, engine="netcdf4") as stock, xarray.open_dataset(path, engine="penstock") as ours:
        assert set(ours.variables) == set(stock.variables)
        assert "station" in ours.coords
        for name in set(stock.variables) - {"lists"}:
            assert ours[name].dtype == stock[name].dtype, name
            xarray.testing.assert_equal(ours[name].load(), stock[name].load())
        assert plain(ours["lists"].values) == plain(stock["lists"].values)
        assert ours["T"].isel(time=[4, 1], n=0).values.tolist() == stock["T"].isel(time=[4, 1], n=0).values.tolist()


def test_xarray_writes_what_it_read(path: Path, tmp_path: Path) -> None:
    with xarray.open_dataset(path, engine="penstock", drop_variables=["lists", "kinds"]) as ours:
        ours.load().to_netcdf(tmp_path / "again.nc", engine="netcdf4")
        with xarray.open_dataset(tmp_path / "again.nc", engine="netcdf4") as again:
            for name in ours.variables:
                xarray.testing.assert_equal(ours[name], again[name])


@pytest.mark.parametrize("ending", [".h5", ".nc"])
def test_references_in_attributes_are_no_attributes_of_xarray(tmp_path: Path, ending: str) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / f"x{ending}", "w", track_order=True) as file:
        file["x"] = np.arange(3.0)
        for home in (file, file["x"]):
            home.attrs["unit"], home.attrs["one"] = "K", file["x"].ref
            home.attrs["two"] = np.array([file["x"].ref, file.ref], h5py.ref_dtype)
    with ps.open(tmp_path / f"x{ending}", device="host") as ours:
        assert set(ours["x"].attrs) == ({"unit", "one", "two"} if ending == ".h5" else {"unit"})
    with xarray.open_dataset(tmp_path / f"x{ending}", engine="penstock") as ours:
        assert ours.attrs == ours["x"].attrs == {"unit": "K"}
        ours.load().to_netcdf(tmp_path / "again.nc", engine="netcdf4")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", [2, 3])
def test_xarray_gives_the_text_and_dates_of_zarr(tmp_path: Path, version: int) -> None:
    pytest.importorskip("zarr")
    names = xarray.DataArray(np.array(["a", "bcd", ""], object), dims="n")
    fixed = xarray.DataArray(np.array(["a", "bcd", "e"]), dims="n")
    dates = xarray.DataArray(np.array(["2000-01-01", "2001-01-01", "NaT"], "M8[ns]"), dims="n")
    made = xarray.Dataset({"names": names, "fixed": fixed, "dates": dates})
    made.to_zarr(tmp_path / "x.zarr", zarr_format=version, consolidated=False)
    if version == 2:  # zarr-python itself writes "", xarray writes null
        document = json.loads((tmp_path / "x.zarr/names/.zarray").read_text()) | {"fill_value": ""}
        (tmp_path / "x.zarr/names/.zarray").write_text(json.dumps(document))
    with xarray.open_zarr(tmp_path / "x.zarr", consolidated=False) as stock:
        stock.load()
        with xarray.open_dataset(tmp_path / "x.zarr", engine="penstock") as ours:
            for name in stock.variables:
                assert list(map(str, ours[name].load().values)) == list(map(str, stock[name].values)), name


def test_a_classic_file_has_characters(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "x.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("n", 3)
        file.createVariable("c", "S1", ("n",))[:] = np.array([b"a", b"b", b"c"])
    found = ps.load(tmp_path / "x.nc", "host")["c"]
    assert found.to_numpy().tolist() == [b"a", b"b", b"c"] and found.dtype == "S1"
    ps.save(tmp_path / "y.nc3", {"c": found}, "host")
    with netCDF4.Dataset(tmp_path / "y.nc3") as file:
        assert file["c"][:].tolist() == [b"a", b"b", b"c"]


def test_a_damaged_document_of_text_is_left_out_and_hides_nothing(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a", data=np.arange(3), dimension_names=("n",))
    group.create_array("s", shape=(3,), dtype="i4", dimension_names=("n",))
    document = json.loads((tmp_path / "x.zarr/s/zarr.json").read_text()) | {"data_type": "string"}
    (tmp_path / "x.zarr/s/zarr.json").write_text(json.dumps(document))
    with pytest.warns(ps.UnreadableWarning, match="s .*its elements are text"):
        opened = xarray.open_dataset(tmp_path / "x.zarr", engine="penstock")
    assert set(opened.variables) == {"a"}
