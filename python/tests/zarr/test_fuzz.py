"""Zarr stores against damage: documents, shards and packed chunks of any bytes give data, or an error with a text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_reading import whole
from damage import Judge, at_random, cuts, extremes, seconds, some

from penstock.formats.zarr.reader import Zarr

zarr = pytest.importorskip("zarr")
codecs = pytest.importorskip("zarr.codecs")

MOST_BYTES = 1 << 20  # of an array that is read whole here
PACKERS = ("gzip", "zstd", "blosc", "crc32c")


def make(path: Path, packer: str = "", *, shards: bool = False) -> Path:
    """A store with one array "a"; returns the only chunk file."""
    kinds = {
        "gzip": codecs.GzipCodec,
        "zstd": codecs.ZstdCodec,
        "blosc": codecs.BloscCodec,
        "crc32c": codecs.Crc32cCodec,
    }
    compressors = [kinds[packer]()] if packer else None
    data = np.arange(48, dtype=">f4").reshape(6, 8)
    group = zarr.open_group(path, mode="w")
    chunks = {"chunks": (3, 2), "shards": (6, 8)} if shards else {"chunks": (6, 8)}
    names = {"dimension_names": ("y", "x"), "attributes": {"units": "K"}}
    group.create_array("a", data=data, compressors=compressors, fill_value=1.5, **chunks, **names)
    return path / "a" / "c" / "0" / "0"


def use(path: Path, size: int) -> None:
    container = Zarr(path)
    for name in container.names():
        container.attributes()
        info = container.info(name)
        if info.refusal:
            continue
        table = container.table(name, whole(info.shape))
        for row in range(len(table.bytes)):
            end = int(table.offset_bytes[row] + table.bytes[row])
            assert 0 <= table.offset_bytes[row] <= end <= Path(table.files[table.file_index[row]]).stat().st_size
        if table.encoded.any() and info.dtype.itemsize * np.prod(info.shape, dtype=object) <= MOST_BYTES:
            wanted = info.dtype.itemsize * int(np.prod(info.shape, dtype=object))
            assert len(container.decode(name, whole(info.shape))) == wanted


def test_documents_with_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    make(path, shards=True)
    document = path / "a" / "zarr.json"
    good = [document.read_bytes(), (path / "zarr.json").read_bytes()]
    judge = Judge(document)
    judge.judge(some(cuts(good[0]), 4), lambda size: use(path, size))
    judge.judge(at_random(good, 500, seed=3), lambda size: use(path, size))
    assert judge.errors > 100
    assert judge.data > 10


def test_documents_that_are_json_and_wrong(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    for shards in (False, True):
        make(path, shards=shards)
        document = path / "a" / "zarr.json"
        good = json.loads(document.read_bytes())
        judge = Judge(document)
        judge.judge(changed_documents(good, 700, seed=5), lambda size: use(path, size))
        assert judge.errors > 100
        assert judge.data > 50


_WRONG: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        1,
        -1,
        3,
        1 << 31,
        (1 << 63) - 1,
        1 << 63,
        1 << 64,
        1.5,
        1e308,
        "",
        "x",
        "NaN",
        "0x7fc00000",
        "../..",
    ),
    *([], [0], [1, 1], [1 << 40, 1 << 40], [6, 8], [2, 2], [1] * 40, {}, {"name": "bytes"}, {"name": "gzip"}, [[]]),
    *(
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "float32"},
        "float64",
        "bool",
        "r16",
        "complex64",
    ),
)


def changed_documents(good: Any, count: int, seed: int) -> Iterator[bytes]:
    """Members taken out, exchanged with each other, or replaced by what no reader expects there."""
    chance = random.Random(seed)
    for _ in range(count if not seconds() else 50 * count):
        document = json.loads(json.dumps(good))
        for _ in range(chance.randint(1, 3)):
            places = list(_places(document))
            holder, key = chance.choice(places)
            if key not in (holder if isinstance(holder, dict) else range(len(holder))):
                continue
            kind = chance.randrange(4)
            if kind == 0:
                del holder[key]
            elif kind == 1:
                other, theirs = chance.choice(places)
                if theirs in (other if isinstance(other, dict) else range(len(other))):
                    holder[key] = json.loads(json.dumps(other[theirs]))
            else:
                holder[key] = json.loads(json.dumps(chance.choice(_WRONG)))
        yield json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def test_shards_with_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    for packer in ("", *PACKERS):
        shard = make(path, packer, shards=True)
        good = shard.read_bytes()
        judge = Judge(shard)
        judge.judge(some(cuts(good), 10), lambda size: use(path, size))
        judge.judge(at_random([good], 60, seed=9), lambda size: use(path, size))
        assert judge.errors > 20


def test_indices_without_a_checksum(tmp_path: Path) -> None:
    """Offsets and lengths of inner chunks set to extremes, with nothing else that would tell."""
    path = tmp_path / "x.zarr"
    shard = make(path, shards=True)
    document = json.loads((path / "a/zarr.json").read_bytes())
    document["codecs"][0]["configuration"]["index_codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    (path / "a/zarr.json").write_text(json.dumps(document))
    good = shard.read_bytes()[:-4]
    judge = Judge(shard)
    index = 16 * 8
    cases = (good[:-index] + one for one in extremes(good[-index:], index, 8, "<"))
    judge.judge(some(cases, 2), lambda size: use(path, size))
    assert judge.errors > 50
    assert judge.data > 5


@pytest.mark.parametrize("packer", PACKERS)
def test_packed_chunks_with_damaged_bytes(packer: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    chunk = make(path, packer)
    good = chunk.read_bytes()
    judge = Judge(chunk)
    judge.judge(cuts(good), lambda size: use(path, size))
    judge.judge(some(extremes(good, 40, 4, "<"), 2), lambda size: use(path, size))
    judge.judge(at_random([good], 200, seed=4), lambda size: use(path, size))
    assert judge.errors > 100
