"""Every type and codec of Zarr that is read: values are those of zarr-python, in both versions, by any selection."""

from __future__ import annotations

import json
import struct
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock._arrays.selection import Box
from penstock.formats.zarr.decode import _fletcher32, decode_objects

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
from zarr.codecs import BytesCodec, numcodecs as codecs3  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # zarr-python warns of types and codecs that the format has not yet

INDICES = (..., 0, (slice(None), -1), (slice(None, None, -2), slice(1, 4)), slice(3, 3))
WORDS = np.array([["", "a", "ä" * 5, "Z\0z", "end"]] * 7, object)
NUMBERS = (np.arange(35) * 37 % 11).reshape(7, 5)
# name: (values, dtype as zarr-python takes it)
TYPES: dict[str, tuple[np.ndarray, Any]] = {
    "text": (WORDS, str),
    "U": (WORDS.astype("<U5"), "<U5"),
    "big U": (WORDS.astype("<U5"), ">U5"),
    "S": (NUMBERS.astype("S3"), "S3"),
    "datetime": (NUMBERS.astype("M8[ns]"), "<M8[ns]"),
    "big datetime": (NUMBERS.astype("M8[D]"), ">M8[D]"),
    "scaled timedelta": (NUMBERS.astype("m8[25us]"), "<m8[25us]"),
    "compound": (np.zeros((7, 5), [("a", "<f4"), ("b", "S3"), ("c", "<i8")]), None),
}


def stores(folder: Path, version: int) -> Any:
    return zarr.open_group(folder / f"v{version}.zarr", mode="w", zarr_format=version)


def same(folder: Path, version: int, name: str) -> None:
    expected = np.asarray(zarr.open_group(folder / f"v{version}.zarr", mode="r")[name][...])
    with ps.open(folder / f"v{version}.zarr", device="host") as file:
        for index in INDICES:
            found = np.asarray(file[name][index])
            wanted = expected[(*index, ...)] if isinstance(index, tuple) else expected[index]
            assert found.shape == np.shape(wanted)
            if found.dtype.hasobject:
                assert found.tolist() == np.asarray(wanted, object).tolist()
            else:
                wanted = np.asarray(wanted, expected.dtype)
                assert found.dtype == wanted.dtype.newbyteorder("=")
                assert found.tobytes() == wanted.astype(found.dtype).tobytes()


@pytest.mark.parametrize("chunks", [(7, 5), (3, 2)])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", TYPES)
def test_types_have_the_values_of_zarr(tmp_path: Path, kind: str, version: int, packed: bool, chunks: Any) -> None:
    values, dtype = TYPES[kind]
    options: dict[str, Any] = {} if packed else {"compressors": None}
    made = stores(tmp_path, version).create_array(
        "x", shape=(7, 5), chunks=chunks, dtype=dtype or values.dtype, **options
    )
    made[:5] = values[:5]  # the last chunks are fill values
    same(tmp_path, version, "x")


MEMBERS = [("a", "<f4"), ("b", "S3"), ("c", "<i8"), ("when", "<M8[s]"), ("in", [("x", "<i2")])]


