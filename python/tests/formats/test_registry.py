"""Which format a file is taken for, and what is said when it is none or its library is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock.formats import registry


@pytest.mark.parametrize(
    ("name", "begin", "format"),
    [
        ("x.h5", b"\x89HDF\r\n\x1a\n", "hdf5"),
        ("x", b"\x89HDF\r\n\x1a\n", "hdf5"),
        ("x.bin", bytes(2048) + b"\x89HDF\r\n\x1a\n", "hdf5"),
        ("x.nc", b"\x89HDF\r\n\x1a\n", "netcdf4"),
        ("x.nc", b"CDF\x01", "netcdf3"),
        ("x.nc", b"CDF\x05", "netcdf3"),
        ("x.h5", b"CDF\x02", "netcdf3"),
        ("x.dat", b"\x93NUMPY\x01\x00", "npy"),
        ("x.npy", b"", "npy"),
        ("x.safetensors", b"\x00" * 20, "safetensors"),
        ("X.SafeTensors", b"\x00" * 20, "safetensors"),
    ],
)
def test_the_first_bytes_count_more_than_the_name(tmp_path: Path, name: str, begin: bytes, format: str) -> None:
    (tmp_path / name).write_bytes(begin)
    assert registry.of_file(str(tmp_path / name)).name == format


def test_a_folder_is_a_store_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match=r"zarr\.json/.* of zarr, penstock\.json of raw-history"):
        penstock.open(tmp_path)
    (tmp_path / "zarr.json").write_text("{}")
    assert registry.of_file(str(tmp_path)).name == "zarr"


@pytest.mark.parametrize("name", list(registry.FORMATS))
def test_every_format_has_a_reader_and_a_writer(name: str) -> None:
    for use in ("reader", "writer"):
        assert callable(registry.function(registry.FORMATS[name], use))


def test_an_unknown_file_lists_the_formats(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("words")
    with pytest.raises(penstock.Error) as caught:
        penstock.open(tmp_path / "x.txt")
    for word in (".h5", ".nc", ".npy", ".safetensors", ".zarr", "raw with dtype= and shape=", "format="):
        assert word in str(caught.value)


def test_a_missing_library_is_named_with_the_line_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    script = f"""
import sys
sys.modules["h5py"] = None
import penstock
for call in (
    lambda: penstock.open({str(tmp_path / "x.h5")!r}, device="host"),
    lambda: penstock.save({str(tmp_path / "y.h5")!r}, {{"T": bytearray(4)}}, "host"),
    lambda: penstock.open({str(tmp_path / "absent.h5")!r}, device="host"),
):
    try:
        call()
    except penstock.Error as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    opened, saved, absent = done.stdout.splitlines()
    for line, begin in ((opened, f"open {tmp_path}/x.h5: "), (saved, f"write {tmp_path}/y.h5: ")):
        assert line.startswith(begin) and line.endswith("pip install 'penstock[formats]'"), done.stdout + done.stderr
    assert absent.startswith(f"open {tmp_path}/absent.h5: No such file or directory"), absent


def test_a_format_can_be_named(tmp_path: Path) -> None:
    np.arange(4.0).tofile(tmp_path / "x.npy")
    assert penstock.load(tmp_path / "x.npy", "host", format="raw", dtype="float64").shape == (4,)
    penstock.save(tmp_path / "numbers.dat", np.arange(3), "host", format="npy")
    assert np.load(tmp_path / "numbers.dat").tolist() == [0, 1, 2]
    with pytest.raises(penstock.Error, match="no npy file"):
        penstock.open(tmp_path / "x.npy", format="npy")


def test_options_that_a_format_does_not_have(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4.0))
    with pytest.raises(TypeError, match="checksums"):
        penstock.open(tmp_path / "x.npy", checksums=False)
    with pytest.raises(TypeError, match=r"no option 'devise'; .*; did you mean 'device'\?"):
        penstock.open(tmp_path / "x.npy", devise="host")
    with pytest.raises(TypeError, match="checksums"):
        penstock.open(tmp_path / "x.npy", write=True, checksums=False)
