"""Files of HDF5 and netCDF-4 that grew by the library's own writer: stock readers find each published step after each
write, the netCDF library tells of them what it tells of its own, and stock writers add to them.
"""

import shutil
import subprocess
from pathlib import Path

import h5py
import hdf5_samples
import numpy as np
import pytest
import xarray as xr
from hdf5_replay import GROWING, check_h5py, check_netcdf4, expected, recorded, replayed

netCDF4 = pytest.importorskip("netCDF4", reason="what netCDF-C reads is asked of the package netCDF4")


def test_stock_readers_find_each_published_step_after_each_write(tmp_path: Path) -> None:
    writes = recorded(tmp_path / "grown.nc", steps=7, half_entries=1)
    for i, published in enumerate(replayed(writes, tmp_path / "cut.nc")):
        check_h5py(tmp_path / "cut.nc", published)
        if i % 9 == 0:
            check_netcdf4(tmp_path / "cut.nc", published)


def test_steps_that_are_published_before_their_data_are_found_wrong(tmp_path: Path) -> None:
    writes = recorded(tmp_path / "grown.nc", steps=3, published_first=1)
    with pytest.raises((AssertionError, OSError)):
        for published in replayed(writes, tmp_path / "cut.nc"):
            check_h5py(tmp_path / "cut.nc", published)


@pytest.mark.parametrize("cut", [3, 5, 7, 11])
def test_stock_writers_add_to_a_file_whose_writer_was_killed(tmp_path: Path, cut: int) -> None:
    writes = recorded(tmp_path / "grown.nc", steps=12, half_entries=2)
    cuts = (tmp_path / "h5py.nc", tmp_path / "netcdf.nc")
    for path in cuts:
        for i, _ in enumerate(replayed(writes, path)):
            if i == 15 * cut:
                break
    with h5py.File(cuts[0], "r+") as file:
        begin = len(file["time"])
        for name, number in GROWING.items():
            file[name].resize(begin + 30, 0)
            file[name][begin:] = expected(name, number, begin + 30, file[name].shape[1:])[begin:]
    check_h5py(cuts[0], begin + 30)
    check_netcdf4(cuts[0], begin + 30)
    with netCDF4.Dataset(cuts[1], "r+") as file:
        for name, number in GROWING.items():
            file[name][begin : begin + 30] = expected(name, number, begin + 30, file[name].shape[1:])[begin:]
        file.createDimension("more", 3)
        file.createVariable("later", "f4", ("time", "more"))[:] = 7
        file["field0"].remark = "added"
    check_h5py(cuts[1], begin + 30)
    with netCDF4.Dataset(cuts[1]) as file:
        assert file["later"].shape == (begin + 30, 3) and (file["later"][:] == 7).all()
        assert file["field0"].remark == "added" and list(file.dimensions)[-1] == "more"


FILTERS = [("fletcher32",), ("shuffle", "deflate"), ("shuffle", "deflate", "fletcher32"), ("deflate",)]


@pytest.mark.parametrize("filters", FILTERS, ids="-".join)
def test_filtered_steps_are_read(tmp_path: Path, filters: tuple[str, ...]) -> None:
    hdf5_samples.run("grow", tmp_path / "grown.nc", "steps=70", *(f"{name}=1" for name in filters))
    check_h5py(tmp_path / "grown.nc", 70)
    check_netcdf4(tmp_path / "grown.nc", 70)
    with h5py.File(tmp_path / "grown.nc") as file:
        plist = file["field0"].id.get_create_plist()
        assert [plist.get_filter(i)[3].decode() for i in range(plist.get_nfilters())] == list(filters)


@pytest.mark.parametrize("rank", [3, 5, 9])
def test_many_dimensions_take_smaller_nodes(tmp_path: Path, rank: int) -> None:
    hdf5_samples.run("grow", tmp_path / "grown.nc", "steps=150", f"rank={rank}")
    check_h5py(tmp_path / "grown.nc", 150)
    check_netcdf4(tmp_path / "grown.nc", 150)
    with h5py.File(tmp_path / "grown.nc") as file:
        assert file["field0"].ndim == rank
        assert file.id.get_create_plist().get_version()[0] == (0 if rank == 3 else 1)


def test_many_fields_are_published_over_several_pages(tmp_path: Path) -> None:
    hdf5_samples.run("grow", tmp_path / "grown.nc", "steps=5", "fields=200")
    check_netcdf4(tmp_path / "grown.nc", 5)
    with h5py.File(tmp_path / "grown.nc") as file:
        assert len(file["field199"]) == 5 and len(file["time"].attrs["REFERENCE_LIST"]) == 201