@pytest.mark.parametrize(
    ("fill", "wanted"),
    [
        ({"a": 1.5, "b": "bm8=", "c": -3, "when": 7, "in": {"x": 9}}, (1.5, b"no", -3, 7, (9,))),
        ({"a": "NaN", "in": {}}, (np.nan, b"", 0, np.datetime64("NaT"), (0,))),
        ({}, (0, b"", 0, np.datetime64("NaT"), (0,))),
        ({"d": 1}, None),
        ({"a": "x"}, None),
        ([1], None),
    ],
)
def test_a_fill_value_may_name_the_members(tmp_path: Path, fill: Any, wanted: Any) -> None:
    """As the specification of `struct` has it, and zarr-python from 3.2 on."""
    inner = {"name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "int16"}]}}
    bytes3 = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}
    seconds = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
    kinds = dict(zip([name for name, _ in MEMBERS], ["float32", bytes3, "int64", seconds, inner], strict=True))
    fields = [{"name": name, "data_type": kind} for name, kind in kinds.items()]
    document = {
        **{"zarr_format": 3, "node_type": "array", "shape": [2], "fill_value": fill, "attributes": {}},
        "data_type": {"name": "struct", "configuration": {"fields": fields}},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    (tmp_path / "x.zarr" / "x").mkdir(parents=True)
    (tmp_path / "x.zarr" / "x" / "zarr.json").write_text(json.dumps(document))
    root = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    (tmp_path / "x.zarr" / "zarr.json").write_text(json.dumps(root))
    with ps.open(tmp_path / "x.zarr", device="host") as file:
        if wanted is None:
            with pytest.raises(ps.Error, match="the fill value"):
                file["x"].read()
        else:
            dtype = np.dtype(MEMBERS)
            assert file["x"].read().to_numpy().tobytes() == np.array([wanted] * 2, dtype).tobytes()


FILLS = {
    "text": "ü",
    "U": "ü",
    "big U": "ü",
    "S": b"no",
    "datetime": np.datetime64("2000-01-01"),
    "big datetime": "NaT",
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", FILLS)
def test_fill_values(tmp_path: Path, kind: str, version: int) -> None:
    values, dtype = TYPES[kind]
    fill = FILLS[kind] if FILLS[kind] != "NaT" else np.datetime64("NaT", "D")
    made = stores(tmp_path, version).create_array("x", shape=(7, 5), chunks=(2, 2), dtype=dtype, fill_value=fill)
    made[2:4] = values[2:4]
    same(tmp_path, version, "x")


@pytest.mark.parametrize("kind", ["text", "U", "S", "datetime"])
def test_shards(tmp_path: Path, kind: str) -> None:
    values, dtype = TYPES[kind]
    made = stores(tmp_path, 3).create_array("x", shape=(7, 5), chunks=(2, 2), shards=(4, 6), dtype=dtype)
    made[:3] = values[:3]
    same(tmp_path, 3, "x")


@pytest.mark.parametrize("order", ["C", "F"])
def test_text_and_deltas_in_either_order(tmp_path: Path, order: Any) -> None:
    group = stores(tmp_path, 2)
    group.create_array("x", shape=(7, 5), chunks=(3, 2), dtype=str, order=order)[...] = WORDS
    filters = [numcodecs.Delta("<i4", astype="<i2")]
    group.create_array("d", shape=(7, 5), chunks=(3, 2), dtype="<i4", order=order, filters=filters)[...] = NUMBERS
    same(tmp_path, 2, "x")
    same(tmp_path, 2, "d")


V2: dict[str, dict[str, Any]] = {
    "bz2": {"compressors": numcodecs.BZ2()},
    "lzma": {"compressors": numcodecs.LZMA()},
    "fletcher32": {"filters": [numcodecs.Fletcher32()]},
    "adler32": {"filters": [numcodecs.Adler32()], "compressors": None},
    "crc32": {"filters": [numcodecs.CRC32()]},
    "crc32 behind": {"filters": [numcodecs.CRC32(location="end")]},
    "shuffle": {"filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.BZ2()},
    "delta": {"filters": [numcodecs.Delta("<i4")]},
    "wide delta": {"filters": [numcodecs.Delta("<i4", astype="<i8")], "compressors": numcodecs.Zlib()},
    "all": {"filters": [numcodecs.Delta("<i4"), numcodecs.Shuffle(4), numcodecs.Fletcher32(), numcodecs.Adler32()]},
}
V3: dict[str, dict[str, Any]] = {
    "bz2": {"compressors": [codecs3.BZ2()]},
    "lzma": {"compressors": [codecs3.LZMA()]},
    "fletcher32": {"compressors": [codecs3.Fletcher32()]},
    "adler32": {"compressors": [codecs3.Zlib(), codecs3.Adler32()]},
    "crc32": {"compressors": [codecs3.CRC32()]},
    "shuffle": {"compressors": [codecs3.Shuffle(elementsize=4), codecs3.BZ2()]},
    "delta": {"filters": [codecs3.Delta(dtype="<i4")]},
    "narrow delta": {"filters": [codecs3.Delta(dtype="<i4", astype="<i2")], "compressors": None},
}
BIG_DELTA: dict[str, Any] = {"filters": [codecs3.Delta(dtype="<i4")], "serializer": BytesCodec(endian="big")}
CHAINS = [(2, name) for name in V2] + [(3, name) for name in V3]


@pytest.mark.parametrize(("version", "chain"), CHAINS)
def test_codecs_have_the_values_of_zarr(tmp_path: Path, version: int, chain: str) -> None:
    options = (V2 if version == 2 else V3)[chain]
    made = stores(tmp_path, version).create_array("x", shape=(7, 5), chunks=(3, 2), dtype="<i4", **options)
    made[...] = NUMBERS
    same(tmp_path, version, "x")


def test_differences_in_big_endian_order(tmp_path: Path) -> None:
    """The values that were written; zarr-python 3.1 does not read its own."""
    made = stores(tmp_path, 3).create_array("x", shape=(7, 5), chunks=(3, 2), dtype="<i4", **BIG_DELTA)
    made[...] = NUMBERS
    assert np.array_equal(np.asarray(ps.load(tmp_path / "v3.zarr", "host")["x"]), NUMBERS)


@pytest.mark.parametrize(("version", "chain"), CHAINS)
def test_damaged_chunks_are_errors_that_name_them(tmp_path: Path, version: int, chain: str) -> None:
    """A changed byte is an error where there is a checksum, and other values at most elsewhere; a cut one always is."""
    options = (V2 if version == 2 else V3)[chain]
    made = stores(tmp_path, version).create_array("x", shape=(7, 5), chunks=(7, 5), dtype="<i4", **options)
    made[...] = NUMBERS
    (chunk,) = (tmp_path / f"v{version}.zarr/x").rglob("0.0" if version == 2 else "c/0/0")
    good = chunk.read_bytes()
    for place in range(0, len(good), 7):
        chunk.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        with ps.open(tmp_path / f"v{version}.zarr", device="host") as file:
            try:
                wrong = np.asarray(file["x"][...])
            except ps.Error as error:
                assert error.code == "damaged" and str(error).count("\n") == 0
            else:
                assert wrong.shape == (7, 5)
                is_summed = any(word in chain for word in ("fletcher32", "adler32", "crc32"))
                assert not is_summed or (wrong == NUMBERS).all(), "its sum does not fit"
    for cut in (0, 1, 3, len(good) // 2, len(good) - 1):
        chunk.write_bytes(good[:cut])
        with ps.open(tmp_path / f"v{version}.zarr", device="host") as file, pytest.raises(ps.Error) as told:
            file["x"][...]
        assert told.value.code == "damaged" and "x" in str(told.value)


def test_variable_length_bytes(tmp_path: Path) -> None:
    values = np.array([b"", b"a", b"\xff\0"], object)
    old = stores(tmp_path, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stores(tmp_path, 3).create_array("x", shape=(3,), chunks=(2,), dtype="variable_length_bytes")[...] = values
    same_text = {"id": "vlen-bytes"}
    old.create_array("x", shape=(3,), chunks=(3,), dtype="i1", compressors=None)
    document = json.loads((tmp_path / "v2.zarr/x/.zarray").read_text())
    document |= {"dtype": "|O", "filters": [same_text], "fill_value": None}
    (tmp_path / "v2.zarr/x/.zarray").write_text(json.dumps(document))
    (tmp_path / "v2.zarr/x/0").write_bytes(bytes(numcodecs.VLenBytes().encode(values)))
    for version in (2, 3):
        with ps.open(tmp_path / f"v{version}.zarr", device="host") as file:
            assert file["x"].dtype.name == "bytes" and file["x"][...].tolist() == values.tolist()


def packed(*parts: bytes, count: int | None = None) -> bytes:
    whole = b"".join(struct.pack("<I", len(one)) + one for one in parts)
    return struct.pack("<I", len(parts) if count is None else count) + whole


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"\0", packed(b"a"), packed(b"a", b"b", count=3), packed(b"a", b"b", b"c")),
        packed(b"a", b"b")[:-1],
        struct.pack("<III", 2, 0, 0xFFFFFFFF),
        struct.pack("<I", 0xFFFFFFFF),
    ],
)
def test_hostile_text_is_damage(raw: bytes) -> None:
    with pytest.raises(ValueError, match="do not hold|ends behind"):
        decode_objects(memoryview(raw), 2, True)
    assert decode_objects(memoryview(packed(b"\xff", b"")), 2, True).tolist() == ["\udcff", ""]


def test_fletcher32_is_that_of_hdf5() -> None:
    rng = np.random.default_rng(1)
    pieces = [b"", b"\0", b"\0" * 100, b"\xff" * 101, b"\xff\xff" * 65535, rng.bytes(70_001), rng.bytes(4096)]
    for one in pieces:
        if one:
            stored = bytes(numcodecs.Fletcher32().encode(one))
            assert _fletcher32(memoryview(one)).to_bytes(4, "little") == stored[-4:]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"data_type": "string"}, "hold plain elements, its elements are text"),
        ({"data_type": "int8", "codecs": [{"name": "vlen-utf8"}]}, "hold utf8, its elements are int8"),
        (
            {"data_type": "bytes", "codecs": [{"name": "vlen-utf8"}], "fill_value": ""},
            "hold utf8, its elements are bytes",
        ),
        ({"data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 5}}}, "no whole characters"),
        ({"data_type": {"name": "numpy.datetime64", "configuration": {"unit": "parsec"}}}, "unit of times"),
        ({"data_type": {"name": "structured", "configuration": {"fields": [["a"]]}}}, "fields of its elements"),
        ({"codecs": [{"name": "bytes"}, {"name": "shuffle", "configuration": {"elementsize": 0}}]}, "elementsize"),
        (
            {"codecs": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i2"}}, {"name": "bytes"}]},
            "makes <i2 of chunks of int32",
        ),
    ],
)
def test_documents_that_contradict_themselves_are_damage(tmp_path: Path, members: dict[str, Any], words: str) -> None:
    stores(tmp_path, 3).create_array("x", shape=(4,), chunks=(2,), dtype="<i4", compressors=None)[...] = 1
    path = tmp_path / "v3.zarr/x/zarr.json"
    for one in members.get("codecs", ()):
        if one["name"] == "bytes":
            one["configuration"] = {"endian": "little"}
    path.write_text(json.dumps(json.loads(path.read_text()) | members))
    with ps.open(tmp_path / "v3.zarr", device="host") as file, pytest.raises(ps.Error, match=words):
        file["x"][...]


def test_objects_that_need_pickle_are_refused(tmp_path: Path) -> None:
    stores(tmp_path, 2).create_array("x", shape=(4,), chunks=(2,), dtype="<i4", compressors=None)
    path = tmp_path / "v2.zarr/x/.zarray"
    for filters, words in (([{"id": "pickle"}], "went through filter"), (None, "vlen-utf8 or vlen-bytes would say")):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"dtype": "|O", "filters": filters}))
        with ps.open(tmp_path / "v2.zarr", device="host") as file, pytest.raises(ps.Error, match=words):
            file["x"][...]


