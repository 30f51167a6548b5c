"""Parts of compressed chunks and shards of Zarr are written: NumPy then holds the same, and zarr-python reads it."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from places import examples

import penstock as ps

zarr = pytest.importorskip("zarr", minversion="3")
ROWS, COLUMNS = 50, 33
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunk_shape": (16, 10), "compression": "zstd"},
    "rows": {"chunk_shape": (8, COLUMNS), "compression": "gzip", "shuffle": True},
    "shards": {"chunk_shape": (4, 11), "shard_shape": (16, 22), "compression": "zstd"},
}


def numbers(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1000, shape).astype("f4")


def made(path: Path, layout: str, dtype: str = "f4") -> np.ndarray:
    array = numbers(0, (ROWS, COLUMNS))
    with ps.create(path, device="host") as file:
        one = file.create_dataset("a", array.shape, dtype, resizable=(None, COLUMNS), **LAYOUTS[layout])
        one[...] = array.astype(dtype)
    return array


@st.composite
def part(draw: st.DrawFn, rows: int) -> Any:
    kind = draw(st.sampled_from(["row", "box", "box", "list", "backwards"]))
    first = draw(st.integers(0, rows - 1))
    if kind == "row":
        return first
    if kind == "list":
        return draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6, unique=True))
    left = draw(st.integers(0, COLUMNS - 1))
    columns = slice(left, draw(st.integers(left + 1, COLUMNS)), draw(st.sampled_from([1, 2])))
    last = draw(st.integers(first + 1, rows))
    if kind == "backwards":
        return slice(last - 1, first - 1 if first else None, -draw(st.sampled_from([1, 3]))), columns
    return slice(first, last, draw(st.sampled_from([1, 4]))), columns


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_parts_leave_what_numpy_holds(tmp_path: Path, layout: str) -> None:
    number = iter(range(1 << 30))

    @settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        path = tmp_path / f"{next(number)}.zarr"
        held = made(path, layout)
        with ps.open(path, write=True, device="host") as file:
            dataset = file["a"]
            for step in range(data.draw(st.integers(1, 6))):
                what = data.draw(st.sampled_from(["write", "write", "background", "append"]))
                if what == "append":
                    more = numbers(step, (data.draw(st.integers(1, 20)), COLUMNS))
                    dataset.append(more)
                    held = np.concatenate([held, more])
                    continue
                index = data.draw(part(len(held)))
                value = numbers(step, held[index].shape)
                if what == "write":
                    dataset[index] = value
                else:
                    dataset.start_write(value, index)
                held[index] = value
                assert np.array_equal(dataset[...], held)
        assert np.array_equal(zarr.open(path)["a"][...], held)

    check()


def test_chunks_that_are_not_there_are_made_with_the_fill_value(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a", shape=(20, 20), chunks=(10, 10), dtype="i4", fill_value=7)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][3, 4:6] = np.array([1, 2], "i4")
    expected = np.full((20, 20), 7, "i4")
    expected[3, 4:6] = 1, 2
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], expected)
    assert [one.name for one in (tmp_path / "x.zarr/a/c").rglob("*") if one.is_file()] == ["0"], "the others stay away"


def test_threads_that_change_one_chunk_lose_nothing(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", "rows")
    together = threading.Barrier(4)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:

        def write(first: int) -> None:
            for row in range(first, 48, 4):
                together.wait(60)
                file["a"][row] = np.full(COLUMNS, row, "f4")

        threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = zarr.open(tmp_path / "x.zarr")["a"][:48]
    assert np.array_equal(found, np.repeat(np.arange(48, dtype="f4")[:, None], COLUMNS, 1))


def test_readers_see_the_old_elements_until_it_is_published(tmp_path: Path) -> None:
    held = made(tmp_path / "x.zarr", "chunks")
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][0] = np.zeros(COLUMNS, "f4")
        assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)
        assert not np.asarray(file["a"][0]).any()
        file.abandon()
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)


@pytest.mark.parametrize("dtype", [">f4", "<f8"])
def test_values_of_another_type_are_refused_and_the_byte_order_is_the_files(tmp_path: Path, dtype: str) -> None:
    held = made(tmp_path / "x.zarr", "rows", dtype).astype(dtype)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        with pytest.raises(TypeError, match="the value has elements of int16"):
            file["a"][0] = np.zeros(COLUMNS, "i2")
        with pytest.raises(ValueError, match="has shape"):
            file["a"][0] = np.zeros(COLUMNS - 1, dtype)
        file["a"][1] = np.arange(COLUMNS).astype(dtype)
        file["a"][2] = np.arange(COLUMNS).astype(np.dtype(dtype).newbyteorder())
    held[1:3] = np.arange(COLUMNS)
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)


def test_hdf5_says_that_it_does_not(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("a", data=numbers(0, (ROWS, COLUMNS)), chunks=(8, COLUMNS), compression="gzip")
    with ps.open(tmp_path / "x.h5", write=True, device="host") as file, pytest.raises(ps.Error, match="compressed"):
        file["a"][3] = np.zeros(COLUMNS, "f4")
