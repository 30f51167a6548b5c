"""What C reads of a file by name is what Python reads of it: formats, types, boxes, compressed chunks."""

from __future__ import annotations

import contextlib
import os
import random
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_abi.dataset_rig import LIBRARY, CDatasets, CError

import penstock as ps

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")

TYPES = ("int8", "uint8", "int16", "int32", "int64", "uint16", "float32", "float64")


def _arrays(types: tuple[str, ...]) -> dict[str, np.ndarray]:
    made = np.random.default_rng(3)
    return {f"a_{name}": (made.random((13, 5, 7)) * 100).astype(name) for name in types}


def _same(name: Path, arrays: dict[str, np.ndarray]) -> None:
    with ps.open(name, device="host") as file:
        wanted = {one: np.asarray(file[one][...]) for one in arrays}
    datasets, draw = CDatasets(LIBRARY, name), random.Random(4)
    try:
        assert sorted(datasets.names()) == sorted(arrays)
        for one, array in wanted.items():
            np.testing.assert_array_equal(datasets.read(one, array.dtype), array)
            for _ in range(20):
                box = []
                for extent in array.shape:
                    start, step = draw.randrange(extent), draw.choice((1, 1, 2, 3))
                    box.append((start, draw.randint(1, (extent - 1 - start) // step + 1), step))
                chosen = tuple(slice(start, start + (count - 1) * step + 1, step) for start, count, step in box)
                np.testing.assert_array_equal(datasets.read(one, array.dtype, box), array[chosen])
    finally:
        datasets.close()


@pytest.mark.parametrize("suffix", [".safetensors", ".nc3"])
def test_files_of_many_datasets_read_the_same(tmp_path: Path, suffix: str) -> None:
    types = TYPES if suffix == ".safetensors" else ("int8", "int16", "int32", "float32", "float64")
    ps.save(tmp_path / f"a{suffix}", _arrays(types))
    _same(tmp_path / f"a{suffix}", _arrays(types))


@pytest.mark.parametrize("dtype", [*TYPES, ">f8", ">i2", "complex64", ">c16", "bool", "S5"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_saves_reads_the_same(tmp_path: Path, dtype: str, order: str) -> None:
    array = np.asarray((np.random.default_rng(5).random((4, 6, 3)) * 100).astype(dtype), order=order)
    np.save(tmp_path / "a.npy", array)
    _same(tmp_path / "a.npy", {"data": array})


def test_records_between_those_of_others_read_the_same(tmp_path: Path) -> None:
    arrays = _arrays(("int8", "int16", "float64"))
    with ps.create(tmp_path / "a.nc3", device="host") as file:
        grows = {name: (one.shape, one.dtype, {"resizable": (None, *one.shape[1:])}) for name, one in arrays.items()}
        file.create_datasets(grows)
        for name, array in arrays.items():
            file[name][...] = array
    _same(tmp_path / "a.nc3", arrays)


@pytest.mark.parametrize("compression", [None, "gzip", "zstd", "lz4"])
def test_zarr_reads_the_same(tmp_path: Path, compression: str | None) -> None:
    arrays = _arrays(TYPES)
    with ps.create(tmp_path / "a.zarr", device="host") as file:
        for name, array in arrays.items():
            file.create_dataset(name, array.shape, array.dtype, chunk_shape=(4, 3, 7), compression=compression)
            file[name][...] = array
    _same(tmp_path / "a.zarr", arrays)


def test_a_history_of_raw_files_reads_the_same(tmp_path: Path) -> None:
    values = np.random.default_rng(4).random((5, 3, 7)).astype("f4")
    with ps.History(tmp_path / "run", format="raw", device="host") as history:
        history.define("T", ("y", "x"), like=values[0])
        for step in range(5):
            history.put("T", values[step])
            history.end_step(2.0 * step)
    _same(tmp_path / "run", {"time": 2.0 * np.arange(5), "T": values})


def _sharded(folder: Path, array: np.ndarray, location: str, compressors: Any) -> Path:
    """By zarr-python: shards of 2 x 2 chunks, some of which are not stored."""
    zarr = pytest.importorskip("zarr")
    codecs = zarr.codecs
    index = [codecs.BytesCodec(endian="big" if location == "start" else "little"), codecs.Crc32cCodec()]
    sharding = codecs.ShardingCodec(
        chunk_shape=(3, 4), codecs=[codecs.BytesCodec(), *compressors], index_codecs=index, index_location=location
    )
    made = zarr.create_array(
        folder / "a.zarr/x", shape=array.shape, dtype=array.dtype, chunks=(6, 8), serializer=sharding, compressors=None
    )
    made[:7] = array[:7]  # the chunks of rows 9 and later are not there
    (folder / "a.zarr/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    return folder / "a.zarr"


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("packed", [True, False])
def test_shards_read_the_same(tmp_path: Path, location: str, packed: bool) -> None:
    zarr = pytest.importorskip("zarr")
    array = np.random.default_rng(2).integers(0, 1000, (14, 21), dtype="int32")
    array[7:] = 0
    _same(_sharded(tmp_path, array, location, [zarr.codecs.ZstdCodec()] if packed else []), {"x": array})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "checksum of the shard's index"),
        (lambda raw: raw[:40], "its index alone has 68"),
        (lambda raw: raw[100:], "the shard ends at"),
    ],
)
def test_a_damaged_shard_is_refused(tmp_path: Path, spoil: Any, words: str) -> None:
    array = np.arange(14 * 21, dtype="int32").reshape(14, 21) + 1
    datasets = CDatasets(LIBRARY, _sharded(tmp_path, array, "end", []))
    shard = tmp_path / "a.zarr/x/c/0/0"
    try:
        np.testing.assert_array_equal(datasets.read("x", array.dtype)[:6], array[:6])
        shard.write_bytes(spoil(shard.read_bytes()))
        with pytest.raises(CError, match=words):
            datasets.read("x", array.dtype)
    finally:
        datasets.close()


@pytest.mark.parametrize("free", [40, 14])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_many_chunk_files_are_read_with_few_descriptors(tmp_path: Path, compression: str | None, free: int) -> None:
    """The rest of the process holds all others."""
    array = np.arange(1800, dtype="int32").reshape(600, 3)
    with ps.create(tmp_path / "a.zarr", device="host") as file:
        file.create_dataset("x", array.shape, array.dtype, chunk_shape=(2, 3), compression=compression)[...] = array
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    datasets = CDatasets(LIBRARY, tmp_path / "a.zarr")
    highest = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(64, highest + free + 1), before[1]))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(free):
            os.close(taken.pop())
        for _ in range(2):
            np.testing.assert_array_equal(datasets.read("x", array.dtype), array)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        datasets.close()
