"""Checksums and differences of numcodecs: the cores undo them, and the values are those of zarr-python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from places import examples

import penstock as ps

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")

pytestmark = pytest.mark.filterwarnings("ignore")  # zarr-python warns of codecs that the format has not yet

TYPES = ["|u1", "|i1", "<u2", ">i2", "<i4", ">u4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"]
SUMS = {
    "adler32": numcodecs.Adler32(),
    "adler32 behind": numcodecs.Adler32(location="end"),
    "crc32": numcodecs.CRC32(),
    "crc32 behind": numcodecs.CRC32(location="end"),
}


def values(dtype: str, shape: tuple[int, ...] = (41, 30)) -> np.ndarray:
    """All bit patterns of integers, so that sums wrap around; of floating point what rounds when it is added."""
    kind, random = np.dtype(dtype), np.random.default_rng(5)
    if kind.kind == "f":
        found = (random.standard_normal(shape) * 10.0 ** random.integers(-6, 6, shape)).astype(kind)
        found[0, :3] = -0.0, 0.0, -0.0
        return found
    info = np.iinfo(kind)
    return random.integers(info.min, info.max, shape, kind.newbyteorder("="), endpoint=True).astype(kind)


def stored(folder: Path, array: np.ndarray, filters: list[Any], **options: Any) -> np.ndarray:
    """Of version 2, as zarr-python writes it; and what zarr-python reads."""
    made = zarr.create_array(
        folder / "x", shape=array.shape, dtype=array.dtype, chunks=(8, 7), zarr_format=2, filters=filters, **options
    )
    made[...] = array
    return np.asarray(zarr.open_array(folder / "x", mode="r")[...])


def read(folder: Path, decoder: str) -> np.ndarray:
    with ps.open(folder / "x", device="host", format="zarr") as file:
        found = np.asarray(file[""][...])
        assert set(file.evidence()["formats"]["decoders"]) == {decoder}
        assert np.asarray(file[""][5:30:3, ::-2]).tobytes() == found[5:30:3, ::-2].tobytes()
    return found


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.tobytes() == wanted.astype(wanted.dtype.newbyteorder("=")).tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_differences_of_each_type_are_added_up_by_the_cores(tmp_path: Path, dtype: str, order: str) -> None:
    array = values(dtype)
    expected = stored(tmp_path, array, [numcodecs.Delta(dtype)], compressors=None, order=order)
    assert same(read(tmp_path, "host by Penstock"), expected)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("others", [[], [numcodecs.Delta(">i4"), numcodecs.Shuffle(4)]], ids=["alone", "behind others"])
def test_sums_are_verified_by_the_cores(tmp_path: Path, name: str, others: list[Any]) -> None:
    array = values(">i4")
    expected = stored(tmp_path, array, [*others, SUMS[name]], compressors=numcodecs.Zlib())
    assert same(read(tmp_path, "host by libdeflate"), expected)
    (tmp_path / "x/1.1").write_bytes(numcodecs.Zlib().encode(wrong(tmp_path / "x/1.1")))
    with ps.open(tmp_path / "x", device="host", format="zarr") as file:
        with pytest.raises(ps.Error, match=f"filter {name.split()[0]}: its checksum is 0x") as damaged:
            file[""][...]
        assert damaged.value.code == "damaged"
        assert np.asarray(file[""][:8]).tobytes() == expected[:8].astype("<i4").tobytes()


def wrong(chunk: Path) -> bytes:
    """The chunk before it was compressed, with one bit changed in the middle."""
    plain = bytearray(numcodecs.Zlib().decode(chunk.read_bytes()))
    plain[len(plain) // 2] ^= 1
    return bytes(plain)


@pytest.mark.parametrize("kept", [0, 3, 4, 100, -1])
@pytest.mark.parametrize("filter", [numcodecs.Adler32(), numcodecs.Delta("<i4")], ids=["adler32", "delta"])
def test_a_chunk_that_is_cut_short_is_an_error(tmp_path: Path, filter: Any, kept: int) -> None:
    stored(tmp_path, values("<i4"), [filter], compressors=None)
    chunk = tmp_path / "x/1.1"
    chunk.write_bytes(chunk.read_bytes()[:kept])
    with ps.open(tmp_path / "x", device="host", format="zarr") as file, pytest.raises(ps.Error) as told:
        file[""][...]
    assert told.value.code == "damaged"


@pytest.mark.parametrize(
    ("dtype", "astype"), [("<i4", "<i2"), ("<i4", "<i8"), ("<f8", "<f4"), ("<f2", "<f2"), (">i2", "<i2")]
)
def test_other_differences_are_added_up_in_python(tmp_path: Path, dtype: str, astype: str) -> None:
    """Where they are stored as numbers of another type, and of half precision."""
    array = (np.arange(41 * 30) % 90).reshape(41, 30).astype(dtype)
    expected = stored(tmp_path, array, [numcodecs.Delta(dtype, astype)], compressors=None)
    assert same(read(tmp_path, "host by zlib and numcodecs"), expected)


@settings(max_examples=examples(30), deadline=None)
@given(data=st.binary(min_size=1, max_size=4000), size=st.sampled_from([1, 2, 4, 8]))
def test_random_bytes_are_what_numcodecs_makes_of_them(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int
) -> None:
    folder, count = tmp_path_factory.mktemp("x"), len(data) // size
    dtype = f"<u{size}"
    filters = [numcodecs.Delta(dtype), numcodecs.Adler32(), numcodecs.CRC32()]
    plain = data[: count * size]
    document = {
        **{"zarr_format": 2, "shape": [count], "chunks": [max(1, count)], "dtype": dtype, "order": "C"},
        **{"fill_value": 0, "compressor": None, "filters": [one.get_config() for one in filters]},
    }
    (folder / ".zarray").write_text(json.dumps(document))
    wanted, encoded = filters[0].decode(plain) if count else np.empty(0, dtype), plain
    for one in filters[1:]:
        encoded = bytes(one.encode(encoded))
    (folder / "0").write_bytes(encoded)
    with ps.open(folder, device="host", format="zarr") as file:
        assert np.asarray(file[""][...]).tobytes() == np.asarray(wanted).tobytes()
