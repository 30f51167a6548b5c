"""A netCDF-4 file whose name does not say so is opened as one, and what is named as HDF5, or is it, as HDF5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")

import penstock  # noqa: E402
from penstock.formats.hdf5 import shared as hdf5_shared  # noqa: E402

VALUES = np.arange(6, dtype="f4").reshape(2, 3)


def by_history(path: Path) -> None:
    with penstock.History(path, format="netcdf4", device="host") as history:
        history.define("T", ("y", "x"), like=VALUES)
        history.put("T", VALUES)
        history.end_step(1.0)


def by_create(path: Path) -> None:
    with penstock.create(path, format="netcdf4", device="host") as file:
        file.create_dataset("T", (1, 2, 3), "f4", dimensions=("time", "y", "x"))[...] = VALUES[None]


def by_the_library(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, length in {"time": None, "y": 2, "x": 3}.items():
            file.createDimension(name, length)
        file.createVariable("T", "f4", ("time", "y", "x"))[0:1] = VALUES


WRITERS: dict[str, Any] = {"history": by_history, "create": by_create, "netCDF4": by_the_library}


@pytest.mark.parametrize("name", ["run", "out.0001", "x.zarr", "run.pe0"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_netcdf_file_of_any_name_has_its_dimensions(tmp_path: Path, writer: str, name: str) -> None:
    path = tmp_path / name
    WRITERS[writer](path)
    with penstock.open(tmp_path / "run.pe#" if name == "run.pe0" else path, device="host") as file:
        assert file.format == "netcdf4"
        assert file["T"].dims == ("time", "y", "x") and set(file) <= {"T", "time"}
        assert np.array_equal(file["T"][0].to_numpy(), VALUES)
        assert not set(file.attrs) & {"_NCProperties", "DIMENSION_LIST"}
    assert set(penstock.load(path, "host")) <= {"T", "time"}


def test_it_is_written_to_as_netcdf(tmp_path: Path) -> None:
    by_the_library(tmp_path / "run")
    with penstock.open(tmp_path / "run", write=True, device="host") as file:
        file["T"].append(VALUES[None])
    with netCDF4.Dataset(tmp_path / "run") as stock:
        assert stock["T"].shape == (2, 2, 3) and stock.dimensions["time"].isunlimited()


@pytest.mark.parametrize("name", ["x.h5", "x.hdf5", "x.he5", "X.H5"])
def test_a_suffix_of_hdf5_is_what_the_user_asks_for(tmp_path: Path, name: str) -> None:
    by_the_library(tmp_path / name)
    with penstock.open(tmp_path / name, device="host") as file:
        assert file.format == "hdf5" and "y" in list(file) and "_NCProperties" in file.attrs
    by_the_library(tmp_path / "run")
    with penstock.open(tmp_path / "run", format="hdf5", device="host") as file:
        assert file.format == "hdf5" and "_NCProperties" in file.attrs


@pytest.mark.parametrize("name", ["run", "x.h5"])
def test_a_plain_hdf5_file_is_opened_once(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / name, "w") as file:
        file["T"] = VALUES
    opened = []

    def counting(path: str, **how: Any) -> Any:
        opened.append(path)
        return original(path, **how)

    original = hdf5_shared.open_file
    monkeypatch.setattr(hdf5_shared, "open_file", counting)
    with penstock.open(tmp_path / name, device="host") as found:
        assert found.format == "hdf5" and np.array_equal(found["T"][...].to_numpy(), VALUES)
        assert found["T"].attrs == {}
    assert opened == [str(tmp_path / name)]
