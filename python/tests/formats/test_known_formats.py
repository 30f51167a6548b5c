"""A file that says itself what it holds is never taken for elements or bytes, unless the caller insists; names of other
machines are none of files."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import _open, gpu, hmatrix
from penstock._shared import shared_context
from penstock.formats import registry

VALUES = np.arange(32_000, dtype="<f4").reshape(1000, 32)
SUFFIXES = {
    "npy": ".npy",
    "hdf5": ".h5",
    "netcdf4": ".nc",
    "netcdf3": ".nc3",
    "safetensors": ".safetensors",
    "zarr": ".zarr",
    "hmat": ".hmat",
}


def make(folder: Path, format: str) -> Path:
    path = folder / f"feat{SUFFIXES[format]}"
    if format == "hmat":
        ps.hmatrix.assemble(ps.hmatrix.shape("sphere", 80), store=path, eps=1e-2).close()
    elif format == "npy":
        np.save(path, VALUES)
    else:
        ps.save(path, {"feat": VALUES}, "host", format=format)
    return path


def state(path: Path) -> list[str]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [hashlib.sha256(one.read_bytes()).hexdigest() for one in files if one.is_file()]


TAKES_ELEMENTS: dict[str, Callable[[Path], Any]] = {
    "gpu.open": lambda path: ps.gpu.open(path, "float32", (-1, 32), device="host"),
    "gpu.open for writing": lambda path: ps.gpu.open(path, "float32", (-1, 32), mode="r+", device="host"),
    "gpu.open_many": lambda path: ps.gpu.open_many([(path, "float32")], device="host"),
    "gpu.open of a list": lambda path: ps.gpu.open([path, path], "float32", device="host"),
    "open": lambda path: ps.open(path, dtype="float32", device="host"),
    "open for writing": lambda path: ps.open(path, dtype="float32", write=True, device="host"),
    "load": lambda path: ps.load(path, "host", dtype="float32"),
}


_HDF5 = b"\x89HDF\r\n\x1a\n"


@pytest.mark.parametrize("start", [0, *(512 << power for power in range(12))])
def test_hdf5_is_found_wherever_it_may_begin(start: int, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(bytes(start) + _HDF5 + bytes(100))
    assert registry.content_of(str(tmp_path / "there")) == "hdf5"
    (tmp_path / "beside").write_bytes(bytes(start + 1) + _HDF5 + bytes(100))
    assert registry.content_of(str(tmp_path / "beside")) is None
    (tmp_path / "cut").write_bytes(bytes(start) + _HDF5[:7])
    assert registry.content_of(str(tmp_path / "cut")) is None
    assert registry.load_plain(shared_context("host"), str(tmp_path / "there")) is None
    for name in ("beside", "cut"):
        loaded = registry.load_plain(shared_context("host"), str(tmp_path / name))
        assert loaded is not None, "in one call of the core"
        assert bytes(memoryview(loaded)) == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(("begin", "format"), [(b"\x93NUMPY", "npy"), (b"CDF\x05", "netcdf3"), (b"CDF\x09", "hdf5")])
def test_what_comes_first_in_a_file_says_its_format(begin: bytes, format: str, tmp_path: Path) -> None:
    (tmp_path / "both").write_bytes(begin.ljust(512, b"\0") + _HDF5 + bytes(100))
    assert registry.content_of(str(tmp_path / "both")) == format
    json = (600).to_bytes(8, "little") + b"{" + bytes(503) + _HDF5
    (tmp_path / "like").write_bytes(json.ljust(607, b"\0") + b"}")
    assert registry.content_of(str(tmp_path / "like")) == "hdf5", "what only looks like safetensors comes last"
    (tmp_path / "like").write_bytes(b"-".join(json.split(_HDF5)).ljust(607, b"\0") + b"}")
    assert registry.content_of(str(tmp_path / "like")) == "safetensors"


NAMES = (
    *("/a/x.h5", "/x.h5", "/a/.h5", "/a/x.H5", "/a/x", "/", "/a/", "/a/x.h5/", "//a/x.h5", "/a//x.h5", "/a/./x.h5"),
    *("/a/../x.h5", "/a/.b/x.h5", "/a/..x.h5", "/a/x..h5", "/a.h5/x", "/a/x.h5/.", "/a/ x.h5", "/a/x\n"),
    *("/a/\u00e9.npy", "a/x.h5", "./x.h5", "x.nc", ".nc", "x.tar.zarr", "/a/http://b/x.h5", "/a/x.safetensors"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_same_by_every_way_to_look_at_it(name: str) -> None:
    """Most names are known for whole ones, and their suffixes found, in less time than others."""
    assert _open._place(name, "open") == os.path.abspath(name)  # noqa: PTH100 - a Path's keeps ".."
    suffix = os.path.splitext(name.rstrip("/"))[1].lower()  # noqa: PTH122 - a Path drops a last "."
    known = [one for one in registry.FORMATS.values() if suffix in one.suffixes]
    assert registry.by_suffix(name) is (known[0] if known else None)


@pytest.mark.parametrize("how", TAKES_ELEMENTS)
@pytest.mark.parametrize("format", SUFFIXES)
@pytest.mark.parametrize("named", [True, False], ids=["suffix", "no suffix"])
def test_elements_are_told_of_raw_files_only(format: str, how: str, named: bool, tmp_path: Path) -> None:
    path = make(tmp_path, format)
    path = path if named else path.rename(tmp_path / "features")
    before = state(path)
    wanted = "hdf5" if format == "netcdf4" and not named else format
    with pytest.raises((TypeError, ps.Error)) as caught:
        TAKES_ELEMENTS[how](path)
    assert state(path) == before
    if path.is_file():
        assert isinstance(caught.value, TypeError)
        assert f"is {wanted}" in str(caught.value)
        assert "format='raw'" in str(caught.value)


def test_a_caller_who_insists_gets_the_bytes(tmp_path: Path) -> None:
    path = make(tmp_path, "npy")
    size = path.stat().st_size // 4
    with ps.gpu.open(path, "float32", (size,), format="raw", device="host") as rows:
        assert len(rows) == size
    with ps.open(path, format="raw", dtype="float32", device="host") as file:
        assert file["data"].shape == (size,)
    with ps.gpu.open(path, format="npy", device="host") as rows:
        assert rows.shape == VALUES.shape
    with pytest.raises(TypeError, match="not for format='npy'"):
        ps.gpu.open(path, "float32", format="npy", device="host")


def test_raw_files_are_taken_as_before(tmp_path: Path) -> None:
    VALUES.tofile(tmp_path / "rows.bin")
    with ps.gpu.open(tmp_path / "rows.bin", "float32", (-1, 32), device="host") as rows:
        assert rows.shape == VALUES.shape
    assert ps.load(tmp_path / "rows.bin", "host", dtype="float32").shape == (32_000,)


def user_block(path: Path) -> None:
    import h5py

    with h5py.File(path, "w", userblock_size=65_536) as file:
        file["feat"] = VALUES


def of(format: str) -> Callable[[Path], None]:
    return lambda path: make(path.parent, format).rename(path) and None


CONTENTS = {
    "x.nxs": of("hdf5"),
    "x.mat": user_block,
    "x.h5ad": of("hdf5"),
    "x.nc4": of("netcdf4"),
    "x.cdf": of("netcdf3"),
    "x.hdf": of("hdf5"),
    "x.he5": of("hdf5"),
    "x": of("netcdf3"),
    "x.bin": of("safetensors"),
    "x.dat": of("npy"),
    "x.store": of("zarr"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_load_opens_what_open_opens(name: str, tmp_path: Path) -> None:
    CONTENTS[name](tmp_path / name)
    with ps.open(tmp_path / name, device="host") as file:
        found = next(iter(file))
        np.testing.assert_array_equal(np.asarray(file[found]), VALUES)
    loaded = ps.load(tmp_path / name, "host")
    loaded = loaded[found] if isinstance(loaded, dict) else loaded
    np.testing.assert_array_equal(np.asarray(loaded), VALUES)


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"{" * 40,
        (10).to_bytes(8, "little") + b"{not closed",
        b"\x93NUMP",
        (1 << 40).to_bytes(8, "little") + b"{}",
    ],
)
def test_load_gives_the_bytes_of_what_says_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    assert bytes(memoryview(ps.load(tmp_path / "x.bin", "host"))) == content
    assert registry.content_of(str(tmp_path / "x.bin")) is None


URLS = ["https://example.org/x.h5", "s3://bucket/x.zarr", "gs://b/x", "file:///tmp/x.npy", "HTTP://example.org/x"]
BY_NAME: dict[str, Callable[[str], Any]] = {
    "open": ps.open,
    "load": ps.load,
    "load of bytes": lambda name: ps.load(name + ".bin"),
    "create": lambda name: ps.create(name, format="npy"),
    "save": lambda name: ps.save(name, {"x": VALUES}, format="hdf5"),
    "save of bytes": lambda name: ps.save(name + ".bin", b"x"),
    "gpu.open": lambda name: ps.gpu.open(name, device="host"),
    "gpu.open of raw": lambda name: ps.gpu.open(name, "float32", device="host"),
    "Context.open": lambda name: ps.Context("host").open(name),
    "Context.create": lambda name: ps.Context("host").create(name),
}


@pytest.mark.parametrize("how", BY_NAME)
@pytest.mark.parametrize("url", URLS)
def test_a_url_is_no_name_of_a_file(url: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ps.Error, match="is a URL") as caught:
        BY_NAME[how](url)
    assert caught.value.code == "unsupported"
    assert caught.value.file.startswith(url)
    assert ("without file://" if url.startswith("file") else "download it") in caught.value.advice
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("read",), ("write", "--bytes", "1MiB")])
def test_commands_refuse_urls(penstock: Any, command: tuple[str, ...]) -> None:
    ran = penstock(command[0], "https://example.org/x", *command[1:])
    assert ran.code == 1
    assert "is a URL" in ran.err


NO_NAMES: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, TypeError, "the name of a file is a str, bytes or path, not NoneType"),
    "3": (3, TypeError, "the name of a file is a str, bytes or path, not int"),
    "file": (io.BytesIO(b"x"), TypeError, "not BytesIO; give the name of that file"),
    "empty": ("", ValueError, "the name of a file is empty"),
    "zero": ("a\0b", ValueError, r"the name 'a\\x00b' holds a zero character"),
    "half": ("a\ud800", ValueError, r"the name 'a\\ud800' holds '\\ud800', which the system's .* cannot encode"),
}


@pytest.mark.parametrize("case", NO_NAMES)
def test_what_is_no_name_of_a_file_is_refused_alike_by_all_that_take_one(case: str) -> None:
    name, kind, words = NO_NAMES[case]
    context, values = ps.Context("host"), np.ones(3, "f4")
    for use in (
        lambda: ps.open(name),
        lambda: ps.open(name, dtype="f4", shape=(-1,)),
        lambda: ps.create(name),
        lambda: ps.load(name),
        lambda: ps.load(name, format="npy"),
        lambda: ps.save(name, values),
        lambda: ps.save(name, values, format="npy"),
        lambda: context.open(name),
        lambda: context.create(name),
        lambda: gpu.open(name, context=context),
        lambda: hmatrix.info(name),
        lambda: hmatrix.read_mesh(name),
    ):
        with pytest.raises(kind, match=words):
            use()


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("rb", r"open\('x.h5'\) reads"),
        ("r+", "write=True"),
        ("a", "write=True.*create"),
        ("w", "create"),
        (3, "create"),
    ],
)
def test_a_mode_is_refused_with_what_to_write_in_its_place(mode: Any, words: str) -> None:
    for open_it in (lambda: ps.open("x.h5", mode), lambda: ps.open("x.h5", mode=mode)):
        with pytest.raises(TypeError, match=f"takes no mode but 'r', .*here {re.escape(repr(mode))}: .*{words}"):
            open_it()
    with pytest.raises(TypeError, match="create\\(\\) takes no mode.*always makes a new file"):
        ps.create("x.h5", mode)


def test_the_mode_r_reads_as_none_does(tmp_path: Path) -> None:
    name = tmp_path / "x.h5"
    ps.save(name, {"T": np.arange(3)}, "host")
    for options in ({"mode": "r"}, {}):
        with ps.open(name, "r", device="host") if not options else ps.open(name, device="host", **options) as file:
            assert file.mode == "r" and not file.writable and file["T"][1].item() == 1
    with pytest.raises(TypeError, match="mode='r' or write=True, not both"):
        ps.open(name, "r", write=True, device="host")


@pytest.mark.parametrize("name", ["x.mat", "x.bin"])
def test_a_matlab_file_is_neither_bytes_nor_elements_unless_it_is_said_to_be(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x01IM" + bytes(200))
    for use in (lambda: ps.load(path, "host"), lambda: ps.open(path, device="host")):
        with pytest.raises(ps.Error, match=f"{name}: it is a MATLAB 5 file.*; scipy.io.loadmat reads it; format='raw'"):
            use()
    with pytest.raises(TypeError, match="scipy.io.loadmat reads it; format='raw'"):
        ps.open(path, dtype="f4", device="host")
    assert np.asarray(ps.load(path, "host", format="raw", dtype="u1", shape=(-1,))).tobytes() == path.read_bytes()


def test_an_archive_is_named_with_what_to_do(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    (tmp_path / "x.npz").rename(tmp_path / "store.zip")
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    for name in ("x.npz", "store.zip"):
        with pytest.raises(ps.Error, match=r"it is a ZIP archive; unpack it first$"):
            ps.open(tmp_path / name, device="host")
        assert bytes(ps.load(tmp_path / name, "host"))[:2] == b"PK"
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8b\x08" + bytes(100))
    with pytest.raises(ps.Error, match=r"it is compressed by gzip; gunzip it first$"):
        ps.open(tmp_path / "x.gz", device="host")
