"""The store for zarr-python: what LocalStore gives, by Penstock; on a GPU into CuPy arrays."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

zarr = pytest.importorskip("zarr")

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest  # noqa: E402 - needs zarr
from zarr.core.buffer import default_buffer_prototype  # noqa: E402

from penstock import _core, zarr_store  # noqa: E402
from penstock.zarr_store import PenstockStore  # noqa: E402

LAYOUTS = [
    {"chunks": (100, 50)},
    {"chunks": (100, 50), "compressors": None},
    {"chunks": (10, 50), "shards": (100, 100), "compressors": None},
    {"chunks": (400, 300), "compressors": None},
]


def field() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(400, 300))


@pytest.fixture(params=[0, 1 << 20], ids=["engine", "plain"])
def threshold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether small host reads go through the engine."""
    monkeypatch.setattr(zarr_store, "_SMALL_BYTES", request.param)


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_are_read_and_written(layout: dict[str, Any], tmp_path: Path) -> None:
    group = zarr.open_group(PenstockStore(tmp_path / "x.zarr"), mode="w")
    group.create_array("g/a", data=field(), **layout)
    array = zarr.open_group(PenstockStore(tmp_path / "x.zarr", read_only=True), mode="r")["g/a"]
    assert np.array_equal(array[...], field())
    assert np.array_equal(array[37:251, 3::7], field()[37:251, 3::7])
    assert np.array_equal(zarr.open_group(tmp_path / "x.zarr", mode="r")["g/a"][...], field())
    group["g/a"][5:7] = 0
    assert not group["g/a"][5:7].any(), "what was replaced is read anew"


@pytest.mark.usefixtures("threshold")
def test_ranges_are_those_of_local_store(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "key").write_bytes(bytes(range(200)))
    (tmp_path / "empty").write_bytes(b"")
    ranges = [
        None,
        RangeByteRequest(3, 50),
        RangeByteRequest(150, 400),
        RangeByteRequest(300, 400),
        OffsetByteRequest(190),
        OffsetByteRequest(300),
        SuffixByteRequest(7),
        SuffixByteRequest(700),
    ]
    wanted = [(key, one) for key in ("key", "empty", "absent", "folder", "key/below") for one in ranges]
    results = []
    for kind in (PenstockStore, zarr.storage.LocalStore):
        store = kind(tmp_path)
        prototype = default_buffer_prototype()
        each = [asyncio.run(store.get(key, prototype, one)) for key, one in wanted]
        together = asyncio.run(store.get_partial_values(prototype, wanted[:16])) if kind is PenstockStore else []
        found = [None if one is None else one.to_bytes() for one in each]
        assert [None if one is None else one.to_bytes() for one in together] == found[: len(together)]
        results.append(found)
        store.close()
    assert results[0] == results[1]


def test_a_store_goes_to_another_process(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "x.zarr", mode="w").create_array("a", data=field())
    store = PenstockStore(tmp_path / "x.zarr", read_only=True)
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.read_only
    assert np.array_equal(zarr.open_group(again, mode="r")["a"][...], field())


def test_files_stay_open_while_they_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zarr_store, "_SMALL_BYTES", 0)
    opened: list[str] = []
    plain_open = _core.open

    def spy(context: Any, name: Any, **options: Any) -> Any:
        opened.append(Path(name).name)
        return plain_open(context, name, **options)

    monkeypatch.setattr(_core, "open", spy)
    (tmp_path / "key").write_bytes(b"one")
    store = PenstockStore(tmp_path)
    for _ in range(3):
        assert store.get_sync("key").to_bytes() == b"one"
    assert opened == ["key"]
    (tmp_path / "other").write_bytes(b"three")
    (tmp_path / "other").replace(tmp_path / "key")
    assert store.get_sync("key").to_bytes() == b"three"
    assert opened == ["key", "key"]


def test_what_is_no_byte_range_is_told(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"x")
    with pytest.raises(TypeError, match="byte range"):
        PenstockStore(tmp_path).get_sync("key", byte_range=3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunks_go_to_the_gpu(layout: dict[str, Any], tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    try:
        context = penstock.Context("cuda:0")
    except penstock.Error as error:
        pytest.skip(str(error))
    zarr.open_group(tmp_path / "x.zarr", mode="w").create_array("a", data=field(), **layout)
    with zarr.config.enable_gpu():
        for store in (PenstockStore(tmp_path / "x.zarr"), PenstockStore(tmp_path / "x.zarr", context=context)):
            array = zarr.open_group(store, mode="r")["a"]
            found = array[...]
            assert isinstance(found, cupy.ndarray)
            assert np.array_equal(found.get(), field())
            used = [cupy.zeros(layout["chunks"], np.float64) for _ in range(24)]
            long = cupy.random.random(1 << 26)
            long.sort()  # what is queued on memory that is free again comes before what is read into it
            for one in used:
                one.fill(-1)
            del used, one
            assert np.array_equal(array[...].get(), field())
            assert np.array_equal(array[3:77, ::5].get(), field()[3:77, ::5])
