"""Chunks decoded on the host's cores: the bytes that stock readers give, of every filter, type, shape and selection;
and what damaged chunks, cancelling and time limits give."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import format_kit as kit
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import penstock
from penstock import _core
from penstock.formats.reading import kept

h5py = pytest.importorskip("h5py")

GZIP: dict[str, Any] = {"compression": "gzip"}


def hdf5_filters() -> dict[str, dict[str, Any]]:
    """Options of create_dataset by name, for each filter that the core undoes and is here to write."""
    found: dict[str, dict[str, Any]] = {
        "gzip": GZIP,
        "shuffle+gzip": GZIP | {"shuffle": True},
        "shuffle+gzip+fletcher32": GZIP | {"shuffle": True, "fletcher32": True},
        "shuffle": {"shuffle": True},
        "fletcher32": {"fletcher32": True},
        "shuffle+lzf": {"compression": "lzf", "shuffle": True},
    }
    try:
        import hdf5plugin
    except ImportError:
        return found
    blosc = {f"blosc-{name}-{how}": hdf5plugin.Blosc(name, 5, how) for name in BLOSC for how in (0, 1, 2)}
    others = {"lz4": hdf5plugin.LZ4(), "lz4-blocks": hdf5plugin.LZ4(nbytes=96), "bzip2": hdf5plugin.BZip2()}
    bits = {f"bitshuffle-{name}": hdf5plugin.Bitshuffle(cname=name) for name in ("none", "lz4", "zstd")}
    bits["bitshuffle-blocks"] = hdf5plugin.Bitshuffle(nelems=16, cname="lz4")
    every = {"zstd": hdf5plugin.Zstd(), **others, **bits, **blosc}
    return found | {name: dict(one) for name, one in every.items()}


BLOSC = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
FILTERS = hdf5_filters()
DTYPES = ["<f4", ">f8", "<i2", ">u4", "i1", "<c16", "<f2", "S5", "S12"]


@pytest.fixture(autouse=True, scope="module")
def _stock_writers() -> None:
    """netCDF4, once imported, shows HDF5 a folder of filters, whose blosc h5py cannot write with."""
    with suppress(ImportError):
        import hdf5plugin

        hdf5plugin.register(force=True)


def decoders(file: penstock.DataFile) -> set[str]:
    return set(file.evidence()["formats"]["decoders"])


def same(found: Any, wanted: np.ndarray) -> bool:
    native = np.asarray(wanted, wanted.dtype.newbyteorder("="))
    return np.asarray(found).shape == native.shape and np.asarray(found).tobytes() == native.tobytes()


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("chunk", [(64, 50), (7, 3), (203, 70)])
def test_each_filter_gives_what_hdf5_gives_and_hdf5_is_not_asked(
    name: str, chunk: tuple[int, ...], tmp_path: Path
) -> None:
    for number, dtype in enumerate(["<f8", ">i2", "S3"]):
        data = np.add.outer(np.arange(203) // (number + 3), np.arange(70) // 5 * 7).astype(dtype)
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=data, chunks=chunk, **FILTERS[name])
        with penstock.open(path, device="host") as file:
            assert same(file["x"][...], data)
            assert same(file["x"][5:190:3, ::-2], data[5:190:3, ::-2])
            # HDF5 may have left chunks at an edge as they are, and small ones that would have grown.
            assert chunk == (7, 3) or decoders(file) - {"host by HDF5"}
            assert chunk != (203, 70) or "host by HDF5" not in decoders(file)


@st.composite
def stored(draw: Any) -> tuple[np.ndarray, dict[str, Any], Any]:
    """Data, how h5py is to store them, and a selection."""
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=12))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    data = kit.sample(shape, "i4", draw(st.integers(0, 9))).astype(dtype)
    options = {"chunks": tuple(draw(st.integers(1, extent)) for extent in shape)}
    options |= FILTERS[draw(st.sampled_from(list(FILTERS)))]
    return data, options, draw(basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))


@kit.few
@given(case=stored(), libver=st.sampled_from(["earliest", "latest"]))
def test_random_datasets_of_every_filter_read_as_h5py_reads_them(tmp_path: Path, case: tuple, libver: str) -> None:
    data, options, index = case
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        file.create_dataset("x", data=data, **options)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        assert same(file["x"][index], data[index])


# -- Zarr


def zarr_codecs() -> dict[str, Any]:
    codecs = pytest.importorskip("zarr.codecs")
    blosc = {
        f"blosc-{name}-{how}": codecs.BloscCodec(cname=name, shuffle=how)
        for name in BLOSC
        for how in ("noshuffle", "shuffle", "bitshuffle")
    }
    plain = {"gzip": codecs.GzipCodec(), "zstd": codecs.ZstdCodec(), "zstd-sum": codecs.ZstdCodec(checksum=True)}
    return plain | blosc | {"crc32c": codecs.Crc32cCodec()}


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_each_codec_of_zarr_gives_what_zarr_gives(sharded: bool, order: str, tmp_path: Path) -> None:
    zarr, codecs = pytest.importorskip("zarr"), pytest.importorskip("zarr.codecs")
    data = np.cumsum(kit.sample((40, 36), "i2"), axis=0).astype("f4")
    turned = [codecs.TransposeCodec(order=(1, 0))] if order == "F" else []
    for name, codec in zarr_codecs().items():
        where = {"shards": (16, 16)} if sharded else {}
        array = zarr.create_array(
            tmp_path / name, shape=(40, 36), dtype="f4", chunks=(8, 16), filters=turned, compressors=codec, **where
        )
        array[...] = data
        with penstock.open(tmp_path / name, device="host", format="zarr") as file:
            assert same(file[""][...], data), name
            assert same(file[""][3:30:2, 5:], data[3:30:2, 5:]), name
            assert "host by numcodecs" not in decoders(file)
            assert len(decoders(file)) == 1


@pytest.mark.parametrize("name", ["Zlib", "GZip", "Zstd", "LZ4", "Blosc"])
def test_each_compressor_of_version_2(name: str, tmp_path: Path) -> None:
    zarr, numcodecs = pytest.importorskip("zarr"), pytest.importorskip("numcodecs")
    data = np.cumsum(kit.sample((40, 36), "i2"), axis=0).astype(">f4")
    compressor = getattr(numcodecs, name)()
    array = zarr.create_array(
        tmp_path / "x", shape=(40, 36), dtype=">f4", chunks=(7, 9), zarr_format=2, compressors=compressor
    )
    array[...] = data
    with penstock.open(tmp_path / "x", device="host", format="zarr") as file:
        assert same(file[""][...], data)
        assert len(decoders(file)) == 1


# -- damage


def chunk_of(path: Path, number: int) -> tuple[int, int]:
    """Where a chunk lies."""
    with h5py.File(path) as file:
        info = file["x"].id.get_chunk_info(number)
        return info.byte_offset, info.size


@pytest.mark.parametrize("name", FILTERS)
def test_damaged_chunks_are_errors_and_never_wrong_values_where_there_is_a_checksum(name: str, tmp_path: Path) -> None:
    data = np.cumsum(kit.sample((60, 40), "i2"), axis=0).astype("i4")
    path, options = tmp_path / "x.h5", FILTERS[name]
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(20, 40), **options)
    good = path.read_bytes()
    at, size = chunk_of(path, 1)
    summed = options.get("fletcher32") or "gzip" in name or name == "bzip2"
    for where in {*range(0, min(size, 40)), *range(40, size, 97), size - 1}:
        damaged = bytearray(good)
        damaged[at + where] ^= 0x41
        path.write_bytes(damaged)
        with penstock.open(path, device="host") as file:
            try:
                found = np.asarray(file["x"][...])
            except penstock.Error as error:
                assert error.code == "damaged", error
                assert "its chunk at [20, 0] is damaged: " in error.cause
                assert (error.file, error.offset_bytes, error.length_bytes) == (str(path), at, size)
                continue
            assert not summed or np.array_equal(found, data), where


def test_the_cores_leave_chunks_that_skipped_filters_no_doubt(tmp_path: Path) -> None:
    """Written past the filters, with the mask that says so."""
    data = np.arange(40, dtype="<i4").reshape(4, 10)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("x", data=data, chunks=(1, 10), **FILTERS["shuffle+gzip"])
        made.id.write_direct_chunk((1, 0), data[1].tobytes(), 0b11)
        shuffled = data[2].view(np.uint8).reshape(10, 4).T.tobytes()
        made.id.write_direct_chunk((2, 0), shuffled, 0b10)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        assert same(file["x"][...], data)
        assert decoders(file) == {"host by libdeflate"}


# -- chunks that are kept


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """A file that was written long ago, its content, and its path."""
    data = np.cumsum(np.random.default_rng(1).integers(-9, 9, (400, 64)), axis=0).astype(">f8")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(50, 64), **FILTERS["shuffle+gzip"])
    os.utime(tmp_path / "x.h5", (1e9, 1e9))
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        yield file, data, tmp_path / "x.h5"


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as old at once: the time of the last change of an inode cannot be set."""
    monkeypatch.setattr(kept, "_SETTLED_NS", 0)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("emulated", [True, False])
