"""What C reads of a file by name is what Python reads of it: formats, types, boxes, compressed chunks.

The C ABI is called by ctypes; the structs are those of penstock.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

LIBRARY = Path(ps.__file__).parent / "lib" / "libpenstock.so.0"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")

_SYSTEM = 3
_RANK = 16
_U64, _I64, _I32, _TEXT, _ANY = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p


class _Struct(ctypes.Structure):
    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        if hasattr(self, "struct_size"):
            self.struct_size = ctypes.sizeof(self)


class _Error(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("code", _I32), ("system_code", _I32), ("offset_bytes", _U64), ("length_bytes", _U64)),
        *(("operation", ctypes.c_char * 64), ("file", ctypes.c_char * 1024), ("cause", ctypes.c_char * 512)),
        *(("advice", ctypes.c_char * 512), ("message", ctypes.c_char * 2048)),
    )


class _ContextOptions(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("device", _TEXT), ("path", _TEXT), ("budget_bytes", _U64), ("workers", _I32)),
        *(("strict", _I32), ("bandwidth", ctypes.c_double), ("latency", _U64), ("profile", _TEXT)),
        *(("adaptive", _I32), ("reserved", _I32)),
    )


class _Request(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("data", _ANY), ("bytes", _U64), ("kind", _I32), ("memory_reserved", _I32)),
        *(("offset_bytes", _U64), ("path", _TEXT), ("chunk_bytes", _U64), ("workers", _I32), ("depth", _I32)),
        *(("strict", _I32), ("durable", _I32), ("full_evidence", _I32), ("reserved", _I32), ("timeout_ms", _I64)),
        *(("progress", _ANY), ("user", _ANY)),
    )


class _Info(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("dtype", ctypes.c_char * 64), ("format", ctypes.c_char * 32), ("item_bytes", _U64)),
        *(("rank", _U64), ("bytes", _U64), ("is_encoded", _I32), ("is_swapped", _I32)),
        *(("shape", _U64 * _RANK), ("chunk_shape", _U64 * _RANK)),
    )


class _Selection(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("rank", _U64), ("start", ctypes.POINTER(_U64)), ("count", ctypes.POINTER(_U64))),
        *(("step", ctypes.POINTER(_U64)), ("strides_bytes", _ANY)),
    )


class _Name(_Struct):
    _fields_ = (("data", _ANY), ("capacity", _U64), ("needed", _U64))


class CError(Exception):
    """What penstock_error says."""


class CDatasets:
    """The datasets of one file."""

    def __init__(self, library: Path, name: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.penstock_context_destroy.argtypes = [_ANY]
        self._library.penstock_datafile_close.argtypes = [_ANY]
        self._library.penstock_dataset_close.argtypes = [_ANY]
        self._context, self._file = _ANY(), _ANY()
        self._call("context_create", ctypes.byref(_ContextOptions(device=b"host")), ctypes.byref(self._context))
        self._call("datafile_open", self._context, str(name).encode(), None, ctypes.byref(self._file))

    def _call(self, function: str, *arguments: Any) -> None:
        error = _Error()
        if getattr(self._library, f"penstock_{function}")(*arguments, ctypes.byref(error)) != 0:
            raise CError(error.message.decode())

    def names(self) -> list[str]:
        count, found = _U64(), []
        self._call("datafile_count", self._file, ctypes.byref(count))
        for index in range(count.value):
            room = ctypes.create_string_buffer(1000)
            text = _Name(data=ctypes.cast(room, _ANY), capacity=1000)
            self._call("datafile_name", self._file, _U64(index), ctypes.byref(text))
            found.append(room.value.decode())
        return found

    def read(self, name: str, dtype: np.dtype[Any], box: Sequence[tuple[int, int, int]] | None = None) -> np.ndarray:
        """`box`: (start, count, step) of each dimension; None: all."""
        dataset, info = _ANY(), _Info()
        self._call("dataset_open", self._file, name.encode(), ctypes.byref(dataset))
        try:
            self._call("dataset_describe", dataset, ctypes.byref(info))
            assert info.item_bytes == dtype.itemsize
            shape = tuple(info.shape[: info.rank]) if box is None else tuple(count for _, count, _ in box)
            out = np.full(shape, 0, dtype)
            selection = None
            if box is not None:
                columns = [(_U64 * len(box))(*column) for column in zip(*box, strict=True)]
                selection = _Selection(rank=len(box), start=columns[0], count=columns[1], step=columns[2])
            request = _Request(data=out.ctypes.data, bytes=out.nbytes, kind=_SYSTEM)
            chosen = None if selection is None else ctypes.byref(selection)
            self._call("dataset_read", dataset, chosen, ctypes.byref(request), None)
            return out
        finally:
            self._library.penstock_dataset_close(dataset)

    def close(self) -> None:
        self._library.penstock_datafile_close(self._file)
        self._library.penstock_context_destroy(self._context)


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


def test_hdf5_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    ps.save(tmp_path / "a.h5", {"a": np.zeros(3)})
    with pytest.raises(CError, match=r"need the HDF5 library.*Python"):
        CDatasets(LIBRARY, tmp_path / "a.h5")
