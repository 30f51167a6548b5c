"""Blosc 2: the cores give what hdf5plugin wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py, hdf5plugin = pytest.importorskip("h5py"), pytest.importorskip("hdf5plugin")

KINDS = ["u1", "<i2", ">u4", "<f4", "<f8", "<c16", "S7", "V3", [("a", "<i2"), ("b", "<f8"), ("c", "u1", (3,))]]
SHAPES = [
    ((1000,), (300,)),
    ((7, 9, 11), (3, 9, 5)),
    ((40, 30), (20, 15)),
    ((2, 3, 4, 5), (2, 3, 2, 5)),
    ((1, 1), (1, 1)),
]
CUT = [
    ((257, 513), (257, 513)),
    ((90, 80, 33), (45, 80, 33)),
    ((9, 11, 40, 60), (5, 11, 40, 60)),
    ((130_000,), (70_000,)),
]
CODECS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
FILTERS = [hdf5plugin.Blosc2.NOFILTER, hdf5plugin.Blosc2.SHUFFLE, hdf5plugin.Blosc2.BITSHUFFLE]


def content(kind: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Random, smooth, of one value, or of zeros."""
    count, size = int(np.prod(shape)), np.dtype(kind).itemsize
    random = np.random.default_rng(seed).integers(0, 256, (count, size), np.uint8)
    how = {0: random, 1: random % 2 + (np.arange(count) // 50 % 200)[:, None], 2: random * 0 + 7, 3: random * 0}
    return np.ascontiguousarray(how[seed % 4].astype(np.uint8)).reshape(-1).view(np.dtype(kind)).reshape(shape)


@pytest.mark.parametrize("codec", CODECS)
def test_all_types_shapes_filters_and_contents(codec: str, tmp_path: Path) -> None:
    seed, written = 0, {}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for kind in KINDS:
            for shape, chunks in SHAPES:
                for filters in FILTERS:
                    seed += 1
                    how = hdf5plugin.Blosc2(cname=codec, clevel=seed % 9 + 1, filters=filters)
                    written[str(seed)] = content(kind, shape, seed)
                    file.create_dataset(str(seed), data=written[str(seed)], chunks=chunks, **how)
    check(tmp_path / "x.h5", written)


@pytest.mark.parametrize("codec", ["blosclz", "lz4", "zstd"])
def test_chunks_that_are_cut_into_blocks(codec: str, tmp_path: Path) -> None:
    """Which blosc does where a chunk does not fit into a cache: the lower the level, the smaller are they."""
    written = {}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for shape, chunks in CUT:
            for kind in ("u1", "<f4", "<f8"):
                name = f"{len(shape)} {kind}"
                written[name] = content(kind, shape, 4 * len(written) + len(written) % 2)  # random or smooth
                how = hdf5plugin.Blosc2(cname=codec, clevel=1, filters=FILTERS[len(written) % 3])
                file.create_dataset(name, data=written[name], chunks=chunks, **how)
    check(tmp_path / "x.h5", written)


def check(path: Path, written: dict[str, np.ndarray]) -> None:
    with ps.open(path, device="host") as file:
        for name, expected in written.items():
            found = file[name][...].to_numpy()
            native = expected.astype(expected.dtype.newbyteorder("=")) if expected.dtype.kind in "iufc" else expected
            assert found.tobytes() == native.tobytes(), (name, expected.dtype, expected.shape)
        decoders = file.evidence()["formats"]["decoders"]
        assert decoders["host by Penstock"] > 0.9 * sum(decoders.values()), "all but chunks that were not packed"


def test_numbers_that_are_no_numbers_and_equal_ones(tmp_path: Path) -> None:
    values = {
        name: np.full(50_000, value, kind)
        for kind in ("<f4", "<f8", "<i8")
        for name, value in ((f"{kind} nan", np.nan if kind[1] == "f" else -1), (f"{kind} 5", 5), (f"{kind} 0", 0))
    }
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, array in values.items():
            file.create_dataset(name, data=array, chunks=(20_000,), **hdf5plugin.Blosc2())
    with ps.open(tmp_path / "x.h5", device="host") as file:
        for name, array in values.items():
            assert file[name][...].to_numpy().tobytes() == array.tobytes(), name
        assert set(file.evidence()["formats"]["decoders"]) == {"host by Penstock"}


def test_what_the_cores_do_not_undo_is_left_to_the_library(tmp_path: Path) -> None:
    array = np.arange(5000, dtype="<i4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        delta = hdf5plugin.Blosc2(filters=hdf5plugin.Blosc2.DELTA)
        file.create_dataset("delta", data=array, chunks=(1000,), **delta)
        short = hdf5plugin.Blosc2(filters=hdf5plugin.Blosc2.TRUNC_PREC)
        file.create_dataset("short", data=np.sqrt(array.astype("<f4")), chunks=(1000,), **short)
    with h5py.File(tmp_path / "x.h5") as stock, ps.open(tmp_path / "x.h5", device="host") as file:
        assert np.array_equal(file["delta"][...].to_numpy(), array)
        assert set(file.evidence()["formats"]["decoders"]) == {"host by HDF5"}
        assert np.array_equal(file["short"][...].to_numpy(), stock["short"][...])


def test_every_cut_of_a_chunk_is_an_error(tmp_path: Path) -> None:
    array = np.arange(600, dtype="<f4").reshape(20, 30)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("d", data=array, chunks=(20, 30), **hdf5plugin.Blosc2())
        packed = made.id.read_direct_chunk((0, 0))[1]
        for size in range(0, len(packed), 7):
            other = file.create_dataset(str(size), (20, 30), "<f4", chunks=(20, 30), **hdf5plugin.Blosc2())
            other.id.write_direct_chunk((0, 0), packed[:size] or b"\0")
    with ps.open(tmp_path / "x.h5", device="host") as file:
        for name in file:
            if name == "d":
                continue
            with pytest.raises(ps.Error, match=r"chunk at \[0, 0\] is damaged: (filter blosc2|it has)"):
                file[name].read()