@pytest.mark.parametrize("codec", ["bz2", "lzma", "gzip"])
def test_a_chunk_that_grows_beyond_its_shape_is_stopped(tmp_path: Path, codec: str, monkeypatch: Any) -> None:
    import bz2
    import gzip
    import lzma

    from penstock.formats.zarr import decode

    monkeypatch.setattr(decode, "_MOST_OBJECT_BYTES", 1 << 20)
    bomb = {"bz2": bz2.compress, "lzma": lzma.compress, "gzip": gzip.compress}[codec](bytes(64 << 20))
    for dtype, filters in (("|O", [{"id": "vlen-utf8"}]), ("<i4", None)):
        stores(tmp_path, 2).create_array("x", shape=(4,), chunks=(4,), dtype="<i4", compressors=None)
        path = tmp_path / "v2.zarr/x/.zarray"
        changed = {"dtype": dtype, "filters": filters, "compressor": {"id": codec}, "fill_value": None}
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))
        (tmp_path / "v2.zarr/x/0").write_bytes(bomb)
        with ps.open(tmp_path / "v2.zarr", device="host") as file:
            tracemalloc.start()
            with pytest.raises(ps.Error, match="more than the [0-9]+ bytes of its shape") as told:
                file["x"].read(decode="host") if dtype == "|O" else file._file._source.decode("x", Box((0,), (4,)))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert told.value.code == "damaged" and peak < 16 << 20


