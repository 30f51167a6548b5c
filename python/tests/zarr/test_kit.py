"""Zarr through penstock.open and create: the kit, shards, stores that grow; zarr-python says what is right."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_kit import (
    check_reads_only_what_is_wanted,
    check_refuses_wrong_out,
    check_round_trips,
    check_selections,
    few,
    same,
    sample,
)
from hypothesis import given, strategies as some

import penstock
from penstock import _core

zarr = pytest.importorskip("zarr")
codecs = pytest.importorskip("zarr.codecs")


def by_zarr(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_group(path, mode="r")["data"][...])


def test_round_trips(tmp_path: Path) -> None:
    check_round_trips(tmp_path, ".zarr", stock=by_zarr)


@pytest.mark.parametrize(
    "layout",
    [
        {"chunks": (5, 3, 2), "compressors": None},
        {"chunks": (2, 3, 2), "shards": (6, 6, 4), "compressors": None},
        {"chunks": (5, 3, 2), "compressors": codecs.ZstdCodec()},
        {"chunks": (2, 3, 2), "shards": (6, 6, 4)},
        {"chunks": (5, 3, 2), "compressors": None, "filters": codecs.TransposeCodec(order=(2, 1, 0))},
        {"chunks": (5, 3, 2), "compressors": codecs.GzipCodec(), "filters": codecs.TransposeCodec(order=(2, 1, 0))},
        {"chunks": (5, 3, 2), "compressors": None, "filters": codecs.TransposeCodec(order=(1, 2, 0))},
    ],
)
def test_selections(layout: dict[str, Any], tmp_path: Path) -> None:
    expected = np.full((13, 9, 4), 7, ">f4")
    array = zarr.open_group(tmp_path / "x.zarr", mode="w").create_array(
        "a", shape=expected.shape, dtype=expected.dtype, fill_value=7, **layout
    )
    expected[2:9, 3:] = sample((7, 6, 4), "f4")
    array[2:9, 3:] = expected[2:9, 3:]
    with penstock.open(tmp_path / "x.zarr", device="host") as file:
        check_selections(file, "a", expected)
        check_refuses_wrong_out(file["a"])


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    with penstock.create(path, device="host") as file:
        file.create_dataset("a", (1000, 200), "f4", chunk_shape=(100, 50))[...] = sample((1000, 200), "f4")
        shards = {"chunk_shape": (100, 50), "shard_shape": (500, 200)}
        file.create_dataset("s", (1000, 200), "f4", **shards)[...] = sample((1000, 200), "f4")
    for index in (slice(10, 20), (slice(None), slice(0, 5)), (slice(None, None, 100), 3), 5, (5, 5), ...):
        for name in "as":
            check_reads_only_what_is_wanted(path, name, index, 1_000_000)


@few
@given(some.data())
def test_any_rows_may_be_appended(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """To chunks and shards of any shape, in the session that made the array and in later ones."""
    path = tmp_path_factory.mktemp("any") / "x.zarr"
    chunk = (data.draw(some.integers(1, 4)), data.draw(some.integers(1, 5)))
    shard = (chunk[0] * data.draw(some.integers(1, 3)), chunk[1] * data.draw(some.integers(1, 2)))
    layout: dict[str, Any] = {"chunk_shape": chunk} | ({"shard_shape": shard} if data.draw(some.booleans()) else {})
    layout |= {"resizable": (None, 5)} if data.draw(some.booleans()) else {}
    counts = data.draw(some.lists(some.integers(1, 5), min_size=1, max_size=4))
    expected = sample((sum(counts), 5), "f4")
    with penstock.create(path, device="host") as file:
        file.create_dataset("a", (counts[0], 5), "f4", **layout)[...] = expected[: counts[0]]
    rows = counts[0]
    for count in counts[1:]:
        with penstock.open(path, device="host", write=True) as file:
            file["a"].append(expected[rows : rows + count])
            rows += count
            same(file["a"].read(), expected[:rows])
        assert np.array_equal(zarr.open_group(path, mode="r")["a"][...], expected[:rows])


def test_reading_what_is_changed_makes_no_chunks(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    group = zarr.open_group(path, mode="w")
    group.create_array("a", shape=(100, 100), chunks=(10, 10), dtype="f4", fill_value=3)
    before = sorted(path.rglob("*"))
    with penstock.open(path, device="host", write=True) as file:
        assert float(np.asarray(file["a"].read()).sum()) == 30_000
        assert file["a"].extents() == []
    assert sorted(path.rglob("*")) == before


def test_packed_arrays_are_read_while_others_are_written(tmp_path: Path) -> None:
    path, data = tmp_path / "x.zarr", sample((9, 9), "f4")
    zarr.open_group(path, mode="w").create_array("packed", data=data)
    with penstock.open(path, device="host", write=True) as file:
        file["raw"] = data
        same(file["packed"].read(), data)
        same(file["raw"].read(), data)
        assert file.evidence()["formats"]["host_decoded_bytes"] == data.nbytes
        file["packed"][2] = data[2] = data[0]
        same(file["packed"].read(), data)
    assert np.array_equal(zarr.open_group(path)["packed"][...], data)


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), penstock.create(tmp_path / "x.zarr", device="host") as file:
        file["data"] = np.ones(9)
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_store_that_is_one_array(tmp_path: Path) -> None:
    data = sample((4, 4), "f8")
    zarr.save_array(tmp_path / "x.zarr", data)
    with penstock.open(tmp_path / "x.zarr", device="host") as file:
        assert list(file) == [""]
        same(file[""].read(), data)
    zarr.create_array(tmp_path / "y.zarr", data=data, compressors=None, chunks=(3, 4))
    with penstock.open(tmp_path / "y.zarr", device="host", write=True) as file:
        file[""].append(data)
        file[""].attrs["units"] = "K"
    grown = zarr.open_array(tmp_path / "y.zarr", mode="r")
    assert np.array_equal(grown[...], np.concatenate([data, data]))
    assert grown.attrs["units"] == "K"


@pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason="no GPU")
def test_on_a_gpu(tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    path, field = tmp_path / "x.zarr", cupy.arange(9 * 500 * 600, dtype="f4").reshape(9, 500, 600)
    with penstock.create(path, device="cuda:0") as file:
        file["whole"] = field
        layout = {"chunk_shape": (2, 100, 128), "shard_shape": (4, 500, 640), "resizable": (None, 500, 600)}
        shards = file.create_dataset("shards", (0, 500, 600), "f4", **layout)
        for first, last in ((0, 1), (1, 4), (4, 9)):
            shards.append(field[first:last])
    zarr.open_group(path, mode="a").create_array("packed", data=field.get(), chunks=(2, 100, 128))
    with penstock.open(path, device="cuda:0") as file:
        for name in ("whole", "shards", "packed"):
            assert np.array_equal(zarr.open_group(path, mode="r")[name][...], field.get())
            assert (cupy.asarray(file[name].read()) == field).all()
            assert (cupy.asarray(file[name][1:8:3, ::-7, 5]) == field[1:8:3, ::-7, 5]).all()


@pytest.mark.parametrize("suffix", [".nc3", ".npy", ".safetensors"])
def test_formats_without_shards_say_so(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="shard_shape is for Zarr"), penstock.create(tmp_path / f"x{suffix}") as file:
        file.create_dataset("data", (4, 4), "f4", shard_shape=(4, 4))


@pytest.mark.parametrize("end", ["/", "//"])
def test_a_slash_behind_the_name_says_nothing(tmp_path: Path, end: str) -> None:
    path, expected = f"{tmp_path}/x.zarr", np.arange(6.0)
    penstock.save(path + end, {"a": expected}, "host")
    assert [one.name for one in tmp_path.iterdir()] == ["x.zarr"]
    assert np.array_equal(penstock.load(path + end, "host")["a"].to_numpy(), expected)
    with penstock.create(path + end, device="host") as file:
        file["b"] = expected
    with penstock.open(path + end, device="host", write=True) as file:
        file["c"] = expected
    with penstock.open(path, device="host") as file:
        assert list(file) == ["b", "c"]


@pytest.mark.parametrize("asked", [20_000, 0])  # one by one, or by listing the folder
@pytest.mark.parametrize("fault", ["link", "EACCES", "EIO"])
def test_a_chunk_that_cannot_be_looked_at_is_no_missing_chunk(
    asked: int, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.zarr"
    with penstock.create(path, device="host") as file:
        file.create_dataset("d", (4,), "f4", chunk_shape=(2,))[...] = np.ones(4, "f4")
    chunk = path / "d/c/1"
    target = tmp_path / "elsewhere"
    chunk.rename(target)
    chunk.symlink_to(target)
    monkeypatch.setattr("penstock.formats.zarr.chunks._ASKED", asked)
    with penstock.open(path, device="host") as file:
        assert np.array_equal(file["d"][...], np.ones(4))
        if fault == "link":
            target.unlink()
        else:
            number, real = getattr(errno, fault), os.stat

            def stat(name: Any, **options: Any) -> os.stat_result:
                if str(name).endswith("c/1"):
                    raise OSError(number, os.strerror(number))
                return real(name, **options)

            monkeypatch.setattr(os, "stat", stat)
        with pytest.raises(penstock.Error, match="find chunks of dataset 'd'") as caught:
            file["d"].read()
    code = {"link": "not_found", "EACCES": "permission_denied", "EIO": "io_error"}[fault]
    assert caught.value.code == code
    assert "damaged" not in str(caught.value)
