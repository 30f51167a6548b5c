"""Writing through DataFile: new files, parts, values of all kinds, and what is left when something goes wrong."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_kit import same, sample, slow

import penstock
from penstock import _core


def test_a_new_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), penstock.create(tmp_path / "x.safetensors", device="host") as file:
        file["a"] = np.arange(3)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.npy").write_bytes(b"older")
    with penstock.create(tmp_path / "x.npy", device="host", durable=True) as file:
        file["a"] = np.arange(3)
        assert (tmp_path / "x.npy").read_bytes() == b"older"
        same(file["a"].read(), np.arange(3))
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.arange(3))
    assert [one.name for one in tmp_path.iterdir()] == ["x.npy"]


def test_a_written_file_tells_where_its_bytes_went(tmp_path: Path) -> None:
    with penstock.create(tmp_path / "out.safetensors", device="host", durable=True) as file:
        file["T"] = sample((100, 100), "f4")
    (extent,) = file["T"].extents()
    assert extent.file == str(tmp_path / "out.safetensors")
    assert extent.bytes == 40_000
    assert file.evidence()["formats"]["range_bytes"] == 40_000
    with pytest.raises(ValueError, match="closed"):
        file["T"].read()


def test_parts_are_written_into_a_created_dataset(tmp_path: Path) -> None:
    expected = sample((10, 6), "i4")
    with penstock.create(tmp_path / "x.npy", device="host") as file:
        dataset = file.create_dataset("data", (10, 6), "int32")
        dataset[:5] = expected[:5]
        dataset[5:, ::2] = expected[5:, ::2]
        dataset[5:, 1::2] = expected[5:, 1::2]
        with pytest.raises(ValueError, match=r"\(6,\).*\(4, 6\)"):
            dataset[:4] = expected[0]
        with pytest.raises(TypeError, match="float64.*int32"):
            dataset[0] = np.zeros(6)
        with pytest.raises(penstock.Error, match="grow"):
            dataset.append(expected[0])
    assert np.array_equal(np.load(tmp_path / "x.npy"), expected)


def test_values_of_all_kinds_are_written(tmp_path: Path) -> None:
    transposed = sample((4, 5), "f4").T
    with penstock.create(tmp_path / "x.safetensors", device="host") as file:
        file.write_many(
            {
                "a": [1.5, 2.5],
                "b": transposed,
                "c": np.float32(2),
                "d": sample((6,), ">i8"),
                "e": transposed[::-1, ::2],
                "f": True,
            }
        ).result()
        with pytest.raises(TypeError, match="dict"):
            file["g"] = {}
    found = penstock.load(tmp_path / "x.safetensors", "host", like=np.empty(()))
    assert found["a"].tolist() == [1.5, 2.5]
    assert np.array_equal(found["b"], transposed)
    assert np.array_equal(found["e"], transposed[::-1, ::2])
    assert (found["c"], found["f"]) == (2, True)
    assert np.array_equal(found["d"], sample((6,), ">i8"))


@pytest.mark.parametrize("step", [1, 2])
def test_a_write_that_failed_unseen_keeps_the_file_from_appearing(tmp_path: Path, step: int) -> None:
    context = slow()
    source = penstock.Array(context.allocate(8_000_000), "float64", (1_000_000,))[::step]
    for end in ({"timeout_s": 0.01}, {}):
        with pytest.raises(penstock.Error) as caught, penstock.create(tmp_path / "x.npy", context=context) as file:
            pending = file.write_many({"x": source}, **end)
            if not end:
                pending.cancel()
        assert caught.value.code == ("timed_out" if end else "cancelled")
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_never_closed_leaves_nothing(tmp_path: Path) -> None:
    with pytest.warns(ResourceWarning, match="never closed"):
        penstock.create(tmp_path / "x.npy", device="host")["data"] = np.arange(3)
        gc.collect()
    assert list(tmp_path.iterdir()) == []


# From Python 3.12 on, no Path can be made once the modules are going. Other versions are made to be so too.
_EXITS = """
import atexit, pathlib
import numpy, penstock

apart = {}  # not this module, which would be kept
exec("def too_late(*_): raise ImportError('sys.meta_path is None, Python is likely shutting down')", apart)

def forbid_paths(path=pathlib.Path, too_late=apart["too_late"]):
    for name in {"__new__", "_from_parts", "_from_parsed_parts", "with_segments"} & set(dir(path)):
        setattr(path, name, too_late)

atexit.register(forbid_paths)

def begun(name):
    file = penstock.create(name, device="host")
    file["data"] = numpy.arange(3)
    return file

