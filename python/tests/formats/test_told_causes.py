"""Files that cannot be read, and are not damaged: each gets its cause and what to do. Damage stays damage."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock import _core
from penstock.formats.hdf5.faults import fault_of
from penstock.formats.hdf5.reader import Hdf5
from penstock.formats.reading.mover import Mover

h5py = pytest.importorskip("h5py")

WRITER = """
import sys, h5py
file = h5py.File(sys.argv[1], "r+", libver="latest")
if sys.argv[2] == "swmr":
    file.swmr_mode = True
print("open", flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


def said_of(path: Path, dataset: str = "d") -> ps.Error:
    with pytest.raises(ps.Error) as caught, ps.open(path, device="host") as file:
        file[dataset].read()
    return caught.value


def plain(path: Path) -> Path:
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("d", data=np.arange(10), chunks=(5,), maxshape=(None,))
    return path


@contextmanager
def written_by_another(path: Path, how: str) -> Iterator[None]:
    """While a program has it open for writing; it ends without closing it."""
    command = [sys.executable, "-c", WRITER, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        try:
            yield
        finally:
            writer.communicate("")


@pytest.mark.parametrize(("how", "words"), [("swmr", "a SWMR writer"), ("plain", "a program")])
def test_a_file_that_is_marked_open_for_writing(how: str, words: str, tmp_path: Path) -> None:
    path = plain(tmp_path / "x.h5")
    with written_by_another(path, how):
        during = said_of(path)
    after = said_of(path)
    for error in (during, after):
        assert error.code == "io_error"
        assert "damaged" not in str(error)
        assert "open for writing" in error.cause
    assert words in after.cause
    assert "h5clear -s" in after.advice
    with pytest.raises(ps.Error, match="h5clear -s"):
        ps.open(path, device="host", write=True)
    if shutil.which("h5clear"):
        subprocess.run(["h5clear", "-s", str(path)], check=True)
        assert ps.load(path, "host")["d"].shape == (10,)


def test_a_file_that_is_locked(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.h5")
    with path.open("rb+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        error = said_of(path)
    assert (error.code, error.advice) == ("io_error", "wait until it is closed there")


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_parts_of_a_file_that_a_driver_makes_one_of(version: str, tmp_path: Path) -> None:
    for name, options in (("member%d.h5", {"driver": "family", "memb_size": 4096}), ("split", {"driver": "split"})):
        with h5py.File(tmp_path / name, "w", libver=version, **options) as file:
            file["d"] = np.arange(5000.0)
    family, split = said_of(tmp_path / "member0.h5"), said_of(tmp_path / "split-m.h5")
    assert "family driver" in family.cause
    assert "h5repart" in family.advice
    assert "multi driver" in split.cause
    assert {family.code, split.code} == {"unsupported"}


def test_an_external_file_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.arange(10.0).tofile("raw1.bin")
    with h5py.File("x.h5", "w") as file:
        file.create_dataset("d", (20,), "f8", external=[("raw1.bin", 0, 80), ("raw2.bin", 0, 80)])
        file["other"] = np.arange(3)
    error = said_of(Path("x.h5"))
    assert error.code == "not_found"
    assert "external file 'raw2.bin': No such file" in error.cause
    assert "HDF5_EXTFILE_PREFIX" in error.advice
    with ps.open("x.h5", device="host") as file:
        assert np.array_equal(file["d"][:10], np.arange(10.0)), "what lies in the other file is read"
        assert int(file["other"][2]) == 2
    np.arange(5.0).tofile("raw2.bin")
    with ps.open("x.h5", device="host") as file:
        assert np.array_equal(file["d"][:15], [*range(10), *range(5)])
        assert not file.evidence()["notes"]
        assert not file["d"][15:].to_numpy().any()
        assert "'raw2.bin' has 40 bytes, the read needs 80: the rest is zeros" in file.evidence()["notes"][0]
        with pytest.raises(ps.Error, match="has 40 bytes"):
            file["d"].read(strict=True)


def cut(path: Path, bytes: int) -> None:
    os.truncate(path, path.stat().st_size - bytes)


def made(path: Path) -> Path:
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["d"] = np.arange(100.0)
    else:
        ps.save(path, np.arange(100.0) if path.suffix == ".npy" else {"d": np.arange(100.0)})
    return path


@pytest.mark.parametrize("suffix", ["h5", "nc3", "npy", "safetensors"])
def test_a_file_that_was_cut_short_says_what_it_has_and_needs(suffix: str, tmp_path: Path) -> None:
    path = made(tmp_path / f"x.{suffix}")
    whole = path.stat().st_size
    cut(path, 100)
    error = said_of(path, "data" if suffix == "npy" else "d")
    assert error.code == "damaged"
    assert error.advice == "it was cut short: copy or download it again"
    numbers = {"h5": (whole - 100, whole), "npy": (whole - 100, 800), "nc3": (whole - 100,), "safetensors": (700, 800)}
    assert all(str(number) in error.cause for number in numbers[suffix]), error.cause


@pytest.mark.parametrize("suffix", ["h5", "nc", "npy", "safetensors"])
@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (b"", "it is empty; copy or download it again"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS.*; git lfs pull"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "a web page.*; download it again"),
    ],
)
def test_what_is_no_file_of_the_format_is_told_as_what_it_is(
    suffix: str, begin: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(begin)
    with pytest.raises(ps.Error, match=words) as caught:
        ps.open(path, device="host")
    assert "damaged" not in str(caught.value)


def test_an_npy_file_that_ends_in_its_first_bytes_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.arange(3.0))
    begin = (tmp_path / "x.npy").read_bytes()
    for native in (True, False):
        if not native:
            monkeypatch.setattr(ps._core, "read_header", lambda *_: None)
        for length in range(6, 10):
            (tmp_path / "x.npy").write_bytes(begin[:length])
            error = said_of(tmp_path / "x.npy")
            assert error.code == "damaged" and error.cause.endswith(f"begins with 10 bytes, the file has {length}")
            assert error.advice == "it was cut short: copy or download it again"


def test_zeros_in_place_of_a_file_are_damage(tmp_path: Path) -> None:
    (tmp_path / "x.h5").write_bytes(bytes(5000))
    assert said_of(tmp_path / "x.h5").code == "damaged"


def test_versions_that_are_not_known_yet(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.h5")
    raw = bytearray(path.read_bytes())
    raw[8] = 9  # of the superblock
    path.write_bytes(raw)
    assert f"a newer HDF5 than {h5py.version.hdf5_version} wrote the file" in said_of(path).advice
    (tmp_path / "x.nc").write_bytes(b"CDF\7" + bytes(100))
    error = said_of(tmp_path / "x.nc")
    assert error.code == "unsupported"
    assert "classic netCDF has" in error.cause


def test_what_the_system_refused_is_no_damage() -> None:
    """HDF5 puts the number of the error into its text."""
    text = (
        "Can't synchronously read data (file read failed: time = now, errno = 5, error message = 'Input/output error')"
    )
    error = fault_of("x.h5", OSError(text), "d")
    assert (error.code, error.system_code, error.cause) == ("io_error", errno.EIO, "Input/output error")
    assert "see to the disk" in error.advice


def test_damage_is_still_called_damage(tmp_path: Path) -> None:
    path: Callable[[], Path] = lambda: tmp_path / "x.h5"  # noqa: E731
    with h5py.File(path(), "w") as file:
        file.create_dataset("d", data=np.arange(1000), chunks=(1000,), compression="gzip")
    raw = bytearray(path().read_bytes())
    at = raw.index(b"\x78\x5e") if b"\x78\x5e" in raw else len(raw) - 400
    raw[at : at + 40] = bytes(40)
    path().write_bytes(raw)
    error = said_of(path())
    assert error.code == "damaged"
    assert "its chunk at [0] is damaged: filter deflate" in error.cause


def test_too_little_memory_is_no_damage_and_no_error_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = OSError("Can't synchronously read data (memory allocation failed for raw data chunk)")
    assert fault_of("x.h5", said, "a").code == "out_of_memory"
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("huge", shape=(1 << 61,), dtype="f8", chunks=(1024,))
        file.create_dataset("packed", data=np.arange(1000.0), chunks=(100,), compression="gzip")

    def fails(*_: object) -> None:
        raise MemoryError

    with ps.open(tmp_path / "x.h5", device="host") as file:
        with pytest.raises(ps.Error, match=f"{1 << 64} bytes") as told:
            file["huge"][...]
        assert told.value.code == "out_of_memory"
        for owner, name in ((_core, "decode_chunks"), (Hdf5, "decode")):
            monkeypatch.setattr(owner, name, fails)
            with pytest.raises(ps.Error, match="packed") as told:
                file["packed"].read(..., strict=False)  # with options it is no small read
            assert told.value.code == "out_of_memory"
            monkeypatch.setattr(Mover, "pipeline", lambda *_: "")
