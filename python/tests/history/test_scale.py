"""The preset "scale": files as SCALE-RM writes them, against a list of what those have; from Python, C and Fortran."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.snapshot_rig import LIBRARY

import penstock as ps

netCDF4 = pytest.importorskip("netCDF4")

TREE = Path(__file__).parents[3]
UNITS = "seconds since 2000-01-01 00:00:00"
NX, NY, NZ, HALO, STEPS = 12, 6, 4, 2, 3
MISSING = -9.9999e30


def faces(cells: int, width: float, halo: int = HALO) -> np.ndarray:
    return width * np.arange(-halo, cells + halo + 1)


def grid(process: int = 0, **more: Any) -> ps.ScaleGrid:
    told = {"halo": (HALO, HALO, HALO), "processes": (2, 1), "process": process, "periodic": (False, True), **more}
    return ps.ScaleGrid(faces(NX, 500.0), faces(NY, 400.0), faces(NZ, 100.0), **told)


def whole(*lengths: int) -> np.ndarray:
    return np.arange(np.prod(lengths), dtype="f8").reshape(lengths)


FIELDS = {"T": ("y", "x", "z"), "W": ("y", "x", "zh"), "U": ("y", "xh", "z"), "V": ("yh", "x", "z"), "RAIN": ("y", "x")}
LAYERS = {"ocean_faces": (0.0, 1.0, 3.0), "land_faces": (0.0, 0.5), "pressures_hpa": (850.0, 500.0)}


def write(folder: Path, process: int, one: ps.ScaleGrid, dtype: str = "float32", **options: Any) -> Path:
    """A file as the model has it: temperature, winds on the faces, rain, the sea, and geopotential on pressure."""
    file = folder / one.file_name("history")
    sizes = {"x": NX, "xh": NX + 1, "y": NY, "yh": NY, "z": NZ, "zh": NZ + 1, "oz": 2, "lz": 1, "pressure": 2}
    fields = {**FIELDS, "SEA": ("y", "x", "oz"), "SOIL": ("y", "x", "lz"), "Z": ("y", "x", "pressure")}
    starts = {"x": process * NX // 2, "xh": 0 if process == 0 else NX // 2 + 1}
    with ps.History(file, device="host", time_units=UNITS, calendar="noleap", **options) as history:
        parts = {}
        for name, dims in fields.items():
            own = one.shape(*dims)
            cut = tuple(slice(starts.get(dim, 0), starts.get(dim, 0) + n) for dim, n in zip(dims, own, strict=True))
            parts[name] = np.ascontiguousarray(whole(*(sizes[dim] for dim in dims))[cut])
            statistic = "mean" if name == "RAIN" else None
            history.define(name, dims, like=parts[name], dtype=dtype, statistic=statistic, attrs={"units": "1"})
        for name in ("lon", "lat", "topo", "cell_area"):
            history.constant(name, np.ones(one.shape("y", "x")), ("y", "x"))
        history.constant("height", np.ones(one.shape("y", "x", "z")), ("y", "x", "z"))
        history.constant("cell_volume", np.ones(one.shape("y", "x", "z")), ("y", "x", "z"))
        history.constant("lon_uy", np.ones(one.shape("y", "xh")), ("y", "xh"))
        words = {"source": "SCALE-RM", "institution": "RIKEN", "mapping": "lambert_conformal_conic"}
        history.use_preset("scale", one, title="a run", **words)
        history.set_attrs({"standard_parallel": [30.0, 40.0]}, "lambert_conformal_conic")
        for step in range(1, STEPS + 1):
            for name, part in parts.items():
                history.put(name, part * step)
            history.end_step(60.0 * step)
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("scale")
    return [write(folder, process, grid(process, **LAYERS)) for process in range(2)]


def attributes(owner: Any) -> dict[str, Any]:
    found = {name: owner.getncattr(name) for name in owner.ncattrs()}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in found.items()}


GLOBAL = {
    **{"Conventions": "CF-1.6", "title": "a run", "source": "SCALE-RM", "institution": "RIKEN", "grid_name": "cartesC"},
    **{"rankid": 1, "scale_cartesC_prc_rank_x": 1, "scale_cartesC_prc_rank_y": 0},
    **{"scale_cartesC_prc_num_x": 2, "scale_cartesC_prc_num_y": 1},
    **{"scale_cartesC_prc_periodic_z": "false", "scale_cartesC_prc_periodic_x": "false"},
    **{"scale_cartesC_prc_periodic_y": "true", "scale_atmos_grid_cartesC_index_imaxg": NX},
    **{"scale_atmos_grid_cartesC_index_jmaxg": NY, "scale_atmos_grid_cartesC_index_kmax": NZ},
    **{"scale_ocean_grid_cartesC_index_kmax": 2, "scale_land_grid_cartesC_index_kmax": 1},
    **{f"scale_atmos_grid_cartesC_index_{one}halo": HALO for one in "kij"},
    **{"time_units": UNITS, "time_start": 0.0, "calendar": "noleap"},
}
X, Y = ({"units": "m", "standard_name": f"projection_{one}_coordinate"} for one in "xy")
OPEN = {"halo_global": [0, 0], "halo_local": [0, 0], "periodic": "false"}
COORDINATES = {
    "z": {"long_name": "Z", "units": "m", "bounds": "z_bnds"},
    "zh": {"long_name": "Z (half level)", "units": "m", "bounds": "zh_bnds"},
    "x": {"long_name": "X", "bounds": "x_bnds", "size_global": NX, "start_global": 7, **OPEN, **X},
    "xh": {
        **{"long_name": "X (half level)", "bounds": "xh_bnds", "size_global": NX + 1, "start_global": 8, **OPEN, **X},
        "halo_global": [1, 0],
    },
    "y": {"long_name": "Y", "bounds": "y_bnds", "size_global": NY, "start_global": 1, **OPEN, **Y, "periodic": "true"},
    "yh": {
        **{"long_name": "Y (half level)", "bounds": "yh_bnds", "size_global": NY, "start_global": 1, **OPEN, **Y},
        "periodic": "true",
    },
    "pressure": {"long_name": "Pressure", "units": "hPa", "positive": "down"},
    "oz": {"long_name": "OZ", "units": "m", "positive": "down", "bounds": "oz_bnds"},
    "ozh": {"long_name": "OZ (half level)", "units": "m", "positive": "down", "bounds": "ozh_bnds"},
    "lz": {"long_name": "LZ", "units": "m", "positive": "down", "bounds": "lz_bnds"},
    "CZ": {"long_name": "Atmos Grid Center Position Z", "units": "m"},
    "FZ": {"long_name": "Atmos Grid Face Position Z", "units": "m"},
    "CDZ": {"long_name": "Grid Cell length Z", "units": "m"},
    "FDZ": {"long_name": "Grid distance Z", "units": "m"},
    "CBFZ": {"long_name": "Boundary factor Center Z", "units": "1"},
    "FBFZ": {"long_name": "Boundary factor Face Z", "units": "1"},
    "CX": {"long_name": "Atmos Grid Center Position X", "units": "m"},
    "FY": {"long_name": "Atmos Grid Face Position Y", "units": "m"},
    "CXG": {"long_name": "Grid Center Position X (global)", "units": "m"},
    "FYG": {"long_name": "Grid Face Position Y (global)", "units": "m"},
    "CDX": {"long_name": "Grid Cell length X", "units": "m"},
    "FDXG": {"long_name": "Grid distance X (global)", "units": "m", "missing_value": MISSING},
    "CBFX": {"long_name": "Boundary factor Center X", "units": "1"},
    "FBFYG": {"long_name": "Boundary factor Face Y (global)", "units": "1"},
    "OCZ": {"long_name": "Ocean Grid Center Position Z", "units": "m", "positive": "down"},
    "LCDZ": {"long_name": "Land Grid Cell length Z", "units": "m"},
    "lon": {"long_name": "longitude", "units": "degrees_east"},
    "lon_uy": {"long_name": "longitude (half level uy)", "units": "degrees_east"},
    "topo": {"long_name": "topography", "units": "m"},
    "height": {"long_name": "height above ground level", "units": "m"},
    "cell_area": {"long_name": "area of grid cell", "units": "m2", "standard_name": "area"},
    "cell_volume": {"long_name": "volume of grid cell", "units": "m3", "standard_name": "volume"},
    "lambert_conformal_conic": {"grid_mapping_name": "lambert_conformal_conic", "standard_parallel": [30, 40]},
    "time": {"long_name": "time", "units": UNITS, "calendar": "noleap", "bounds": "time_bnds"}
    | {"standard_name": "time", "axis": "T"},  # these two are ours
    "time_bnds": {},
    "x_bnds": {},
}
FIELD = {"units": "1", "_FillValue": np.float32(MISSING), "missing_value": np.float32(MISSING)}
FIELD |= {"grid_mapping": "lambert_conformal_conic"}
VOLUMES = {"cell_measures": "area: cell_area volume: cell_volume"}
VARIABLES = {
    "T": {"coordinates": "lon lat height time", **VOLUMES, "grid": "grid", "location": "face"},
    "W": {"coordinates": "lon lat time", "cell_measures": "area: cell_area", "grid": "grid", "location": "face"},
    "U": {"coordinates": "lon_uy time", "grid": "grid", "location": "edge1"},
    "V": {"grid": "grid", "location": "edge2"},
    "RAIN": {"coordinates": "lon lat time", "cell_measures": "area: cell_area", "cell_methods": "time: mean"}
    | {"grid": "grid", "location": "face"},
    "SEA": {"coordinates": "lon lat time", "cell_measures": "area: cell_area", "grid": "grid_ocean"}
    | {"location": "face"},
    "SOIL": {"coordinates": "lon lat time", "cell_measures": "area: cell_area", "grid": "grid_land"}
    | {"location": "face"},
    "Z": {"coordinates": "lon lat time", "cell_measures": "area: cell_area", "grid": "grid_pressure"}
    | {"location": "face"},
}
GRIDS = {
    "grid": ("xh yh", "x: xh (padding: none) y: yh (padding: none)", "z: zh (padding: none)"),
    "grid_ocean": ("xh yh", "x: xh (padding: none) y: yh (padding: none)", "oz: ozh (padding: none)"),
    "grid_pressure": ("xh yh", "x: xh (padding: none) y: yh (padding: none)", "pressure"),
    "grid_model": ("FX FY", "CX: FY (padding: none) CY: FY (padding: none)", "CZ: FZ (padding: none)"),
    "grid_model_global": ("FXG FYG", "CXG: FYG (padding: none) CYG: FYG (padding: none)", "CZ: FZ (padding: none)"),
}


def test_a_file_has_what_those_of_scale_have_and_nothing_else(files: list[Path]) -> None:
    with netCDF4.Dataset(files[1]) as file:
        assert attributes(file) == GLOBAL
        for name, expected in COORDINATES.items():
            assert attributes(file[name]) == expected, name
        for name, expected in VARIABLES.items():
            assert attributes(file[name]) == {**FIELD, **expected}, name
            assert file[name].dtype == "f4" and file[name].dimensions[0] == "time"
        for name, (nodes, of_faces, vertical) in GRIDS.items():
            found = attributes(file[name])
            assert found.pop("cf_role") == "grid_topology" and found.pop("topology_dimension") == 2
            expected = {"node_dimensions": nodes, "face_dimensions": of_faces, "vertical_dimensions": vertical}
            coordinates = {"face_coordinates": "lon lat", "edge1_coordinates": "lon_uy"}
            assert found == expected | ({} if "model" in name else coordinates)
        integers = ("rankid", "scale_cartesC_prc_num_x", "scale_atmos_grid_cartesC_index_kmax")
        assert all(np.asarray(file.getncattr(name)).dtype == "i4" for name in integers)
        assert all(np.asarray(file["x"].getncattr(name)).dtype == "i4" for name in ("size_global", "halo_local"))
        assert file.dimensions["time"].isunlimited() and len(file.dimensions["nv"]) == 2
        lengths = {"CX": NX // 2 + 4, "FX": NX // 2 + 5, "CXG": NX + 4, "FXG": NX + 5, "FDXG": NX + 5, "CY": NY + 4}
        lengths |= {"z": NZ, "zh": NZ + 1, "CZ": NZ + 4, "FZ": NZ + 5, "FDZ": NZ + 3, "xh": NX // 2, "yh": NY}
        assert {name: len(file.dimensions[name]) for name in lengths} == lengths


def test_coordinates_are_those_of_the_faces(files: list[Path]) -> None:
    with netCDF4.Dataset(files[0]) as first, netCDF4.Dataset(files[1]) as file:
        first.set_auto_mask(False)
        file.set_auto_mask(False)
        x, y, z = faces(NX, 500.0), faces(NY, 400.0), faces(NZ, 100.0)
        middle = (x[:-1] + x[1:]) / 2
        assert np.array_equal(first["x"][:], middle[2:8]) and np.array_equal(file["x"][:], middle[8:14])
        assert np.array_equal(first["xh"][:], x[2:9]) and np.array_equal(file["xh"][:], x[9:15])
        assert np.array_equal(file["x_bnds"][:], np.stack([x[8:14], x[9:15]], 1))
        assert np.array_equal(first["xh_bnds"][:], np.stack([middle[1:8], middle[2:9]], 1))
        assert np.array_equal(file["yh"][:], y[3:9])  # periodic: no face in front of the first cell
        assert np.array_equal(file["zh"][:], z[2:7]) and np.array_equal(file["z"][:], (z[2:6] + z[3:7]) / 2)
        assert np.array_equal(file["CX"][:], middle[6:16]) and np.array_equal(file["FX"][:], x[6:17])
        assert np.array_equal(file["CXG"][:], middle) and np.array_equal(file["FZ"][:], z)
        assert np.array_equal(file["CDX"][:], np.full(10, 500.0)) and np.array_equal(file["CBFX"][:], np.zeros(10))
        assert file["FDXG"][0] == MISSING and (file["FDXG"][1:-1] == 500).all() and file["FDXG"][-1] == MISSING
        assert file["FDX"][0] == 500 and file["FDX"][-1] == MISSING
        assert file["ozh"][:].tolist() == [0, 1, 3] and file["oz"][:].tolist() == [0.5, 2]
        assert file["ozh_bnds"][:].tolist() == [[0, 0.5], [0.5, 2], [2, 3]]
        assert file["pressure"][:].tolist() == [850, 500]
        assert file["time_bnds"][:].tolist() == [[0, 60], [60, 120], [120, 180]]


def test_the_files_open_as_one(files: list[Path]) -> None:
    name = files[0].parent / "history.pe######.nc"
    with ps.open(name, device="host") as file:
        for field, lengths in (("T", (NY, NX, NZ)), ("U", (NY, NX + 1, NZ)), ("V", (NY, NX, NZ)), ("RAIN", (NY, NX))):
            expected = whole(*lengths).astype("f4") * np.arange(1, STEPS + 1).reshape(-1, *[1] * len(lengths))
            assert np.array_equal(file[field].read(), expected.astype("f4")), field
        assert np.array_equal(file["xh"].read(), faces(NX, 500.0)[2:15]) and "CX" not in file
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(name, engine="penstock", chunks=None) as run:
        assert np.array_equal(run["U"].values[1], whole(NY, NX + 1, NZ) * 2)
        assert str(run["time"].values[1]).startswith("2000-01-01 00:02:00")


def test_boundaries_are_in_the_files_where_that_was_said(tmp_path: Path) -> None:
    fields, told = whole(NY, NX + 2 * HALO), {"processes": (3, 1), "boundary": True, "periodic": (False, False)}
    first = (0, HALO + NX // 3, HALO + 2 * NX // 3, NX + 2 * HALO)
    for process in range(3):
        one = grid(process, **told)
        part = np.ascontiguousarray(np.pad(fields, ((HALO, HALO), (0, 0)))[:, first[process] : first[process + 1]])
        assert one.shape("y", "x") == one.shape("yh", "xh") == part.shape
        with ps.History(tmp_path / one.file_name("b"), device="host", time_units=UNITS) as history:
            history.define("T", ("y", "x"), like=part)
            history.use_preset("scale", one)
            history.put("T", part)
            history.end_step(1)
    with netCDF4.Dataset(tmp_path / "b.pe000001.nc") as file:
        x = attributes(file["x"])
        assert (x["size_global"], x["start_global"], x["halo_global"], x["halo_local"]) == (16, 7, [2, 2], [0, 0])
    with netCDF4.Dataset(tmp_path / "b.pe000002.nc") as file:
        x = attributes(file["xh"])
        assert (x["size_global"], x["start_global"], x["halo_global"], x["halo_local"]) == (16, 11, [2, 2], [0, 2])
    with ps.open(tmp_path / "b.pe######.nc", device="host") as file:
        assert np.array_equal(file["T"].read()[0, HALO:-HALO], fields)


def test_a_restart_is_a_history_of_one_step_in_double_precision(tmp_path: Path) -> None:
    start = datetime.datetime(2000, 1, 1, 12, 0, 0, 250_000)
    one = grid(0, processes=(1, 1))
    assert one.file_name("restart", start) == "restart_20000101-120000.250.pe000000.nc"
    with ps.History(tmp_path / one.file_name("restart", start), device="host", time_units=UNITS) as history:
        history.define("DENS", ("y", "x", "z"), shape=one.shape("y", "x", "z"), dtype="float64")
        history.use_preset("scale", one)
        history.put("DENS", whole(NY, NX, NZ) / 3)
        history.end_step(43200.25)
    with netCDF4.Dataset(tmp_path / one.file_name("restart", start)) as file:
        assert np.array_equal(file["DENS"][0], whole(NY, NX, NZ) / 3) and file["DENS"].missing_value == MISSING


def test_what_the_caller_sets_goes_before_the_preset(tmp_path: Path) -> None:
    one, path = grid(0, processes=(1, 1)), tmp_path / "x.nc"
    with ps.History(path, device="host", time_units=UNITS, attrs={"grid_name": "mine"}) as history:
        history.define("T", ("y", "x"), shape=one.shape("y", "x"), attrs={"_FillValue": 7.0})
        history.constant("z", [1.0, 2.0, 3.0, 4.0], ("z",), {"long_name": "levels"})
        history.use_preset("scale", one)
        history.set_attrs({"title": "later"})
        history.put("T", np.zeros(one.shape("y", "x"), "f4"))
        history.end_step(1)
    with netCDF4.Dataset(path) as file:
        assert (file.grid_name, file.title, file["T"]._FillValue) == ("mine", "later", 7)
        assert file["z"].long_name == "levels" and file["z"].units == "m" and file["z"][:].tolist() == [1, 2, 3, 4]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "halo": ({"halo": (9, 2, 2)}, "x has 17 faces, and a halo of 9 cells at each end; give all faces"),
    "cells": ({"processes": (5, 1)}, "x has 12 cells for 5 processes; give each process as many cells"),
    "process": ({"process": 2}, "this is process 2 of 2; numbers go from 0"),
    "no process": ({"processes": (0, 1)}, "this is process 0 of 0; numbers go from 0"),
    "layers": ({"ocean_faces": (1.0, 0.0)}, "face 1 of oz is at 0.000000, which is not behind the one before it"),
    "factors": ({"factors": {"CBFX": (1.0, 2.0)}}, "there are 2 factors of centres of x for 16 places"),
    "name": ({"factors": {"CBX": (1.0,)}}, "there are no factors 'CBX'; use CBFX"),
    "NaN": ({"land_faces": (0.0, float("nan"))}, "face 1 of lz is at nan"),
}


@pytest.mark.parametrize("case", WRONG)
def test_numbers_that_make_no_grid_are_one_line_and_change_nothing(tmp_path: Path, case: str) -> None:
    told, words = WRONG[case]
    with ps.History(tmp_path / "x.nc", device="host") as history:
        history.define("T", ("y", "x"), shape=(NY, NX))
        for layout, one, expected in (("scale", grid(**told), words), ("wrf", grid(), "there is no layout 'wrf'")):
            with pytest.raises((ps.Error, ValueError)) as caught:
                history.use_preset(layout, one)
            assert expected in str(caught.value) and "\n" not in str(caught.value)
        history.put("T", np.zeros((NY, NX), "f4"))
        history.end_step(1)
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert list(file.variables) == ["time", "T"]


def test_a_field_of_another_length_is_refused(tmp_path: Path) -> None:
    with ps.History(tmp_path / "x.nc", device="host") as history:
        history.define("T", ("y", "x"), shape=(NY, NX))
        with pytest.raises(ps.Error, match="has 12 elements along 'x', others have 6"):
            history.use_preset("scale", grid())
        with pytest.raises(TypeError, match="no argument 'sauce'"):
            history.use_preset("scale", grid(), sauce="x")


MODULES = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in ("", "_history")]
COMMANDS = {
    "scale.c": ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}"],
    "scale.f90": ["gfortran", *map(str, MODULES)],
}


@pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")
@pytest.mark.parametrize("source", COMMANDS)
def test_programs_in_c_and_fortran_write_the_file_that_python_writes(tmp_path: Path, source: str) -> None:
    command = COMMANDS[source]
    if not works(command[0]):
        pytest.skip(f"there is no {command[0]}")
    place = [str(TREE / "examples" / "history" / source), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*command, *place, "-o", "scale"], cwd=tmp_path, check=True)
    ours = tmp_path / "ours"
    ours.mkdir()
    for process in range(2):
        subprocess.run([tmp_path / "scale", str(process)], cwd=tmp_path, check=True, timeout=60)
        file = as_the_examples(ours, process, source)
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()
    with ps.open(tmp_path / "history.pe######.nc", device="host") as file:
        assert file["T"].shape == (3, 5, 12, 4) and file["W"].shape == (3, 5, 12, 5)
        assert file["T"][2, 4, 11, 3].to_numpy() == 3513 and file["W"][0, 0, 0, 4].to_numpy() == -1004


def as_the_examples(folder: Path, process: int, source: str) -> Path:
    own, ny, nz = 6, 5, 4
    one = ps.ScaleGrid(faces(12, 500.0), faces(ny, 500.0), faces(nz, 100.0), (2, 2, 2), (2, 1), process, (False, True))
    j, i, k = np.ogrid[-HALO : ny + HALO, -HALO : own + HALO, : nz + 1]
    with ps.History(folder / one.file_name("history"), device="host", time_units=UNITS) as history:
        for name, level in (("T", "z"), ("W", "zh")):
            shape = one.shape("y", "x", level)
            history.define(name, ("y", "x", level), shape=shape, halo=(2, 2, 0), source_dtype="float64")
        history.constant("lon", 135 + 0.005 * (own * process + np.arange(own)) + np.zeros((ny, 1)), ("y", "x"))
        history.constant("lat", 35 + 0.005 * np.arange(ny)[:, None] + np.zeros(own), ("y", "x"))
        history.use_preset("scale", one, title="two processes", source=source)
        for step in range(1, 4):
            value = 1000.0 * step + 100 * j + 10 * (own * process + i) + k
            history.put("T", value[:, :, :nz])
            history.put("W", -value)
            history.end_step(60.0 * step)
    return folder / one.file_name("history")