def test_rows_of_a_chunk_decode_it_once(rows: Any, emulated: bool) -> None:
    file, data, _ = rows
    file._file._mover.emulated = emulated
    for row in (3, 4, 49, 3):
        assert same(file["x"].read(row, decode="host"), data[row])
    counts = file.evidence()["formats"]
    assert counts["batches"] == 1
    assert counts["decoders"] == {"host by libdeflate": 512, "host in an earlier read": 3 * 512}
    assert counts["host_decoded_bytes"] == 512
    assert same(
        file["x"].read(np.s_[40:60:3, 5:], decode="host"), data[40:60:3, 5:]
    )  # one that is kept, one that is not
    assert file.evidence()["formats"]["batches"] == 2


@pytest.mark.usefixtures("settled")
def test_a_whole_read_keeps_nothing_and_kept_chunks_are_bounded(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file, data, _ = rows
    monkeypatch.setattr(kept, "MOST_BYTES", 2 * 50 * 512)
    held = file._file._mover.kept.chunks
    assert same(file["x"][...], data)
    assert len(held) == 0
    for row in range(0, 400, 20):
        assert same(file["x"][row], data[row])
    assert len(held) == 2
    file.close()
    assert len(held) == 0


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("more", [0, 1])
def test_chunks_that_are_larger_than_a_call_keeps_are_not_kept(
    rows: Any, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, data, _ = rows
    monkeypatch.setattr(kept, "CALL_BYTES", 50 * 512 - more)
    for row in (7, 9):
        assert same(file["x"][row], data[row])
    assert len(file._file._mover.kept.chunks) == 1 - more


def test_a_file_that_changed_just_now_keeps_nothing(rows: Any) -> None:
    file, data, _ = rows
    assert same(file["x"][3], data[3])
    assert not len(file._file._mover.kept.chunks)


@pytest.mark.usefixtures("settled")
def test_a_chunk_of_a_file_that_changed_is_decoded_anew(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "x", shape=(40, 16), dtype="i4", chunks=(20, 16))
    array[...] = 1
    with penstock.open(tmp_path / "x", device="host", format="zarr") as file:
        assert np.asarray(file[""][3]).tolist() == [1] * 16
        assert len(file._file._mover.kept.chunks) == 1
        time.sleep(0.05)  # a tick of the clock that files are stamped by
        array[...] = 2
        assert np.asarray(file[""][3]).tolist() == [2] * 16
        chunk = next(one for one in (tmp_path / "x" / "c").rglob("0") if one.is_file())
        before = chunk.stat()
        time.sleep(0.05)
        array[...] = 3
        os.utime(chunk, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert np.asarray(file[""][3]).tolist() == [3] * 16


def test_a_build_without_the_library_lets_the_format_decode_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise penstock.Error(code="unsupported", operation="decode chunks", cause="this build of Penstock has no libx")

    data = np.arange(4000.0)
    with h5py.File(tmp_path / "x.h5", "w") as stock:
        stock.create_dataset("x", data=data, chunks=(1000,), **FILTERS["shuffle+gzip"])
    monkeypatch.setattr(_core, "make_pipeline", refuse)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        assert same(file["x"][...], data)
        assert decoders(file) == {"host by HDF5"}
        assert file.evidence()["notes"] == ["x: decoded by the format's library: this build of Penstock has no libx"]