JUNK = (None, True, -1, 2**70, 1.5, "", "x", [], [None], [[]], {}, {"id": []}, {"name": {}}, "<M8[xx]", "|S0", "<U-1")


def replaced(document: Any) -> Iterator[Any]:
    """The document with one value left out, or another one in its place."""
    places = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(places):
        for junk in JUNK:
            yield (
                {**document, key: junk} if isinstance(document, dict) else [*document[:key], junk, *document[key + 1 :]]
            )
        if isinstance(document, dict):
            yield {name: one for name, one in document.items() if name != key}
        if isinstance(value, dict | list):
            for inner in replaced(value):
                new = {key: inner} if isinstance(document, dict) else None
                yield {**document, **new} if new else [*document[:key], inner, *document[key + 1 :]]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["text", "U", "scaled timedelta", "compound", "delta"])
def test_any_value_of_a_document_may_be_wrong(name: str, version: int, tmp_path: Path) -> None:
    """It is read, or it is an Error; never an error of Python's that names nothing."""
    values, dtype = TYPES.get(name, (NUMBERS.astype("i4"), "<i4"))
    filters = {"filters": [numcodecs.Delta("i4")]} if name == "delta" and version == 2 else {}
    if name == "delta" and version == 3:
        filters = {"filters": [codecs3.Delta(dtype="i4")]}
    group = zarr.open_group(tmp_path / "x", mode="w", zarr_format=version)
    made = group.create_array("x", shape=(7, 5), chunks=(3, 5), dtype=dtype or values.dtype, **filters)
    made[...] = values
    place = tmp_path / "x" / "x" / ("zarr.json" if version == 3 else ".zarray")
    read = 0
    for document in replaced(json.loads(place.read_text())):
        place.write_text(json.dumps(document))
        try:
            with ps.open(tmp_path / "x", device="host") as file:
                file["x"].read()
            read += 1
        except (ps.Error, KeyError) as error:
            assert isinstance(error, ps.Error) or "has no dataset" in str(error), document
    assert read > 0
