"""Chunk files that are written whole: by the threads that have their chunk ready, and by transfers where these are
asked for. zarr-python says what is in them."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import penstock as ps
from penstock import _core
from penstock.formats.packing import in_files
from penstock.formats.packing.rewriting import ChunkOrder

PACKED = [None, "lz4", "zstd", "gzip"]
WHOLE = "files that are written whole"


def values(rows: int, columns: int, dtype: str = "<f4") -> np.ndarray:
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


def stored(path: Path, name: str = "x") -> np.ndarray:
    return np.asarray(zarr.open_group(path, mode="r")[name][...])


def way(outcome: Any) -> tuple[str, int]:
    """The plan, and how many calls wrote."""
    return outcome.evidence["plan"], sum(share["operations"] for share in outcome.evidence["paths"])


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("dtype", ["<f4", ">i2"])
def test_each_chunk_takes_one_call_that_writes(packing: str | None, dtype: str, tmp_path: Path) -> None:
    array = values(40, 500, dtype)
    with ps.create(tmp_path / "s.zarr", device="host") as file:
        layout = {"chunk_shape": (8, 300), "compression": packing}
        data = file.create_dataset("x", array.shape, dtype, **layout)
        plan, calls = way(data.write(array))
        assert WHOLE in plan
        assert calls == 10
        told = file.evidence()["formats"]
        assert told["host_encoded_bytes"] == (0 if packing is None else array.nbytes)
        assert told["requested_bytes"] == array.nbytes
        files = [one for one in Path(tmp_path).rglob("*") if one.parent.parent.name == "c"]
        assert told["range_bytes"] == sum(one.stat().st_size for one in files)
        assert np.array_equal(data[...], array)
    found = stored(tmp_path / "s.zarr")
    assert np.array_equal(found, array)


@pytest.mark.parametrize("packing", PACKED)
def test_what_is_saved_at_once_takes_one_call_a_chunk(packing: str | None, tmp_path: Path) -> None:
    array = values(64, 256)[:, ::-1]  # no chunk is one piece of memory
    with ps.create(tmp_path / "s.zarr", device="host") as file:
        plan, calls = way(
            file.write_many({"x": array}, layout={"chunk_shape": (4, 256), "compression": packing}).result()
        )
    assert WHOLE in plan
    assert calls == 16
    assert np.array_equal(stored(tmp_path / "s.zarr"), array)


@pytest.mark.parametrize("packing", [None, "zstd"])
@pytest.mark.parametrize("options", [{"path": "buffered"}, {"workers": 1}, {"strict": True}])
def test_options_that_name_a_way_are_heard(packing: str | None, options: dict[str, Any], tmp_path: Path) -> None:
    array = values(16, 1000)
    with ps.create(tmp_path / "s.zarr", device="host") as file:
        data = file.create_dataset("x", array.shape, "f4", chunk_shape=(4, 1000), compression=packing)
        plan, _ = way(data.write(array, **options))
    assert WHOLE not in plan
    assert np.array_equal(stored(tmp_path / "s.zarr"), array)


def test_a_context_that_names_a_path_is_heard(tmp_path: Path) -> None:
    array = values(16, 1000)
    with ps.Context("host", path="buffered") as context, ps.create(tmp_path / "s.zarr", context=context) as file:
        data = file.create_dataset("x", array.shape, "f4", chunk_shape=(4, 1000), compression="lz4")
        plan, _ = way(data.write(array))
    assert WHOLE not in plan
    assert np.array_equal(stored(tmp_path / "s.zarr"), array)


def test_parts_of_plain_chunks_and_chunks_of_a_published_store_keep_their_places(tmp_path: Path) -> None:
    array = values(16, 100)
    with ps.create(tmp_path / "s.zarr", device="host") as file:
        data = file.create_dataset("x", array.shape, "f4", chunk_shape=(4, 100))
        assert WHOLE not in way(data.write(array[:3], slice(0, 3)))[0]
        data[3:] = array[3:]
    assert np.array_equal(stored(tmp_path / "s.zarr"), array)
    inode = {one.name: one.stat().st_ino for one in (tmp_path / "s.zarr/x/c").iterdir()}
    with ps.open(tmp_path / "s.zarr", write=True, device="host") as file:
        file["x"][4:8] = array[:4]
    assert {one.name: one.stat().st_ino for one in (tmp_path / "s.zarr/x/c").iterdir()} == inode
    array[4:8] = array[:4]
    assert np.array_equal(stored(tmp_path / "s.zarr"), array)


@pytest.mark.parametrize("packing", [None, "lz4"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_later_write_of_the_same_chunks_comes_later(
    packing: str | None, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write is held until the second waits for it, or is done."""
    go, write, wait, calls = threading.Event(), in_files.write, ChunkOrder.wait, iter(range(9))
    layout: Any = {"chunk_shape": (1, 2000), "compression": packing}

    def held(*given: Any) -> Any:
        if next(calls) == 0:
            assert go.wait(60)
            return write(*given)
        done = write(*given)
        go.set()
        return done

    def waiting(order: ChunkOrder, *given: Any) -> None:
        if order._writes:
            go.set()
        wait(order, *given)

    monkeypatch.setattr(in_files, "write", held)
    monkeypatch.setattr(ChunkOrder, "wait", waiting)
    first, last = np.zeros((64, 2000), "f4"), values(64, 2000)  # so many that another thread encodes them
    with ps.create(tmp_path / "s.zarr", device="host") as file:
        if is_new:
            held_back = file.write_many({"x": first}, layout=layout)
        else:
            held_back = file.create_dataset("x", first.shape, "f4", **layout).start_write(first)
        file["x"].start_write(last[32:], slice(32, 64)).result()
        held_back.result()
    assert np.array_equal(stored(tmp_path / "s.zarr"), np.concatenate([first[:32], last[32:]]))


