"""Lists and masks as places to write: the elements that NumPy would set, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import penstock

SHAPE = (12, 5, 4)


def values(dtype: str = "<f8") -> np.ndarray:
    return np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)


@st.composite
def indices(draw: st.DrawFn) -> Any:
    if draw(st.integers(0, 4)) == 0:
        return np.random.default_rng(draw(st.integers(0, 99))).random(SHAPE) < draw(st.floats(0, 1))
    axis = draw(st.integers(0, 2))
    extent = SHAPE[axis]
    index: list[Any] = [draw(st.sampled_from([slice(None), slice(1, 4), slice(None, None, -2)])) for _ in SHAPE]
    numbers = st.lists(st.integers(0, extent - 1), min_size=1, max_size=extent, unique=True)
    masks = st.lists(st.booleans(), min_size=extent, max_size=extent).map(np.array)
    index[axis] = draw(numbers | masks)
    return tuple(index)


some = settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)

FILES = [
    ("x.h5", {}, "<f8"),
    ("x.h5", {}, ">i4"),
    ("c.h5", {"chunk_shape": (3, 2, 4)}, "<f8"),
    ("x.nc", {}, "<f8"),
    ("x.nc3", {}, "<f4"),
    ("x.npy", {}, "<f4"),
    ("x.zarr", {"chunk_shape": (3, 2, 4)}, "<f8"),
    ("s.zarr", {"chunk_shape": (3, 2, 4), "shard_shape": (6, 4, 4)}, "<f8"),
    ("p.h5", {"chunk_shape": (3, 2, 4), "compression": "gzip"}, ">i4"),
    ("p.nc", {"chunk_shape": (3, 2, 4), "compression": "gzip"}, "<f8"),
    ("p.zarr", {"chunk_shape": (3, 2, 4), "compression": "gzip"}, "<f8"),
]


@pytest.mark.parametrize(("name", "layout", "dtype"), FILES)
def test_writes_set_what_numpy_sets(tmp_path: Path, name: str, layout: dict[str, Any], dtype: str) -> None:
    expected, turn = values(dtype), [0]
    with penstock.create(tmp_path / name, device="host") as file:
        dataset = file.create_dataset("data", SHAPE, dtype, **layout)
        dataset[...] = values(dtype).astype(dataset.dtype.dtype)

        @some
        @given(indices())
        def check(index: Any) -> None:
            turn[0] += 1000
            value = (expected[index] + turn[0]).astype(dataset.dtype.dtype)
            expected[index] = value
            dataset[index] = value
            np.testing.assert_array_equal(np.asarray(dataset[...]), expected)
            np.testing.assert_array_equal(np.asarray(dataset[index]), value)

        check()
    with penstock.open(tmp_path / name, device="host") as file:
        np.testing.assert_array_equal(np.asarray(file["data"][...]), expected)


@pytest.mark.parametrize("index", [[1, 10], np.arange(12) % 5 == 0, slice(None, None, 3), slice(10, None, -4)])
@pytest.mark.parametrize("shard", [None, (6, 5, 4)])
def test_what_is_not_written_of_a_new_chunk_is_the_fill_value(tmp_path: Path, index: Any, shard: Any) -> None:
    zarr = pytest.importorskip("zarr")
    sizes = {"shards": shard} if shard else {}
    zarr.create_array(
        str(tmp_path / "x.zarr"), shape=SHAPE, chunks=(3, 5, 4), dtype="<f8", fill_value=-7, compressors=None, **sizes
    )
    expected = np.full(SHAPE, -7.0)
    expected[index] = values()[index]
    with penstock.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file[next(iter(file))][index] = values()[index]
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "x.zarr"), mode="r")[...], expected)


def test_a_mask_of_the_whole_fills_the_chunks_that_it_touches(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array(
        str(tmp_path / "x.zarr"), shape=SHAPE, chunks=(3, 5, 4), dtype="<f8", fill_value=-7, compressors=None
    )
    mask = np.zeros(SHAPE, bool)
    mask[[0, 11], [4, 0], [0, 3]] = True
    with penstock.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file[next(iter(file))][mask] = np.array([1.5, 2.5])
    expected = np.full(SHAPE, -7.0)
    expected[mask] = [1.5, 2.5]
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "x.zarr"), mode="r")[...], expected)
    assert not (tmp_path / "x.zarr" / "c" / "1").exists()


def test_an_index_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.h5", {"x": values()}, "host")
    with penstock.open(tmp_path / "x.h5", write=True, device="host") as file:
        with pytest.raises(ValueError, match="dataset 'x': an index of the list is there twice.*name each once"):
            file["x"][[3, -9]] = values()[:2]
        with pytest.raises(ValueError, match="the value has shape"):
            file["x"][[3, 4]] = values()[:1]
    np.testing.assert_array_equal(np.asarray(penstock.open(tmp_path / "x.h5", device="host")["x"][...]), values())


LISTS = [[7, 1, 4], np.arange(12) % 5 == 1, (slice(None), [4, 0]), (slice(2, 9), slice(1), [3])]


@pytest.mark.parametrize("index", LISTS)
@pytest.mark.parametrize("again", [False, True])
def test_stock_libraries_find_what_lists_wrote_into_netcdf_classic(tmp_path: Path, again: bool, index: Any) -> None:
    path, expected = tmp_path / "x.nc3", values("<f4")
    value = -1 - expected[index]
    with penstock.create(path, device="host") as file:
        file["data"] = expected
        if not again:
            file["data"][index] = value
    if again:
        with penstock.open(path, write=True, device="host") as file:
            file["data"][index] = value
            with pytest.raises(ValueError, match="name each once"):
                file["data"][[1, 2, 1]] = expected[:3]
    expected[index] = value
    with pytest.importorskip("netCDF4").Dataset(path) as stock:
        np.testing.assert_array_equal(np.asarray(stock["data"][...]), expected)


@pytest.mark.parametrize("index", LISTS)
def test_numpy_finds_what_lists_wrote(tmp_path: Path, index: Any) -> None:
    expected = values("<f4")
    with penstock.create(tmp_path / "x.npy", device="host") as file:
        file["data"] = expected
        expected[index] = -1 - expected[index]
        file["data"][index] = expected[index]
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)
    with penstock.open(tmp_path / "x.npy", write=True, device="host") as file:
        expected[index] = 2 - expected[index]
        file["data"][index] = expected[index]
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)
