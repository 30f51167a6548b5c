"""Dask reads histories in parallel through xarray: parts of a file, of a store, and of a set of files of processes, by
threads and by processes, have the values that were put."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

dask = pytest.importorskip("dask", reason="there is no dask (pip install dask)")
xarray = pytest.importorskip("xarray")
STEPS, NY, NX = 4, 6, 10
WHOLE = np.random.default_rng(7).random((STEPS, NY, NX), dtype="f4")
LIMIT_S = 10
pytestmark = pytest.mark.filterwarnings("ignore:The specified chunks separate the stored chunks")


def write(file: Path, first: int = 0, end: int = NX, **options: Any) -> Path:
    """The columns from `first` to `end`, and where they lie in the whole."""
    place = {"size_global": NX, "start_global": first + 1, "halo_local": [0, 0]}
    units = "seconds since 2000-01-01"
    with penstock.History(file, device="host", time_units=units, **options) as history:
        history.constant("x", 500.0 * np.arange(first, end), ["x"], {"units": "m", **place})
        history.define("T", ["y", "x"], shape=(NY, end - first))
        for step in range(STEPS):
            history.put("T", np.ascontiguousarray(WHOLE[step, :, first:end]))
            history.end_step(600.0 * step)
    return file


def write_set(folder: Path, suffix: str = "nc", **options: Any) -> Path:
    for process, (first, end) in enumerate([(0, 4), (4, 7), (7, 10)]):
        write(folder / f"run.pe{process:06}.{suffix}", first, end, attrs={"rankid": process}, **options)
    return folder / f"run.pe######.{suffix}"


def opened(name: Path, chunks: dict[str, int]) -> Any:
    return xarray.open_dataset(name, engine="penstock", chunks=chunks)


@pytest.fixture(params=["netcdf4", "cdf5", "zarr", "set", "set of stores"])
def name(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param.startswith("set"):
        is_set_of_stores = request.param != "set"
        kind = {"format": "zarr" if is_set_of_stores else "netcdf4", "compression": "gzip"}
        return write_set(tmp_path, "zarr" if is_set_of_stores else "nc", **kind)
    return write(tmp_path / "run", format=request.param)


@pytest.mark.parametrize("chunks", [{}, {"time": 1, "x": 5}, {"time": 3, "y": 4, "x": 4}])
def test_parts_that_threads_read_have_the_values(name: Path, chunks: dict[str, int]) -> None:
    with dask.config.set(scheduler="threads", num_workers=4), opened(name, chunks) as run:
        assert run["T"].chunks is not None, "it is Dask's"
        assert np.array_equal(run["T"].values, WHOLE)
        part = run["T"].isel(time=slice(None, None, -1), x=[8, 1, 2]).sel(y=slice(1, 5))
        assert np.array_equal(part.values, WHOLE[::-1, 1:5, [8, 1, 2]])
        assert np.isclose(run["T"].mean().compute(), WHOLE.mean())
        assert str(run["time"].values[1]).startswith("2000-01-01T00:10")


@pytest.mark.parametrize(("format", "columns"), [("netcdf4", (10,)), ("set", (4, 4, 2))])
def test_without_a_word_a_part_is_a_step_of_a_file(tmp_path: Path, format: str, columns: tuple[int, ...]) -> None:
    name = write_set(tmp_path) if format == "set" else write(tmp_path / "run.nc", format=format)
    with opened(name, {}) as run:
        assert run["T"].chunks == ((1,) * STEPS, (NY,), columns)


@pytest.mark.parametrize("is_set", [False, True], ids=["file", "set"])
def test_two_parts_are_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool) -> None:
    """A read waits here for another one, which comes only where nothing keeps it out."""
    from penstock.xarray.lazy import LazyArray

    name = write_set(tmp_path) if is_set else write(tmp_path / "run.nc")
    meeting, read = threading.Barrier(2, timeout=LIMIT_S), LazyArray._read

    def met(self: LazyArray, key: tuple[Any, ...]) -> Any:
        meeting.wait()
        return read(self, key)

    with dask.config.set(scheduler="threads", num_workers=2), opened(name, {"time": 1, "x": 5}) as run:
        monkeypatch.setattr(LazyArray, "_read", met)
        assert np.array_equal(run["T"].values, WHOLE)  # of 8 parts


def test_processes_of_dask_open_it_themselves(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    with dask.config.set(scheduler="processes", num_workers=2), opened(name, {"time": 2}) as run:
        assert np.array_equal(run["T"].compute().values, WHOLE)
