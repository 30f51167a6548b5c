"""Files that end early, and system calls that move fewer bytes than they were asked for: nothing that was not read is
handed out, nothing that was not written is published."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock._files import descriptor
from penstock.formats.simple import single

ARRAY = np.arange(50_000, dtype="<f4").reshape(100, 500)
CHANGED_BYTES = 12_345  # left of a file that is cut


class CutsWhenItAllocates(ps.Context):
    """A context in which the file is cut short, or grows, after its size was asked and before it is read."""

    def __init__(self, path: Path, bytes: int) -> None:
        super().__init__("host")
        self.path, self.bytes = path, bytes

    def allocate(self, *arguments: Any, **options: Any) -> ps.Buffer:
        os.truncate(self.path, self.bytes)
        return super().allocate(*arguments, **options)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.bin"
    path.write_bytes(os.urandom(3 << 20))
    return path


@pytest.mark.parametrize("path", ["auto", "buffered", "direct", "mmap", "uring-buffered"])
@pytest.mark.parametrize("bytes", [0, CHANGED_BYTES, 2 << 20])
def test_a_file_cut_while_it_is_loaded_is_an_error(plain: Path, path: str, bytes: int) -> None:
    with pytest.raises(ps.Error, match=f"ended {(3 << 20) - bytes} bytes early") as caught:
        ps.load(plain, context=CutsWhenItAllocates(plain, bytes), path=path)
    assert caught.value.code == "end_of_file"
    assert caught.value.file == str(plain)
    assert caught.value.length_bytes == 3 << 20


def test_a_file_cut_while_a_context_of_its_own_loads_it_is_an_error(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocate = ps.Context.allocate

    def cut(self: ps.Context, *arguments: Any, **options: Any) -> ps.Buffer:
        os.truncate(plain, CHANGED_BYTES)
        return allocate(self, *arguments, **options)

    plain.write_bytes(bytes(5 << 20))
    monkeypatch.setattr(ps.Context, "allocate", cut)
    with pytest.raises(ps.Error) as caught:
        ps.load(plain, "host", path="buffered")  # by a transfer
    assert caught.value.code == "end_of_file"


def test_a_file_that_grows_while_it_is_loaded_gives_what_it_had(plain: Path) -> None:
    before = plain.read_bytes()
    loaded = ps.load(plain, context=CutsWhenItAllocates(plain, 4 << 20))
    assert bytes(memoryview(loaded)) == before


FORMATS: dict[str, Callable[[], Any]] = {
    "x.npy": lambda: ARRAY,
    "x.safetensors": lambda: {"a": ARRAY, "b" * 300: ARRAY[:3]},
    "x.h5": lambda: {"a": ARRAY, "g/b": ARRAY[:3]},
    "x.nc": lambda: {"a": ARRAY},
    "x.zarr": lambda: {"a": ARRAY},
    "x.cdf5.nc": lambda: {"a": ARRAY},
}


def as_dict(loaded: Any) -> dict[str, np.ndarray]:
    arrays = loaded if isinstance(loaded, dict) else {"data": loaded}
    return {name: np.asarray(array) for name, array in arrays.items()}


@pytest.fixture
def short_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short counts of the calls that Python makes; never more than 100 bytes, as many as a slow server would give."""
    pread, pwrite = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda file, bytes, offset: pread(file, min(bytes, 100), offset))
    monkeypatch.setattr(os, "pwrite", lambda file, content, offset: pwrite(file, memoryview(content)[:100], offset))


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_reads_and_writes_its_metadata_by_short_counts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    data = FORMATS[name]()
    options = {"format": "netcdf3"} if "cdf5" in name else {}
    ps.save(tmp_path / ("whole_" + name), data, "host", **options)
    wanted = as_dict(ps.load(tmp_path / ("whole_" + name), "host", **options))
    request.getfixturevalue("short_counts")
    ps.save(tmp_path / name, data, "host", **options)
    written_short = as_dict(ps.load(tmp_path / name, "host", **options))
    monkeypatch.undo()
    written = as_dict(ps.load(tmp_path / name, "host", **options))
    assert wanted.keys() == written.keys() == written_short.keys()
    for name in wanted:
        np.testing.assert_array_equal(written[name], wanted[name])
        np.testing.assert_array_equal(written_short[name], wanted[name])


def test_a_read_is_shorter_only_where_the_file_ends(plain: Path, short_counts: None) -> None:
    with plain.open("rb") as file:
        assert descriptor.read_at(file.fileno(), 1000, 5) == plain.read_bytes()[5:1005]
        assert len(descriptor.read_at(file.fileno(), 1000, (3 << 20) - 250)) == 250
        assert descriptor.read_at(file.fileno(), 1000, 3 << 20) == b""


def test_a_write_that_stops_is_an_error(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with plain.open("r+b") as file, pytest.raises(OSError, match="wrote nothing of 10 bytes"):
        descriptor.write_at(file.fileno(), b"0123456789", 0)


def test_a_file_cut_before_its_first_element_after_it_was_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.arange(600_000.0))
    described = single.need_same

    def cut(*which: Any) -> Any:
        found = described(*which)
        os.truncate(tmp_path / "x.npy", 50)
        return found

    with ps.open(tmp_path / "x.npy", device="host") as file:
        monkeypatch.setattr(single, "need_same", cut)
        with pytest.raises(ps.Error) as told:
            file["data"].read(path="buffered")  # by a transfer
    assert told.value.code == "end_of_file"
