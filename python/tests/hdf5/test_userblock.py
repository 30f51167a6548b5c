"""HDF5 files with a user block before them (as MATLAB writes), whose addresses count from behind that block."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

import penstock as ps  # noqa: E402
from penstock.formats.hdf5 import metadata as hdf5_metadata, reader as hdf5_reader  # noqa: E402

BLOCKS = [0, 512, 4096]
LIBVERS = ["earliest", "v108", "latest"]
FILLS = [None, 9]


def make_unwritten(path: Path, block: int, libver: str, fill: int | None) -> None:
    """`never` was created and not written, so it has no space; a user block holds text."""
    with h5py.File(path, "w", libver=libver, userblock_size=block) as file:
        file.create_dataset("never", (200,), "i4", fillvalue=fill)
        file.create_dataset("chunked", (1000,), "i4", chunks=(100,), fillvalue=fill)
        file["other"] = np.arange(1000)
    if block:
        with path.open("r+b") as raw:
            raw.write(b"MATLAB 7.3".ljust(block, b"m"))


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_dataset_without_space_reads_as_its_fill_value(
    tmp_path: Path, block: int, libver: str, fill: int | None
) -> None:
    path = tmp_path / "x.h5"
    make_unwritten(path, block, libver, fill)
    with h5py.File(path) as file:
        expected = {name: file[name][...] for name in file}
    with ps.open(path, device="host") as file:
        assert file["never"].extents() == []
        assert file["other"].extents()[0].offset_bytes > block
        for name, values in expected.items():
            assert np.array_equal(file[name][...].to_numpy(), values)
    assert np.array_equal(ps.load(path, "host")["never"].to_numpy(), expected["never"])


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_write_to_a_dataset_without_space_is_refused_and_harms_nothing(
    tmp_path: Path, block: int, libver: str, fill: int | None
) -> None:
    path = tmp_path / "x.h5"
    make_unwritten(path, block, libver, fill)
    before = path.read_bytes()
    with ps.open(path, write=True, device="host") as file:
        with pytest.raises(ps.Error, match=r"no place in the file yet") as caught:
            file["never"][...] = np.arange(200, dtype="i4")
        assert caught.value.code == "unsupported"
    assert path.read_bytes() == before


@pytest.mark.parametrize("block", BLOCKS)
def test_what_has_space_is_written_behind_the_user_block(tmp_path: Path, block: int) -> None:
    path = tmp_path / "x.h5"
    make_unwritten(path, block, "latest", 9)
    with ps.open(path, write=True, device="host") as file:
        file["other"][...] = np.arange(1000)[::-1].copy()
        file.create_dataset("fresh", (50,), "f4").write(np.arange(50, dtype="f4"))
        file.attrs["title"] = "added"
    with h5py.File(path) as file:
        assert np.array_equal(file["other"][...], np.arange(1000)[::-1])
        assert np.array_equal(file["fresh"][...], np.arange(50))
        assert np.array_equal(file["never"][...], np.full(200, 9))
    assert path.read_bytes()[:block] == b"MATLAB 7.3".ljust(block, b"m")[:block]


@pytest.mark.parametrize("block", [0, 512, 4096])
@pytest.mark.parametrize("address", [(1 << 64) - 256, (1 << 63) - 8])
def test_an_address_outside_of_the_file_is_damage(tmp_path: Path, block: int, address: int) -> None:
    path = tmp_path / "x.h5"
    make_unwritten(path, block, "earliest", None)
    with h5py.File(path) as file:
        layout = struct.pack("<QQ", file["other"].id.get_offset() - block, 8000)
    raw = path.read_bytes()
    assert raw.count(layout) == 1
    path.write_bytes(raw.replace(layout, struct.pack("<QQ", address, 8000)))
    with ps.open(path, device="host") as file:
        with pytest.raises(ps.Error, match="'other'") as caught:
            file["other"][...]
        assert caught.value.code == "damaged"


@pytest.mark.parametrize(
    ("offset", "cause"),
    [(3840, "begin at byte 3840, inside the user block of 4096"), ((1 << 63) - 8, "reach to byte .*the file ends at")],
)
def test_places_outside_of_the_file_are_refused_whatever_hdf5_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int, cause: str
) -> None:
    path = tmp_path / "x.h5"
    make_unwritten(path, 4096, "latest", None)
    monkeypatch.setattr(hdf5_reader, "_parsed", lambda *_: None)  # HDF5 is asked
    monkeypatch.setattr(hdf5_metadata, "place_of", lambda _dataset: offset)
    with ps.open(path, device="host") as file, pytest.raises(ps.Error, match=f"'other'.*{cause}"):
        file["other"][...]
