"""Compressed datasets of HDF5 and netCDF-4: h5py, netCDF4 and h5dump read back bit for bit what was written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import _core

h5py = pytest.importorskip("h5py")
hdf5plugin = pytest.importorskip("hdf5plugin")

NAMES = ("gzip", "zstd", "lz4")
SHAPES = ((1,), (7,), (1000,), (513, 517), (40, 30, 20), (300_001,))


def values(shape: tuple[int, ...], dtype: str = "<f4", seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 100, shape)
    return (np.arange(noise.size).reshape(shape) // 7 + noise).astype(dtype)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    wanted = {"gzip": "deflate", "lz4": "hdf5-lz4"}.get(request.param, request.param)
    if wanted not in _core.encoded_filters():
        pytest.skip(f"this build has no encoder for {wanted}")
    return str(request.param)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shuffle", [None, False, True])
def test_h5py_reads_what_was_saved(name: str, shape: tuple[int, ...], shuffle: bool | None, tmp_path: Path) -> None:
    array = values(shape)
    ps.save(tmp_path / "x.h5", {"a": array}, device="host", compression=name, shuffle=shuffle)
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["a"][...], array)
        assert file["a"].shuffle == (shuffle is not False)
        if name == "gzip":
            assert (file["a"].compression, file["a"].compression_opts) == ("gzip", 4)
    assert np.array_equal(np.asarray(ps.load(tmp_path / "x.h5", device="host")["a"]), array)


@pytest.mark.parametrize("dtype", ["i1", "<u2", ">i4", ">f8", "<f8", "<c16", "?"])
@pytest.mark.parametrize("chunk", [(64, 64), (100, 7), (1, 130), (130, 1)])
def test_edge_chunks_of_any_type_and_byte_order(dtype: str, chunk: tuple[int, int], tmp_path: Path) -> None:
    array = values((130, 130)).astype(dtype)
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = file.create_dataset("a", array.shape, array.dtype, chunk_shape=chunk, compression="gzip")
        one[...] = array
        assert np.array_equal(np.asarray(file["a"][...]), array), "before it is closed"
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["a"][...], array)
        assert file["a"].chunks == chunk
        assert file["a"].dtype == array.dtype


@pytest.mark.parametrize("view", ["transposed", "reversed", "strided"])
def test_elements_are_gathered_from_views(view: str, tmp_path: Path) -> None:
    base = values((300, 200))
    array = {"transposed": base.T, "reversed": base[::-1, ::-1], "strided": base[::2, ::3]}[view]
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = file.create_dataset("a", array.shape, "f4", chunk_shape=(64, 50), compression="gzip")
        one[...] = array
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["a"][...], array)


def test_a_penstock_array_of_the_device(tmp_path: Path) -> None:
    array = values((1000, 333))
    ps.save(tmp_path / "plain.h5", {"a": array}, device="host")
    ps.save(tmp_path / "x.h5", ps.load(tmp_path / "plain.h5", device="host"), compression="gzip", chunk_shape=(64, 64))
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["a"][...], array)


def test_what_cannot_be_shortened_is_stored_all_the_same(name: str, tmp_path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 256, 3_000_000, np.uint8)
    ps.save(tmp_path / "x.h5", {"a": array}, device="host", compression=name)
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["a"][...], array)


def test_a_file_that_can_be_shortened_is_shorter(name: str, tmp_path: Path) -> None:
    ps.save(tmp_path / "x.h5", {"a": np.zeros(4_000_000, "f4")}, device="host", compression=name)
    assert (tmp_path / "x.h5").stat().st_size < 400_000


def test_levels(tmp_path: Path) -> None:
    array = values((1_000_000,))
    for level in (1, 9):
        ps.save(tmp_path / f"{level}.h5", {"a": array}, device="host", compression="gzip", compression_level=level)
        with h5py.File(tmp_path / f"{level}.h5") as file:
            assert file["a"].compression_opts == level
    assert (tmp_path / "9.h5").stat().st_size < (tmp_path / "1.h5").stat().st_size


def test_evidence_says_who_encoded(tmp_path: Path) -> None:
    array = values((1_000_000,))
    outcome = ps.save(tmp_path / "x.h5", {"a": array}, device="host", compression="gzip")
    formats = outcome.evidence["formats"]
    assert formats["host_encoded_bytes"] == array.nbytes
    assert formats["encoders"] == {"host by libdeflate": array.nbytes}
    assert 0 < outcome.bytes < array.nbytes


def test_scalars_and_empty_arrays_are_stored_as_they_are(tmp_path: Path) -> None:
    given = {"one": np.float64(3), "none": np.zeros((0, 4), "f4"), "many": values((1000,))}
    ps.save(tmp_path / "x.h5", given, device="host", compression="gzip")
    with h5py.File(tmp_path / "x.h5") as file:
        assert (file["one"].compression, file["none"].compression, file["many"].compression) == (None, None, "gzip")
        assert file["one"][()] == 3
        assert file["none"].shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"compression": "snappy"}, "none of gzip, zstd, lz4"),
        ({"compression": "gzip", "compression_level": 10}, "gzip has levels 1 to 9"),
        ({"compression": "lz4", "compression_level": 1}, "lz4 has no levels"),
        ({"compression_level": 1}, "is for datasets with compression="),
        ({"shuffle": True}, "is for datasets with compression="),
    ],
)
def test_what_is_not_known_is_refused_before_anything_is_made(options: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        ps.save(tmp_path / "x.h5", {"a": values((9,))}, device="host", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.h5", "x.nc", "x.zarr"])
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"chunks": (3, 3)}, TypeError, r"^save\(\) has no option 'chunks'; .*; did you mean chunk_shape=\?$"),
        ({"compression_opts": 3}, TypeError, r"did you mean compression_level=\?$"),
        ({"compresion": "gzip"}, TypeError, r"did you mean compression=\?$"),
        ({"fletcher32": True}, TypeError, r"no option 'fletcher32'; there are .*, timeout_s$"),
        ({"chunk_shape": 3}, TypeError, "^dataset 'a': chunk_shape=3; it must be a sequence of whole numbers$"),
        ({"chunk_shape": (3.0, 3)}, TypeError, "chunk_shape=.* sequence of whole numbers$"),
        ({"chunk_shape": ("3", 3)}, TypeError, "chunk_shape=.* sequence of whole numbers$"),
        ({"chunk_shape": (3, None)}, ValueError, "each must be 1 or more$"),
        ({"chunk_shape": (0, 3)}, ValueError, "each must be 1 or more$"),
        ({"chunk_shape": (3, -1)}, ValueError, "each must be 1 or more$"),
        ({"chunk_shape": (3,)}, ValueError, "does not have the rank"),
        ({"compression": "gzip", "compression_level": True}, ValueError, "levels 1 to 9"),
        ({"compression": "gzip", "compression_level": 2.5}, ValueError, "levels 1 to 9"),
        ({"compression": "gzip", "shuffle": "bit"}, TypeError, "shuffle='bit'; it must be True or False$"),
    ],
)
def test_a_wrong_option_of_save_is_told_with_the_right_one(
    name: str, options: Any, kind: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=words):
        ps.save(tmp_path / name, {"a": values((9, 9))}, device="host", **options)
    assert list(tmp_path.iterdir()) == []


def test_words_of_h5py_are_told_with_ours(tmp_path: Path) -> None:
    with ps.create(tmp_path / "x.h5", device="host") as file:
        for given, ours in (("chunks", "chunk_shape"), ("maxshape", "resizable"), ("shards", "shard_shape")):
            with pytest.raises(TypeError, match=rf"there is no {given}=; .*; did you mean {ours}=\?$"):
                file.create_dataset("a", (9,), "f4", **{given: (3,)})
        with pytest.raises(TypeError, match="resizable=True; it must be a sequence of whole numbers, or None$"):
            file.create_dataset("a", (9,), "f4", resizable=True)  # type: ignore[arg-type]
        assert list(file) == []


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("name", ["x.h5", "x.nc"])
def test_a_chunk_of_4_gib_is_refused_with_advice(name: str, compression: Any, tmp_path: Path) -> None:
    options: Any = {"resizable": (None, 8), "compression": compression}
    words = "dataset 'a' of .* has 4294967296 bytes, .* none of 4 GiB or more; give a smaller chunk_shape"
    with ps.create(tmp_path / name, device="host") as file:
        with pytest.raises(ps.Error, match=words):
            file.create_dataset("a", (0, 8), "f4", chunk_shape=(1 << 27, 8), **options)
        file.create_dataset("b", (0, 8), "f4", chunk_shape=((1 << 27) - 1, 8), **options)
        file.create_dataset("c", (5, 8), "f4", chunk_shape=(1 << 60, 1 << 60), compression=compression)
    with h5py.File(tmp_path / name) as stock:
        assert {one: stock[one].chunks for one in "bc"} == {"b": ((1 << 27) - 1, 8), "c": (5, 8)}


def test_formats_without_compression_say_so(tmp_path: Path) -> None:
    for file in ("x.npy", "x.nc3", "x.safetensors"):
        data: Any = values((9,)) if file == "x.npy" else {"a": values((9,))}
        with pytest.raises(TypeError, match="compression is for HDF5, netCDF-4 and Zarr"):
            ps.save(tmp_path / file, data, device="host", compression="gzip")
    with pytest.raises(TypeError, match="no known format"):
        ps.save(tmp_path / "x.bin", b"123", device="host", compression="gzip")
    with ps.create(tmp_path / "x.h5", device="host") as h5, pytest.raises(ValueError, match="without dimensions"):
        h5.create_dataset("one", (), "f4", compression="gzip")


def test_parts_of_chunks_and_whole_ones_are_written_in_any_order(tmp_path: Path) -> None:
    array = values((100, 100))
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = file.create_dataset("a", array.shape, "f4", chunk_shape=(30, 100), compression="gzip")
        one[:31] = array[1:32]
        for start in (60, 90, 0):  # one is left out
            one[start : min(100, start + 30)] = array[start : start + 30]
        one[95:97] = array[:2]
    array[95:97] = array[:2]
    array[30], array[31:60] = array[31], 0
    with h5py.File(tmp_path / "x.h5") as h5:
        assert np.array_equal(h5["a"][...], array)
        assert h5["a"].id.get_num_chunks() == 4


def test_whole_chunks_are_appended_compressed_and_others_as_they_are(tmp_path: Path) -> None:
    array = values((90, 50))
    with ps.create(tmp_path / "x.h5", device="host") as file:
        one = file.create_dataset(
            "a", (0, 50), "f4", chunk_shape=(20, 50), resizable=(None, None), compression="gzip", shuffle=False
        )
        for start, stop in ((0, 40), (40, 60), (60, 65), (65, 90)):
            one.append(array[start:stop])
            one = file["a"]
    with h5py.File(tmp_path / "x.h5") as h5:
        assert np.array_equal(h5["a"][...], array)
        masks = [h5["a"].id.get_chunk_info(row).filter_mask for row in range(h5["a"].id.get_num_chunks())]
    assert masks == [0, 0, 0, 1, 1]


def test_a_new_dataset_in_an_older_file(name: str, tmp_path: Path) -> None:
    old, array = values((70, 70)), values((1000, 1000), seed=2)
    ps.save(tmp_path / "x.h5", {"old": old}, device="host")
    with ps.open(tmp_path / "x.h5", write=True, device="host") as file:
        one = file.create_dataset("new", array.shape, "f4", chunk_shape=(100, 1000), compression=name)
        one[...] = array
    with h5py.File(tmp_path / "x.h5") as h5:
        assert np.array_equal(h5["new"][...], array)
        assert np.array_equal(h5["old"][...], old)


def test_a_cancelled_write_leaves_no_file(tmp_path: Path) -> None:
    array = np.random.default_rng(3).normal(size=8_000_000)
    with pytest.raises(ps.Error) as caught, ps.create(tmp_path / "x.h5", device="host") as file:
        pending = file.write_many({"a": array}, layout={"compression": "gzip", "compression_level": 9})
        pending.cancel()
        pending.result()
    assert caught.value.code == "cancelled"
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_takes_too_long_says_so(tmp_path: Path) -> None:
    array = np.random.default_rng(3).normal(size=8_000_000)
    with pytest.raises(ps.Error) as caught:
        ps.save(tmp_path / "x.h5", {"a": array}, device="host", compression="gzip", timeout_s=0.05)
    assert caught.value.code == "timed_out"
    assert list(tmp_path.iterdir()) == []


def test_h5dump_shows_the_elements(tmp_path: Path) -> None:
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump is not installed")
    array = np.arange(2000, dtype="<i4")
    ps.save(tmp_path / "x.h5", {"a": array}, device="host", compression="gzip", chunk_shape=(300,))
    command = ["h5dump", "-d", "/a", "-y", "-w", "0", "-b", "LE", "-o", str(tmp_path / "bytes"), str(tmp_path / "x.h5")]
    subprocess.run(command, check=True, capture_output=True)
    assert np.array_equal(np.fromfile(tmp_path / "bytes", "<i4"), array)


def test_netcdf4_reads_compressed_variables(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    array = values((130, 70), "<i4")
    with ps.create(tmp_path / "x.nc", device="host") as file:
        one = file.create_dataset(
            "a", array.shape, "i4", chunk_shape=(64, 64), dimensions=("y", "x"), compression="gzip", compression_level=6
        )
        one[...] = array
        file.create_dataset("left", (130, 70), "f4", dimensions=("y", "x"), compression="gzip")
    with netcdf.Dataset(tmp_path / "x.nc") as nc:
        assert np.array_equal(nc["a"][...], array)
        assert nc["a"].filters()["zlib"] is True
        assert (nc["a"].filters()["shuffle"], nc["a"].filters()["complevel"]) == (True, 6)
        assert nc["left"][...].mask.all()
    if shutil.which("ncdump") is not None:
        said = subprocess.run(["ncdump", "-v", "a", str(tmp_path / "x.nc")], check=True, capture_output=True, text=True)
        numbers = said.stdout.split("a =")[1].rstrip(" ;}\n").replace("\n", "").split(",")
        assert [int(one) for one in numbers] == array.reshape(-1).tolist()