def test_large_steps_lie_on_pages(tmp_path: Path) -> None:
    hdf5_samples.run("grow", tmp_path / "grown.nc", "steps=3", "x=10007")
    check_h5py(tmp_path / "grown.nc", 3)
    with h5py.File(tmp_path / "grown.nc") as file:
        assert all(file["field1"].id.get_chunk_info(i).byte_offset % 4096 == 0 for i in range(3))


def test_plain_hdf5_has_datasets_alone(tmp_path: Path) -> None:
    hdf5_samples.run("grow", tmp_path / "grown.h5", "steps=9", "netcdf4=0")
    check_h5py(tmp_path / "grown.h5", 9)
    with h5py.File(tmp_path / "grown.h5") as file:
        assert list(file) == ["time", "time_bnds", "x", "y", "crs", "label", "field0", "field1", "field2"]
        assert dict(file["field0"].attrs) == {"units": b"K", "_FillValue": np.float32(-9.9999e30)}
        assert file["crs"][()] == 5 and file["label"][:].tolist() == [b"a", b"b"]


def test_xarray_opens_it_and_finds_coordinates(tmp_path: Path) -> None:
    hdf5_samples.run("grow", tmp_path / "grown.nc", "steps=4")
    with xr.open_dataset(tmp_path / "grown.nc") as data:
        assert data["field0"].dims == ("time", "y", "x") and data.sizes == {"time": 4, "y": 3, "x": 4, "nv": 2}
        assert "x" in data.indexes and str(data["time"].values[3]).startswith("2000-01-01T00:50")
        assert data.attrs == {"title": "sample", "empty": "", "one": 1.5}


def of_the_library(path: Path) -> None:
    """The schema of the sample, by the netCDF library."""
    with netCDF4.Dataset(path, "w") as file:
        for name, length in {"time": None, "y": 3, "x": 4, "nv": 2}.items():
            file.createDimension(name, length)
        file.setncatts({"title": "sample", "empty": "", "one": 1.5})
        time = file.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "seconds since 2000-01-01", "bounds": "time_bnds", "calendar": "standard"})
        bounds = file.createVariable("time_bnds", "f8", ("time", "nv"))
        x = file.createVariable("x", "f4", ("x",))
        x.setncatts({"valid_range": np.array([0.0, 1.0]), "axis": "X"})
        x[:] = np.arange(4)
        file.createVariable("y", "f4", ("x", "y"))[:] = 0
        file.createVariable("crs", "i4", ())[:] = 5
        file.createVariable("label", "S1", ("nv",))[:] = [b"a", b"b"]
        for i in range(3):
            field = file.createVariable(
                f"field{i}", "f4", ("time", "y", "x"), fill_value=np.float32(-9.9999e30), chunksizes=(1, 3, 4)
            )
            field.units = "K"
            field[:5] = expected("", 6 + i, 5, (3, 4))
        time[:] = expected("", 0, 5, ())
        bounds[:] = expected("", 1, 5, (2,))


def told(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("ncdump"), reason="no ncdump")
def test_ncdump_tells_the_same_as_of_a_file_of_the_netcdf_library(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a" / "sample.nc", tmp_path / "b" / "sample.nc"
    for path in (ours, theirs):
        path.parent.mkdir()
    hdf5_samples.run("grow", ours, "steps=5")
    of_the_library(theirs)
    got, want = told("ncdump", ours).splitlines(), told("ncdump", theirs).splitlines()
    # The library writes _FillValue when a variable is made, and so before its units.
    assert sorted(got) == sorted(want)
    assert [line for line in got if ":" not in line] == [line for line in want if ":" not in line]


@pytest.mark.skipif(not shutil.which("h5dump"), reason="no h5dump")
def test_attributes_have_the_types_and_shapes_of_the_netcdf_library(tmp_path: Path) -> None:
    hdf5_samples.run("grow", tmp_path / "ours.nc", "steps=5")
    of_the_library(tmp_path / "theirs.nc")

    def header(path: Path) -> list[str]:
        lines = told("h5dump", "-H", path).splitlines()[1:]
        begin = next(i for i, line in enumerate(lines) if "_NCProperties" in line)
        assert "NULLTERM" in lines[begin + 3]
        return lines[:begin] + lines[begin + 9 :]

    assert header(tmp_path / "ours.nc") == header(tmp_path / "theirs.nc")
