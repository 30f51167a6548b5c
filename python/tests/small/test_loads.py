"""Small files of several datasets are loaded without a transfer: the same arrays in one buffer, or the same errors."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import _core
from penstock.formats.reading import small
from penstock.formats.state import FileState

VALUES = {
    "weights": np.arange(3000, dtype="f4").reshape(30, 100),
    "bytes": np.arange(7, dtype="u1"),
    "counts": np.arange(20, dtype="i8"),
    "one": np.array(5.0, "f8"),
    "none": np.empty((0, 4), "f2"),
}


@pytest.fixture(params=["safetensors", "hdf5", "netcdf4", "foreign"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "foreign":
        package: Any = pytest.importorskip("safetensors.numpy")
        package.save_file(VALUES, tmp_path / "x.safetensors", {"by": "a test"})
        return tmp_path / "x.safetensors"
    suffix = {"safetensors": ".safetensors", "hdf5": ".h5", "netcdf4": ".nc"}[request.param]
    if suffix != ".safetensors":
        pytest.importorskip("h5py")
    few = {name: array for name, array in VALUES.items() if name != "none" and array.dtype != "f2"}
    ps.save(tmp_path / f"x{suffix}", VALUES if suffix == ".safetensors" else few, device="host")
    return tmp_path / f"x{suffix}"


def planned(path: Path, patch: pytest.MonkeyPatch, **options: Any) -> dict[str, ps.Array]:
    with patch.context() as without:
        without.setattr(FileState, "read_whole", lambda *_: None)
        return ps.load(path, device="host", **options)


def test_arrays_are_those_of_a_transfer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = planned(file, monkeypatch)
    with ps.open(file, device="host") as opened:
        found = opened.load()
        evidence = opened.evidence()
    assert list(found) == list(expected)
    assert found.unreadable == {}
    near = next(name for name in found if len(name) > 2)
    with pytest.raises(KeyError, match=rf"no array '{near}x' was loaded; close names: .*{near}"):
        _ = found[f"{near}x"]
    for name, array in found.items():
        np.testing.assert_array_equal(np.asarray(array), VALUES[name])
        assert (array.dtype, array.shape, array.strides) == (
            expected[name].dtype,
            expected[name].shape,
            expected[name].strides,
        )
        assert array.offset_bytes == expected[name].offset_bytes or not array.size
        assert array.buffer is next(iter(found.values())).buffer
    assert evidence["formats"]["requested_bytes"] == sum(array.nbytes for array in found.values())
    assert {share["path"] for share in evidence["paths"]} == {"buffered"}


def test_it_is_one_call_of_the_core_where_all_lie_in_one_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    read = _core.read_parts
    monkeypatch.setattr(_core, "read_parts", lambda *told: made.append(read(*told)) or made[-1])
    ps.load(file, device="host")
    assert len(made) == 1
    assert made[0] is not None
    ps.load(file, device="host", strict=True)
    ps.load(file, device="host", names=["counts"])
    assert len(made) == 1, "with options, and of names, it is a transfer"


def hindered(opened: ps.DataFile) -> bool:
    """Whether load() tells that some cannot be read, or raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.UnreadableWarning)
            return bool(opened.load().unreadable)
    except ps.Error:
        return True


def test_of_a_file_that_shrank_tells_it(file: Path) -> None:
    with ps.open(file, device="host") as opened:
        with file.open("r+b") as raw:
            raw.truncate(file.stat().st_size - 400)
        assert hindered(opened)


def test_of_a_file_that_was_replaced_reads_nothing_of_the_new_one(file: Path, tmp_path: Path) -> None:
    with ps.open(file, device="host") as opened:
        other = tmp_path / f"other{file.suffix}"
        other.write_bytes(bytes(file.stat().st_size))
        other.replace(file)
        assert hindered(opened)


@pytest.mark.parametrize("is_cached", [True, False])
def test_larger_files_are_read_so_where_the_page_cache_has_them(tmp_path: Path, is_cached: bool) -> None:
    values = {"a": np.random.default_rng(3).random(1 << 20), "b": np.ones(7, "f4")}
    ps.save(tmp_path / "x.safetensors", values, device="host")
    np.save(tmp_path / "x.npy", values["a"])
    values["a"].tofile(tmp_path / "x.bin")
    for name in ("x.safetensors", "x.npy", "x.bin"):
        if not is_cached:
            descriptor = os.open(tmp_path / name, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        found = ps.load(tmp_path / name, device="host")
        whole = np.asarray(found["a"] if name == "x.safetensors" else found)
        assert whole.tobytes() == values["a"].tobytes(), name


def test_files_beyond_all_bounds_are_left_to_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"a": np.ones(1 << 20, "f4"), "b": np.ones(1, "f4")}
    ps.save(tmp_path / "x.safetensors", values, device="host")
    monkeypatch.setattr(small, "_MOST_WHOLE", 4 << 20)
    monkeypatch.setattr(_core, "read_parts", None)
    found = ps.load(tmp_path / "x.safetensors", device="host")
    np.testing.assert_array_equal(np.asarray(found["a"]), values["a"])
