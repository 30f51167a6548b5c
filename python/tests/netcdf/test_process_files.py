"""Files of processes are one dataset: selections, in memory and in xarray, against NumPy; what is wrong with a set."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

NX, NY, NZ, STEPS = (7, 5, 7), (4, 6), 3, 4  # elements of each process
X, Y = sum(NX), sum(NY)
WHOLE = np.random.default_rng(3).random((STEPS, Y, X, NZ), dtype="f4")
FORMATS = ("cdf5", "netcdf4", "packed")


def axis(part: tuple[int, int], size: int, **more: Any) -> dict[str, Any]:
    told = {"size_global": size, "start_global": part[0] + 1, "halo_global": [2, 2], "halo_local": [0, 0]}
    return {"units": "m", "periodic": "false", **told, **more}


def write(file: Path, format: str, number: int, steps: int = STEPS, **more: Any) -> None:
    """As a process of SCALE-RM has it: its part of the domain, and where that is."""
    column, row = number % len(NX), number // len(NX)
    x, y = sum(NX[:column]), sum(NY[:row])
    packing: dict[str, Any] = {"compression": "gzip"} if format == "packed" else {}
    kind = "netcdf4" if format == "packed" else format
    attrs = {"title": "test", "rankid": number, "scale_cartesC_prc_num_x": 3, "scale_cartesC_prc_num_y": 2}
    units = more.pop("time_units", "seconds since 2000-01-01")
    with ps.History(file, format=kind, time_units=units, attrs=attrs, device="host", **packing) as history:
        ends = (x, x + NX[column]), (y, y + NY[row])
        for name, (first, end), size in (("x", ends[0], X), ("y", ends[1], Y)):
            history.constant(name, 100.0 * np.arange(first, end), (name,), axis((first, end), size, **more))
        history.constant("CX", np.arange(first, end + 4.0), ("CX",))
        history.constant("CXG", np.arange(X + 4.0), ("CXG",))
        history.constant("z", 10.0 * np.arange(NZ), ("z",), {"units": "m"})
        history.constant("topo", WHOLE[0, slice(*ends[1]), slice(*ends[0]), 0], ("y", "x"))
        part = np.ascontiguousarray(WHOLE[:, slice(*ends[1]), slice(*ends[0])])
        history.define("QV", ("y", "x", "z"), like=part[0], attrs={"units": "kg/kg"})
        for step in range(steps):
            history.put("QV", part[step])
            history.end_step(60.0 * step)


def write_all(folder: Path, format: str = "cdf5") -> Path:
    for number in range(6):
        write(folder / f"history.pe{number:06}.nc", format, number)
    return folder / "history.pe######.nc"


@pytest.fixture(scope="module", params=FORMATS)
def name(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_all(tmp_path_factory.mktemp("set"), request.param)


SELECTIONS: list[Any] = [
    ...,
    0,
    (slice(1, 3), slice(2, 9), slice(6, 13)),
    (slice(None, None, -2), slice(9, 1, -3), slice(None, None, 4), -1),
    (3, 4, 11, 2),
    (2, [0, 9, 3, 3, 5], slice(5, 19)),
    (slice(0, 0),),
    (slice(None), slice(4, 5), slice(7, 12), slice(1, 2)),
]


@pytest.mark.parametrize("index", SELECTIONS, ids=str)
def test_selections_are_those_of_the_whole(name: Path, index: Any) -> None:
    with ps.open(name, device="host") as file:
        assert np.array_equal(file["QV"][index].to_numpy(), WHOLE[index])
        out = np.empty_like(WHOLE[index])
        if out.ndim:
            file["QV"].read(index, out=out)
            assert np.array_equal(out, WHOLE[index])


def test_the_set_looks_like_one_file(name: Path) -> None:
    with ps.open(name, device="host") as file:
        assert set(file) == {"time", "x", "y", "z", "CXG", "topo", "QV"}
        assert file["QV"].shape == WHOLE.shape and file["QV"].dims == ("time", "y", "x", "z")
        assert np.array_equal(file["x"][...].to_numpy(), 100.0 * np.arange(X))
        assert np.array_equal(file["topo"][3:7].to_numpy(), WHOLE[0, 3:7, :, 0])
        assert np.array_equal(file["time"][...].to_numpy(), 60.0 * np.arange(STEPS))
        assert file.attrs["title"] == "test" and "rankid" not in file.attrs
        arrays = file.load()
        assert np.array_equal(arrays["QV"].to_numpy(), WHOLE) and len(arrays) == 7


def test_a_selection_reads_the_files_that_it_touches(name: Path) -> None:
    with ps.open(name, device="host") as file:
        found = {Path(one.file).name for one in file["QV"].extents((0, slice(0, 4), slice(7, 12)))}
        assert found == {"history.pe000001.nc"}
        assert len({one.file for one in file["QV"].extents(...)}) == 6


def test_xarray_opens_it(name: Path) -> None:
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(name, engine="penstock") as found:
        assert found.sizes["x"] == X and str(found.time.values[1]).startswith("2000-01-01T00:01")
        part = found["QV"].isel(time=1, y=slice(3, 8)).sel(x=slice(550.0, 1250.0))
        assert np.array_equal(part.values, WHOLE[1, 3:8, 6:13])


def test_steps_count_that_all_files_have(tmp_path: Path) -> None:
    name = write_all(tmp_path)
    write(tmp_path / "history.pe000004.nc", "cdf5", 4, steps=STEPS - 1)
    with ps.open(name, device="host") as file:
        assert np.array_equal(file["QV"][...].to_numpy(), WHOLE[:-1]) and file["time"].shape == (STEPS - 1,)


def test_elements_of_a_halo_are_those_of_their_owner(tmp_path: Path) -> None:
    whole, name = np.arange(20.0), tmp_path / "r.pe##.nc"
    for number, (first, end) in enumerate(((0, 9), (5, 14), (10, 20))):
        told = axis((first, end), 20, halo_local=[2, 2])
        with ps.create(tmp_path / f"r.pe{number:02}.nc", device="host") as file:
            mine = whole[first:end] + 100 * (number + 1)
            file.write_many({"x": mine}, layout={"dimensions": ("x",), "attributes": told}).result()
    with ps.open(name, device="host") as file:
        assert np.array_equal(file["x"][...].to_numpy(), whole + np.repeat([100, 200, 300], (7, 5, 8)))


def write_line(folder: Path, cuts: list[int], halo: int, *, at_ends: bool) -> np.ndarray:
    """Files of processes in a line, with a halo of their neighbours' elements; each element says whose file it is of.
    Returns the elements that count. `at_ends`: files at the ends tell of a halo there too, and own these elements."""
    size, count = cuts[-1], len(cuts) - 1
    for number in range(count):
        low, high = cuts[number], cuts[number + 1]
        before, behind = min(halo, low), min(halo, size - high)
        first, end = low - before, high + behind
        told = [halo if at_ends and not low else before, halo if at_ends and high == size else behind]
        with ps.create(folder / f"r.pe{number:02}.nc", device="host") as file:
            layout = {"dimensions": ("x",), "attributes": axis((first, end), size, halo_local=told)}
            file.write_many({"x": np.arange(first, end) + 100.0 * (number + 1)}, layout=layout).result()
    return np.arange(size) + 100.0 * np.repeat(np.arange(1, count + 1), np.diff(cuts))


@pytest.mark.parametrize("at_ends", [False, True])
@pytest.mark.parametrize(
    "cuts", [[0, 2, 5], [0, 3, 5], [0, 2, 4, 9], [0, 5, 7, 9], [0, 1, 2, 3, 4], [0, 2, 4, 6], [0, 4, 8, 12]], ids=str
)
def test_a_part_may_be_as_wide_as_the_halo_of_its_neighbour(tmp_path: Path, cuts: list[int], at_ends: bool) -> None:
    expected = write_line(tmp_path, cuts, 2, at_ends=at_ends)
    with ps.open(tmp_path / "r.pe##.nc", device="host") as file:
        assert np.array_equal(file["x"][...].to_numpy(), expected)


def test_a_set_that_says_no_division_is_refused_in_words(tmp_path: Path) -> None:
    write_line(tmp_path, [0, 2, 4], 2, at_ends=True)  # both files have all elements, and both a halo at both ends
    with pytest.raises(ps.Error) as error:
        ps.open(tmp_path / "r.pe##.nc", device="host")
    for word in ("r.pe01.nc: it has the part of the domain that", "its halo along x is as wide as", "halo_local as 0"):
        assert word in str(error.value)


def test_halos_by_which_either_file_may_be_the_first_are_refused(tmp_path: Path) -> None:
    for number, halo in enumerate(([2, 1], [3, 2])):
        with ps.create(tmp_path / f"r.pe{number}.nc", device="host") as file:
            layout = {"dimensions": ("x",), "attributes": axis((0, 4), 4, halo_local=halo)}
            file.write_many({"x": np.arange(4.0)}, layout=layout).result()
    with pytest.raises(ps.Error, match=r"r\.pe0\.nc: its halo along x is as wide as its neighbour's part"):
        ps.open(tmp_path / "r.pe#.nc", device="host")


Change = Callable[[Path], Any]
WRONG: dict[str, tuple[Change, str]] = {
    "missing": (lambda at: (at / "history.pe000002.nc").unlink(), "pe000002.nc: process 2 has no file"),
    "last missing": (lambda at: (at / "history.pe000005.nc").unlink(), "3 x 2 processes, and there are 5 files"),
    "another": (
        lambda at: shutil.copy(at / "history.pe000000.nc", at / "history.pe000003.nc"),
        "pe000003.nc: it says that it is of process 0",
    ),
    "other times": (
        lambda at: write(at / "history.pe000001.nc", "cdf5", 1, time_units="days since 1990-01-01"),
        "pe000001.nc: its time has 'days since 1990-01-01'",
    ),
    "other domain": (
        lambda at: write(at / "history.pe000001.nc", "cdf5", 1, size_global=30),
        "pe000001.nc: its x is of 30 in all",
    ),
    "overlap": (
        lambda at: write(at / "history.pe000004.nc", "cdf5", 4, start_global=2),
        "pe000004.nc: its x begins with element 1, and",
    ),
    "beyond": (
        lambda at: write(at / "history.pe000005.nc", "cdf5", 5, start_global=18),
        "pe000005.nc: its x has the elements 17 to 24",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_set_is_refused_in_a_line_that_names_the_file(tmp_path: Path, case: str) -> None:
    change, told = WRONG[case]
    name = write_all(tmp_path)
    change(tmp_path)
    with pytest.raises(ps.Error) as error:
        ps.open(name, device="host")["QV"][...]
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_set_is_not_written_to(name: Path) -> None:
    with pytest.raises(TypeError, match="files of several processes"):
        ps.open(name, write=True, device="host")
