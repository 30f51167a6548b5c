"""Zarr stores: what zarr-python writes we read, in every layout; damaged and hostile stores are errors that say why."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_reading import read, whole

import penstock
from penstock.formats.crc32c import crc32c, crc32c_numpy
from penstock.formats.model import Box
from penstock.formats.zarr.reader import Zarr

zarr = pytest.importorskip("zarr")
codecs = pytest.importorskip("zarr.codecs")

KINDS = ("bool", "int8", "uint16", ">i4", "int64", "float16", ">f8", "complex64", ">c16")


def numbers(shape: tuple[int, ...], kind: Any = "float32") -> np.ndarray:
    return np.random.default_rng(1).integers(0, 100, shape).astype(kind)


def store(path: Path, data: np.ndarray, **options: Any) -> Zarr:
    """The data as array "a" of a group."""
    group = zarr.open_group(path, mode="a")
    options = {"chunks": data.shape, "compressors": None} | options
    array = group.create_array("a", shape=data.shape, dtype=data.dtype, **options)
    array[...] = data
    return Zarr(path)


@pytest.mark.parametrize("kind", KINDS)
def test_types_and_byte_orders(kind: str, tmp_path: Path) -> None:
    data = numbers((7, 5), kind)
    container = store(tmp_path / "x.zarr", data, chunks=(3, 2))
    assert np.array_equal(read(container, "a"), data)
    info = container.info("a")
    assert (info.shape, info.chunk_shape, info.layout) == ((7, 5), (3, 2), "chunked")
    assert not container.table("a", whole((7, 5))).encoded.any(), "uncompressed chunks go raw"


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("inner", [None, "gzip", "zstd", "blosc", "crc32c"])
def test_shards(location: str, inner: str | None, tmp_path: Path) -> None:
    data = numbers((10, 13))
    sharding = codecs.ShardingCodec(
        chunk_shape=(2, 3), codecs=[codecs.BytesCodec(), *packer(inner)], index_location=location
    )
    container = store(tmp_path / "x.zarr", data, chunks=(4, 6), serializer=sharding)
    assert np.array_equal(read(container, "a"), data)
    assert np.array_equal(read(container, "a", Box((3, 4), (9, 11))), data[3:9, 4:11])
    info = container.info("a")
    assert (info.chunk_shape, info.layout) == ((2, 3), "sharded")
    assert container.table("a", whole(data.shape)).encoded.any() == (inner is not None)


def packer(name: str | None) -> list[Any]:
    return {
        None: [],
        "gzip": [codecs.GzipCodec()],
        "zstd": [codecs.ZstdCodec()],
        "blosc": [codecs.BloscCodec(typesize=4)],
        "crc32c": [codecs.Crc32cCodec()],
    }[name]


@pytest.mark.parametrize("name", ["gzip", "zstd", "blosc", "crc32c"])
def test_packed_chunks_are_decoded_on_the_host(name: str, tmp_path: Path) -> None:
    data = numbers((9, 8), ">i4")
    container = store(tmp_path / "x.zarr", data, chunks=(4, 4), compressors=packer(name))
    assert container.table("a", whole(data.shape)).encoded.all()
    assert np.array_equal(read(container, "a"), data)
    assert np.array_equal(read(container, "a", Box((1, 2), (8, 7))), data[1:8, 2:7])
    assert container.info("a").filters == (name,)


@pytest.mark.parametrize("order", [(1, 0), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
@pytest.mark.parametrize("packed", [False, True])
def test_orders_of_dimensions(order: tuple[int, ...], packed: bool, tmp_path: Path) -> None:
    shape, chunks = (5, 6, 7)[: len(order)], (2, 3, 4)[: len(order)]
    data = numbers(shape)
    options = {"filters": [codecs.TransposeCodec(order=order)], "compressors": packer("gzip" if packed else None)}
    container = store(tmp_path / "x.zarr", data, chunks=chunks, **options)
    assert np.array_equal(read(container, "a"), data)
    backwards = order == tuple(range(len(order)))[::-1]
    assert (container.info("a").order == "F") == backwards
    assert container.table("a", whole(container.info("a").shape)).encoded.all() == (packed or not backwards)


@pytest.mark.parametrize("where", ["inside", "outside", "both"])
@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2)])
def test_orders_of_dimensions_of_shards(where: str, order: tuple[int, ...], tmp_path: Path) -> None:
    data = numbers((9, 10, 11))
    turn = [codecs.TransposeCodec(order=order)]
    shard, inner = np.array((6, 6, 6)), np.array((2, 3, 1))  # zarr-python divides the shard before it turns it
    outside, inside = where != "inside", where != "outside"
    chunk = tuple(int(n) for n in (inner[list(order)] if outside else inner))
    sharding = codecs.ShardingCodec(chunk_shape=chunk, codecs=[*(turn if inside else []), codecs.BytesCodec()])
    options = {"filters": turn if outside else None, "serializer": sharding}
    container = store(tmp_path / "x.zarr", data, chunks=tuple(map(int, shard)), **options)
    assert np.array_equal(read(container, "a"), data)
    raw = order == (2, 1, 0) and where != "both"
    assert (container.info("a").order == "F") == raw
    box = Box((1, 2, 1), (8, 9, 10)) if not raw else Box((1, 2, 1), (10, 9, 8))
    assert np.array_equal(read(container, "a", box), data[1:8, 2:9, 1:10])


def test_a_shard_that_is_packed_or_holds_shards_is_decoded_whole(tmp_path: Path) -> None:
    data = numbers((8, 8))
    inner = codecs.ShardingCodec(chunk_shape=(2, 2), codecs=[codecs.BytesCodec()])
    nested = codecs.ShardingCodec(chunk_shape=(4, 4), codecs=[inner])
    assert np.array_equal(read(store(tmp_path / "nested", data, serializer=nested), "a"), data)
    sharding = codecs.ShardingCodec(chunk_shape=(2, 2), codecs=[codecs.BytesCodec()])
    packed = store(tmp_path / "packed", data, serializer=sharding, compressors=packer("gzip"))
    assert np.array_equal(read(packed, "a"), data)


@pytest.mark.parametrize("options", [{}, {"shards": (4, 4)}, {"compressors": "auto"}])
def test_what_is_not_stored_is_the_fill_value(options: dict[str, Any], tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="a")
    array = group.create_array(
        "a", shape=(9, 9), chunks=(2, 2), dtype=">f4", fill_value=7.5, **({"compressors": None} | options)
    )
    array[2:4, 3:5] = 1
    container = Zarr(tmp_path / "x.zarr")
    assert np.array_equal(read(container, "a"), array[...])
    assert (read(container, "a", Box((6, 6), (9, 9))) == 7.5).all()


@pytest.mark.parametrize(
    ("kind", "fill"),
    [
        ("float32", "NaN"),
        ("float64", -np.inf),
        ("int16", -3),
        ("bool", True),
        ("complex64", 1 + 2j),
        ("uint64", 2**64 - 1),
    ],
)
def test_fill_values(kind: str, fill: Any, tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="a")
    array = group.create_array("a", shape=(3,), chunks=(2,), dtype=kind, fill_value=fill)
    assert read(Zarr(tmp_path / "x.zarr"), "a").tobytes() == array[...].tobytes()


@pytest.mark.parametrize("encoding", ["default", "v2"])
@pytest.mark.parametrize("separator", ["/", "."])
@pytest.mark.parametrize("shape", [(), (5,), (5, 4)])
def test_chunk_keys(encoding: str, separator: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    data = numbers(shape)
    keys = {"name": encoding, "separator": separator}
    container = store(tmp_path / "x.zarr", data, chunks=(2,) * len(shape) or (), chunk_key_encoding=keys)
    assert np.array_equal(read(container, "a"), data)


def test_many_chunks_are_found_by_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = numbers((30, 30))
    for separator in "/.":
        keys = {"name": "default", "separator": separator}
        container = store(tmp_path / separator.replace("/", "s"), data, chunks=(2, 3), chunk_key_encoding=keys)
        asked = container.table("a", Box((3, 3), (25, 30)))
        with monkeypatch.context() as patch:
            patch.setattr("penstock.formats.zarr.chunks._ASKED", 0)
            listed = container.table("a", Box((3, 3), (25, 30)))
        assert listed.files == asked.files
        assert np.array_equal(listed.origin, asked.origin)


def test_a_sparse_array_of_any_shape_costs_what_it_stores(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="a")
    array = group.create_array("a", shape=(2**40, 2**20), chunks=(1, 1), dtype="u1", compressors=None)
    array[2**39, 77] = 3
    table = Zarr(tmp_path / "x.zarr").table("a", whole((2**40, 2**20)))
    assert table.origin.tolist() == [[2**39, 77]]


def test_groups_names_dimensions_and_attributes(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "x.zarr", mode="w", attributes={"title": "all"})
    inner = root.create_group("deep/er", attributes={"level": 2})
    data = numbers((3, 2))
    inner.create_array("t", data=data, dimension_names=("y", "x"), attributes={"units": "K"})
    root.create_array("b", data=data)
    zarr.consolidate_metadata(tmp_path / "x.zarr")
    container = Zarr(tmp_path / "x.zarr")
    assert container.names() == ("b", "deep/er/t")
    assert container.info("/deep/er/t").dimensions == ("y", "x")
    assert container.info("deep/er/t").attributes == {"units": "K"}
    assert container.info("b").dimensions is None
    assert container.attributes() == {"title": "all"}
    assert container.attributes("deep/er") == {"level": 2}
    with pytest.raises(KeyError, match="close names: deep/er/t"):
        container.info("deep/er/x")


def test_a_store_that_is_one_array(tmp_path: Path) -> None:
    data = numbers((4, 4))
    zarr.save_array(tmp_path / "x.zarr", data)
    container = Zarr(tmp_path / "x.zarr")
    assert container.names() == ("",)
    assert np.array_equal(read(container, ""), data)


def test_dimensions_of_version_2_have_names(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    data = numbers((7, 5), ">f4")
    array = group.create_array("a", shape=(9, 5), chunks=(3, 2), dtype=">f4", fill_value=2.5)
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    array[:7] = data
    container = Zarr(tmp_path / "x.zarr")
    assert np.array_equal(read(container, "a"), array[...])
    assert container.info("a").dimensions == ("y", "x")
    assert "_ARRAY_DIMENSIONS" not in container.info("a").attributes


def test_version_2_compound_types(tmp_path: Path) -> None:
    data = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "<i4"), ("b", "<f8")])
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    group.create_array("a", data=data, compressors=None)
    assert np.array_equal(read(Zarr(tmp_path / "x.zarr"), "a"), data)


@pytest.mark.parametrize("kind", ["utf8", "numpy.float80", "pickle"])
def test_types_that_are_not_known_are_refused_by_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    store(path, numbers((4,)))
    change(path, data_type=kind)
    info = Zarr(path).info("a")
    assert kind in info.refusal
    with pytest.raises(penstock.Error, match=kind):
        Zarr(path).table("a", whole((4,)))


def change(path: Path, remove: str = "", **members: Any) -> None:
    file = path / "a" / "zarr.json"
    document = json.loads(file.read_text()) | members
    document.pop(remove, None)
    file.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"shape": [-1, 4]}, "shape is"),
        ({"shape": [2**70, 4]}, "shape is"),
        ({"shape": [2**40, 2**40]}, "larger than any file system"),
        ({"shape": [4.0, 4]}, "shape is"),
        ({"shape": [True, 4]}, "shape is"),
        ({"shape": [1] * 99}, "at most 32"),
        ({"shape": "4"}, "'shape' is '4'"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}}, "chunk_shape is"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}, "1 dimensions, the array 2"),
        ({"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/../"}}}, "separator"),
        ({"codecs": []}, "codecs is"),
        ({"codecs": [{"name": "gzip"}]}, "before the one that makes bytes"),
        ({"codecs": [{"name": "bytes"}]}, "order of bytes"),
        ({"codecs": ["bytes", "bytes"]}, "second one"),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [0, 0]}}, "bytes"]}, "not an order of 2"),
        ({"fill_value": "x"}, "is no float32"),
        ({"fill_value": None}, "is no float32"),
        ({"node_type": "tree"}, "not one of 'array' and 'group'"),
        ({"zarr_format": 4}, "is not 3"),
        ({"dimension_names": ["x"]}, "2 names"),
        ({"attributes": []}, "'attributes' is"),
    ],
)
def test_wrong_metadata_are_told(members: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    store(path, numbers((4, 4)))
    change(path, **members)
    with pytest.raises(penstock.Error, match=words) as caught:
        Zarr(path).info("a")
    assert "dataset 'a'" in str(caught.value)
    assert caught.value.code == "damaged"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"chunk_grid": {"name": "rectilinear"}}, "'rectilinear' is not 'regular'"),
        ({"chunk_key_encoding": {"name": "../x"}}, "not one of 'default' and 'v2'"),
        ({"storage_transformers": ["x"]}, "storage transformers"),
        ({"surprise": {}}, "Penstock does not know"),
        (
            {
                "codecs": [
                    {"name": "transpose", "configuration": {"order": [1, 0]}},
                    {"name": "numcodecs.delta", "configuration": {"dtype": "<f4"}},
                    {"name": "bytes", "configuration": {"endian": "little"}},
                ]
            },
            "behind 'transpose'",
        ),
        ({"surprise": {"must_understand": True}}, "Penstock does not know"),
    ],
)
def test_what_is_valid_and_not_done_is_listed_and_refused(members: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    store(path, numbers((4, 4)))
    change(path, **members)
    info = Zarr(path).info("a")
    assert words in info.refusal
    assert info.shape == (4, 4)
    with pytest.raises(penstock.Error, match=f"'a'.*{words}") as caught:
        Zarr(path).table("a", whole((4, 4)))
    assert caught.value.code == "unsupported"
    assert "damaged" not in str(caught.value)


def test_members_that_may_be_ignored_are(tmp_path: Path) -> None:
    path, data = tmp_path / "x.zarr", numbers((4, 4))
    store(path, data)
    change(path, later={"must_understand": False})
    assert np.array_equal(read(Zarr(path), "a"), data)


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, '{"a": 1, "a": 2}', "[]", "\xff", '{"shape": 1' + "0" * 5000 + "}"]
)
def test_documents_that_are_no_plain_json_objects_are_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    store(path, numbers((4, 4)))
    (path / "a" / "zarr.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(penstock.Error, match=r"zarr\.json"):
        Zarr(path).info("a")


def test_a_chunk_of_the_wrong_length_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    container = store(path, numbers((4, 4)), chunks=(2, 2))
    os.truncate(path / "a/c/1/0", 15)
    with pytest.raises(penstock.Error, match=r"dataset 'a'.*c/1/0 has 15 bytes, its shape says 16"):
        container.table("a", whole((4, 4)))
    container.table("a", Box((0, 0), (2, 4)))


def test_a_damaged_index_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    store(path, numbers((4, 4)), chunks=(2, 2), shards=(4, 4))
    shard = path / "a/c/0/0"
    raw = bytearray(shard.read_bytes())
    raw[-20] ^= 1
    shard.write_bytes(raw)
    with pytest.raises(penstock.Error, match="checksum of the shard's index"):
        Zarr(path).table("a", whole((4, 4)))
    shard.write_bytes(b"short")
    with pytest.raises(penstock.Error, match="its index alone"):
        Zarr(path).table("a", whole((4, 4)))


def test_a_damaged_packed_chunk_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    for name in ("gzip", "zstd", "blosc", "crc32c"):
        store(path, numbers((400,)), compressors=packer(name))
        chunk = path / "a/c/0"
        raw = bytearray(chunk.read_bytes())
        damages = [raw[:-3], b""]
        if name in ("gzip", "crc32c"):  # the others have no checksum
            damages.append(raw[: len(raw) // 2] + b"\x55\xaa" * 8 + raw[len(raw) // 2 + 16 :])
        for damage in damages:
            chunk.write_bytes(damage)
            with pytest.raises(penstock.Error, match=r"c/0: its chunk at \[0\] is damaged"):
                Zarr(path).decode("a", whole((400,)))
        shutil.rmtree(path)


def test_a_bomb_does_not_go_off(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "x.zarr"
    store(path, numbers((400,)), compressors=packer("gzip"))
    (path / "a/c/0").write_bytes(gzip.compress(bytes(50 << 20)))
    with pytest.raises(penstock.Error, match="more than the 1600 bytes"):
        Zarr(path).decode("a", whole((400,)))


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.zarr"
    store(path, numbers((400,)), compressors=packer("zstd"))
    monkeypatch.setitem(__import__("sys").modules, "numcodecs.zstd", None)
    with pytest.raises(penstock.Error, match=r"dataset 'a'.*zstd.*pip install numcodecs"):
        Zarr(path).decode("a", whole((400,)))


def test_names_never_lead_out_of_the_store(tmp_path: Path) -> None:
    data = numbers((4,))
    store(tmp_path / "outside.zarr", data)
    container = store(tmp_path / "x.zarr", data)
    (tmp_path / "x.zarr/link").symlink_to(tmp_path / "outside.zarr")
    assert container.names() == ("a",)
    for name in ("../outside.zarr/a", "a/../a", "./a", "a//a", "link/a", "x\0"):
        with pytest.raises(KeyError):
            container.info(name)


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for name, words in (("absent", "nothing of that name"), ("file", "not a folder"), ("empty", "neither zarr.json")):
        with pytest.raises(penstock.Error, match=words):
            Zarr(tmp_path / name)


@pytest.mark.parametrize("length", [0, 1, 9, 8191, 8192, 8193, 30_001])
def test_both_ways_to_a_checksum_give_the_same(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    assert crc32c_numpy(data) == crc32c(data)
    assert crc32c_numpy(b"123456789") == 0xE3069283  # the check value of CRC-32C
