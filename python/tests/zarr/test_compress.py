"""Compressed arrays of Zarr: zarr-python reads back bit for bit what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import _core
from penstock.formats.packing import encoding

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
        file["a"][20:40] = later[:20]
        file["a"].append(later)
    array[20:40] = later[:20]
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], np.concatenate([array, later]))


def test_an_array_grows_though_chunks_at_an_end_that_stays_are_not_full(tmp_path: Path) -> None:
    array = values((12, 10))
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        options: Any = {"chunk_shape": (4, 3), "resizable": (None, 10), "compression": "gzip"}
        file.create_dataset("a", (0, 10), "f4", **options).append(array[:4])
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"].append(array[4:])
        file["a"].append(array[:3])
        file["a"].append(array[3:6])
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], np.concatenate([array, array[:6]]))


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


@pytest.mark.parametrize("dtype", ["i1", "<u2", ">i4", "<f4", ">f8", "<c16"])
@pytest.mark.parametrize("sharded", [False, True])
def test_shuffled_chunks_of_any_type(name: str, dtype: str, sharded: bool, tmp_path: Path) -> None:
    array = values((90, 70)).astype(dtype)
    layout = {"chunk_shape": (16, 32), **({"shard_shape": (32, 64)} if sharded else {})}
    sizes = {}
    for shuffle in (False, True):
        path = tmp_path / f"{shuffle}.zarr"
        with ps.create(path, device="host") as file:
            file.create_dataset("a", array.shape, dtype, compression=name, shuffle=shuffle, **layout)[...] = array
        found = zarr.open(path)["a"]
        chain = str(found.metadata.codecs)
        assert ("numcodecs.shuffle" in chain) == (shuffle and array.itemsize > 1)
        assert np.array_equal(found[...], array)
        with ps.open(path, device="host") as file:
            assert np.array_equal(file["a"][...].to_numpy(), array)
            assert not any("format's library" in note for note in file.evidence()["notes"])
        sizes[shuffle] = sum(one.stat().st_size for one in path.rglob("c/*/*"))
    assert sizes[True] < sizes[False] or name == "gzip" or array.itemsize in (1, 2), "smooth numbers become shorter"


SHARDS = [
    ((100,), (10,), (40,)),
    ((64, 64), (16, 64), (32, 64)),
    ((130, 100), (10, 20), (40, 60)),
    ((9, 10, 11), (3, 5, 11), (3, 5, 11)),
    ((1, 1), (5, 5), (10, 10)),
]


@pytest.mark.parametrize("shapes", SHARDS)
@pytest.mark.parametrize("parts", [1, 100])
def test_shards_of_packed_chunks_are_those_of_zarr_python(
    name: str, shapes: Any, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, chunk, shard = shapes
    array, later = values(shape), values(shape, seed=1)
    monkeypatch.setattr(encoding, "ENCODE_BYTES", max(1, array.nbytes // parts))  # a shard comes in several parts
    layout = {"chunk_shape": chunk, "shard_shape": shard, "compression": name}
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        one = file.create_dataset("a", shape, "f4", **layout)
        one[...] = later
        one[...] = array  # once more before it has its name
        assert np.array_equal(one[...].to_numpy(), array), "before it is closed"
    found = zarr.open(tmp_path / "x.zarr")["a"]
    assert (found.chunks, found.shards) == (chunk, shard)
    assert np.array_equal(found[...], array)
    half = tuple(slice(n // 2, None) for n in shape)
    assert np.array_equal(found[half], array[half])
    assert np.array_equal(ps.load(tmp_path / "x.zarr", device="host")["a"].to_numpy(), array)


@pytest.mark.parametrize("place", ["start", "end"])
def test_shards_of_zarr_python_are_replaced_whole_and_appended(name: str, place: str, tmp_path: Path) -> None:
    array, store = values((64, 64), "<f8"), zarr.create_group(tmp_path / "x.zarr")
    codec = zarr.codecs.GzipCodec(level=1) if name != "zstd" else zarr.codecs.ZstdCodec(level=1)
    sharding = zarr.codecs.ShardingCodec(
        chunk_shape=(8, 16), codecs=[zarr.codecs.BytesCodec(), codec, zarr.codecs.Crc32cCodec()], index_location=place
    )
    made = store.create_array(
        "a", shape=(64, 64), dtype="f8", chunks=(32, 64), serializer=sharding, compressors=None, filters=None
    )
    made[...] = 1
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        for part in (slice(32, 64), slice(16, 40), slice(0, 8), (slice(32, 64), slice(0, 32))):
            file["a"][part] = array[part]
        assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], np.ones((64, 64))), "until it is published"
        file["a"].append(array[:16])
        file["a"].append(array[16:32])
    array[8:16] = 1
    found = zarr.open(tmp_path / "x.zarr")["a"]
    assert np.array_equal(found[:64], array) and np.array_equal(found[80:], array[16:32])


def test_whole_shards_are_appended(name: str, tmp_path: Path) -> None:
    array = values((96, 50))
    layout = {"chunk_shape": (8, 25), "shard_shape": (32, 50), "resizable": (None, 50), "compression": name}
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        file.create_dataset("a", (0, 50), "f4", **layout).append(array[:32])
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"].append(array[32:])
        assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], array[:32])
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], array)
    assert {one.name for one in (tmp_path / "x.zarr/a").rglob("*")} == {"zarr.json", "c", "0", "1", "2"}


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"dtype": "V300", "compression": "zstd", "shuffle": True}, "elements of less than 256 bytes"),
        ({"dtype": "f4", "compression": "zstd", "chunk_shape": (10,), "shard_shape": (15,)}, "divide|multiple"),
    ],
)
def test_what_zarr_has_not_is_refused(layout: Any, words: str, tmp_path: Path) -> None:
    with ps.create(tmp_path / "x.zarr", device="host") as file, pytest.raises(ps.Error, match=words):
        file.create_dataset("a", (20,), **layout)