class Closes:
    def __init__(self, name):
        self.file = begun(name)

    def __del__(self):
        self.file.close()
"""


def at_exit(folder: Path, code: str) -> str:
    """What Python says that runs the code and ends."""
    command = [sys.executable, "-X", "dev", "-c", _EXITS + code]
    done = subprocess.run(command, cwd=folder, timeout=60, check=True, capture_output=True, text=True)
    return done.stderr


def test_files_that_are_open_when_python_ends_are_told_of_in_one_line_each(tmp_path: Path) -> None:
    names = ["x.h5", "x.nc", "x.nc3", "x.npy", "x.safetensors", "x.zarr"]
    said = at_exit(tmp_path, f"files = [begun(name) for name in {names}]")
    lines = sorted(said.splitlines())
    assert len(lines) == len(names), said
    for line, name in zip(lines, sorted(names), strict=True):
        assert re.search(rf"ResourceWarning: .*/{name} was never closed: what was written to it is gone", line), said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.h5", "x.nc3", "x.npy", "x.safetensors", "x.zarr"])
def test_a_file_that_is_closed_when_python_ends_is_there(tmp_path: Path, name: str) -> None:
    assert at_exit(tmp_path, f"keep = Closes({name!r})") == ""
    with penstock.open(tmp_path / name, device="host") as file:
        assert np.array_equal(file["data"][...].to_numpy(), np.arange(3))


def test_a_forked_child_leaves_the_file_of_its_parent(tmp_path: Path) -> None:
    script = f"""
import os, numpy, penstock
with penstock.create({str(tmp_path / "x.npy")!r}, device="host") as file:
    file["data"] = numpy.arange(3)
    child = os.fork()
    if child == 0:
        try:
            with file:
                raise RuntimeError
        except RuntimeError:
            pass
        del file
        os._exit(0)
    os.waitpid(child, 0)
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, check=False).returncode == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.arange(3))


def test_a_forked_child_that_ends_a_file_of_its_parent_is_told(tmp_path: Path) -> None:
    script = f"""
import os, numpy, penstock
with penstock.create({str(tmp_path / "x.npy")!r}, device="host") as file:
    file["data"] = numpy.arange(3)
    child = os.fork()
    if child == 0:
        try:
            file.close()
        except penstock.Error as error:
            os._exit(0 if file.closed and "fork" in str(error) else 2)
        os._exit(3)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
raise SystemExit(code)
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, check=False).returncode == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.arange(3))


def test_the_source_is_kept_until_it_is_written(tmp_path: Path) -> None:
    class Kept(np.ndarray):
        pass

    source = np.arange(200_000.0).view(Kept)
    there = weakref.ref(source)
    with penstock.create(tmp_path / "x.npy", context=slow()) as file:
        pending = file.write_many({"x": source[::2]})
        del source
        assert pending.done or there() is not None
        pending.result()
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.arange(0, 200_000.0, 2))


def test_what_is_gathered_for_a_write_is_gathered_by_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """start_write() returns before that, and no caller waits for it who did not ask."""
    value = np.arange(3 << 20, dtype=np.uint8).reshape(1 << 10, 3 << 10)
    threads = set()

    def copied(*arguments: Any) -> None:
        threads.add(threading.get_ident())
        copy(*arguments)

    copy = _core.copy_boxes
    monkeypatch.setattr(_core, "copy_boxes", copied)
    with penstock.create(tmp_path / "x.h5", device="host") as file:
        dataset = file.create_dataset("x", value.shape, value.dtype, chunk_shape=(1000, 100))
        dataset.start_write(value).result()
        assert len(threads) == 1
        assert threading.get_ident() not in threads
        small = dataset[:10, :200]
        threads.clear()
        dataset.write(np.asarray(small), np.s_[:10, :200])
        assert threads <= {threading.get_ident()}, "a thread takes longer to begin than little takes"
        assert np.array_equal(np.asarray(dataset[...]), value)


@pytest.mark.parametrize(("rows", "by_thread"), [(16, False), (160, True)])
def test_little_is_compressed_without_a_thread(tmp_path: Path, rows: int, by_thread: bool) -> None:
    value = np.arange(rows * 1024, dtype=np.float32).reshape(rows, 1024)
    with penstock.create(tmp_path / "x.h5", device="host") as file:
        dataset = file.create_dataset("x", value.shape, value.dtype, chunk_shape=(16, 1024), compression="gzip")
        writing = dataset.start_write(value)
        writing.result()
        assert (writing._thread is not None) == by_thread
        assert writing.evidence["formats"]["host_encoded_bytes"] == value.nbytes
        assert np.array_equal(np.asarray(dataset[...]), value)