LIMITED = """
import resource, sys
import numpy as np, penstock as ps
resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
array = np.random.default_rng(1).integers(0, 255, (8, 50000), "u1")
try:
    with ps.create(sys.argv[1], device="host") as file:
        file.write_many({"y": array}, layout={"chunk_shape": (1, 50000), "compression": sys.argv[2] or None}).result()
except ps.Error as error:
    print("/c/" in error.file, error.operation, error.system_code, error.offset_bytes)
"""


@pytest.mark.parametrize("packing", ["", "lz4"])
def test_a_write_that_the_system_refuses_names_the_chunk_and_leaves_nothing(packing: str, tmp_path: Path) -> None:
    run = [sys.executable, "-c", LIMITED, str(tmp_path / "s.zarr"), packing]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["True", "write", "27", "30000"], done.stderr  # EFBIG
    assert not list(tmp_path.iterdir())


FEW = """
import os, resource, sys
import numpy as np, penstock as ps
array = np.arange(300 * 100, dtype="f4").reshape(300, 100)
with ps.create(sys.argv[1], device="host") as file:
    file.write_many({"warm": array[:4]}).result()
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, used + 20))
    file.write_many({"x": array}, layout={"chunk_shape": (1, 100), "compression": "lz4"}).result()
"""


def test_few_descriptors_are_enough(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FEW, str(tmp_path / "s.zarr")], timeout=100, check=True)
    assert np.array_equal(stored(tmp_path / "s.zarr"), np.arange(300 * 100, dtype="f4").reshape(300, 100))


def test_where_the_process_has_no_descriptor_left_transfers_write_when_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise ps.Error(code="io_error", system_code=errno.EMFILE, operation="create", cause="Too many open files")

    monkeypatch.setattr(_core, "write_chunk_files", refuse)
    array = values(16, 100)
    with ps.create(tmp_path / "s.zarr", device="host") as file:
        data = file.create_dataset("x", array.shape, "f4", chunk_shape=(4, 100), compression="lz4")
        plan, _ = way(data.write(array))
    assert WHOLE not in plan
    assert np.array_equal(stored(tmp_path / "s.zarr"), array)
