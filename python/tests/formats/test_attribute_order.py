"""Attributes and datasets come in the order in which the stock tool of each format shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps

NAMES = ["zulu", "alpha", "mike", "Yankee", "_under", "tango", "charlie", "oscar", "delta", "echo", "bravo"]
VALUES = dict.fromkeys(NAMES, 1)


def shown(path: Path) -> tuple[list[str], list[str], list[str]]:
    """Datasets, attributes of the first, and of the file."""
    with ps.open(path, device="host") as file:
        first = next(iter(file))
        return list(file), list(file[first].attrs), list(file.attrs)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_hdf5_as_h5py(tracked: bool, version: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=version, track_order=tracked) as file:
        for name in NAMES:
            dataset = file.create_dataset(name, data=np.arange(2), track_order=tracked)
            dataset.attrs.update(VALUES)
        file.attrs.update(VALUES)
    with h5py.File(path) as file:
        stock = list(file), list(file[next(iter(file))].attrs), list(file.attrs)
    assert stock[0] == (NAMES if tracked else sorted(NAMES)), "the case is as it is meant"
    assert shown(path) == stock


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "ours"])
def test_netcdf_as_its_library(form: str, tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    path = tmp_path / "x.nc"
    if form == "ours":
        with ps.create(path, device="host") as ours:
            for name in NAMES:
                ours[name] = np.arange(2.0)
            for name in NAMES:
                ours["zulu"].attrs[name] = 1
                ours.attrs[name] = 1
    else:
        with netCDF4.Dataset(path, "w", format=form) as file:
            file.createDimension("x", 2)
            for name in NAMES:
                file.createVariable(name, "f4", ("x",)).setncatts(VALUES)
            file.setncatts(VALUES)
    with netCDF4.Dataset(path) as file:
        stock = list(file.variables), file["zulu"].ncattrs(), file.ncattrs()
    assert stock[1] == NAMES
    assert shown(path) == stock


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_as_zarr_python(version: int, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.create_array("a", shape=(2,), dtype="f4").attrs.update(VALUES)
    group.attrs.update(VALUES)
    again = zarr.open_group(path, mode="r")
    assert shown(path)[1:] == (list(again["a"].attrs), list(again.attrs)) == (NAMES, NAMES)
