"""Compressed arrays of Zarr: zarr-python reads back bit for bit what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import _core

zarr = pytest.importorskip("zarr", minversion="3")


def values(shape: tuple[int, ...], dtype: str = "<f4", seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 100, shape)
    return (np.arange(noise.size).reshape(shape) // 7 + noise).astype(dtype)


@pytest.fixture(params=["gzip", "zstd", "lz4"])
def name(request: pytest.FixtureRequest) -> str:
    if request.param not in _core.encoded_filters():
        pytest.skip(f"this build has no encoder for {request.param}")
    return str(request.param)


@pytest.mark.parametrize("shape", [(1,), (1000,), (513, 517), (40, 30, 20), (900_001,)])
def test_zarr_python_reads_what_was_saved(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = values(shape)
    ps.save(tmp_path / "x.zarr", {"a": array}, device="host", compression=name)
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], array)
    assert np.array_equal(np.asarray(ps.load(tmp_path / "x.zarr", device="host")["a"]), array)


@pytest.mark.parametrize("dtype", ["i1", "<u2", ">i4", ">f8", "<c16", "?"])
def test_edge_chunks_of_any_type_and_byte_order(dtype: str, tmp_path: Path) -> None:
    array = values((130, 130)).astype(dtype)
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        one = file.create_dataset("g/a", array.shape, array.dtype, chunk_shape=(64, 50), compression="gzip")
        one[...] = array
        assert np.array_equal(np.asarray(file["g/a"][...]), array), "before it is closed"
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["g/a"][...], array)


def test_chunks_of_an_older_store_are_replaced_whole_and_appended(name: str, tmp_path: Path) -> None:
    array, later = values((60, 50)), values((40, 50), seed=1)
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        one = file.create_dataset("a", (60, 50), "f4", chunk_shape=(20, 50), compression=name)
        one[...] = later[:1].repeat(60, 0)
        one[...] = array  # once more before it has its name
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        with pytest.raises(ps.Error, match="write whole chunks at a time"):
            file["a"][:30] = later[:30]
        with pytest.raises(ps.Error, match="write whole chunks at a time"):
            file["a"][10:40] = later[:30]
        file["a"][20:40] = later[:20]
        file["a"].append(later)
        with pytest.raises(ps.Error, match="compressed"):
            file["a"].append(later[:15])
            file["a"].append(later[:20])
    array[20:40] = later[:20]
    found = zarr.open(tmp_path / "x.zarr")["a"][...]
    assert np.array_equal(found[:100], np.concatenate([array, later]))


def test_an_array_grows_though_chunks_at_an_end_that_stays_are_not_full(tmp_path: Path) -> None:
    array = values((12, 10))
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        options: Any = {"chunk_shape": (4, 3), "resizable": (None, 10), "compression": "gzip"}
        file.create_dataset("a", (0, 10), "f4", **options).append(array[:4])
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"].append(array[4:])
        file["a"].append(array[:3])
        with pytest.raises(ps.Error, match=r"the last ones of \(15, 10\) are not full; append whole chunks"):
            file["a"].append(array[:3])
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], np.concatenate([array, array[:3]]))


def test_chunks_that_zarr_python_wrote_are_replaced(tmp_path: Path) -> None:
    array = values((64, 64), "<f8")
    store = zarr.create_group(tmp_path / "x.zarr")
    codec = zarr.codecs.GzipCodec(level=1)
    made = store.create_array(
        "a", shape=(64, 64), dtype="f8", chunks=(32, 64), compressors=[codec, zarr.codecs.Crc32cCodec()]
    )
    made[...] = 1
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][32:] = array[32:]
    array[:32] = 1
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], array)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"compression": "zstd", "shuffle": True}, "no codec of Zarr version 3 only shuffles"),
        ({"compression": "zstd", "chunk_shape": (10,), "shard_shape": (20,)}, "not written into shards"),
    ],
)
def test_what_zarr_has_not_is_refused(layout: Any, words: str, tmp_path: Path) -> None:
    with ps.create(tmp_path / "x.zarr", device="host") as file, pytest.raises(ps.Error, match=words):
        file.create_dataset("a", (20,), "f4", **layout)
