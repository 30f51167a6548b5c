"""One dataset that cannot be read hides no other: it is listed with its reason, and the rest is read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")

GOOD = np.arange(6.0)


def break_header(path: Path, name: str) -> None:
    """The object that the name leads to has no header any more."""
    with h5py.File(path) as file:
        at = h5py.h5o.get_info(file.id, name.encode()).addr
    raw = bytearray(path.read_bytes())
    raw[at : at + 8] = b"\xaa" * 8
    path.write_bytes(raw)


def hdf5(path: Path, add: Callable[[Any], None]) -> Path:
    with h5py.File(path, "w") as file:
        file["a"] = GOOD
        add(file)
        file["group/z"] = GOOD
    return path


def unknown_type(folder: Path) -> tuple[Path, str]:
    def add(file: Any) -> None:
        h5py.h5d.create(file.id, b"bad", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((2,)))

    return hdf5(folder / "x.h5", add), "time type"


def missing_filter(folder: Path) -> tuple[Path, str]:
    from hdf5_kit import with_filter

    path = folder / "x.h5"
    with_filter(folder / "other.h5", 32019)
    with h5py.File(folder / "other.h5") as other:
        return hdf5(path, lambda file: other.copy("d", file, "bad")), "lacks HDF5 filter jpeg"


def missing_external(folder: Path) -> tuple[Path, str]:
    gone = [(str(folder / "gone.bin"), 0, 48)]
    return hdf5(folder / "x.h5", lambda file: file.create_dataset("bad", (6,), "f8", external=gone)), "gone.bin"


def broken_dataset(folder: Path) -> tuple[Path, str]:
    path = hdf5(folder / "x.h5", lambda file: file.create_dataset("bad", data=GOOD))
    break_header(path, "bad")
    return path, "header"


def broken_group(folder: Path) -> tuple[Path, str]:
    path = hdf5(folder / "x.h5", lambda file: file.create_dataset("bad/inside", data=GOOD))
    break_header(path, "bad")
    return path, "header"


def broken_chunk(folder: Path) -> tuple[Path, str]:
    path = hdf5(folder / "x.h5", lambda file: file.create_dataset("bad", data=GOOD, chunks=(6,), fletcher32=True))
    with h5py.File(path) as file:
        at = file["bad"].id.get_chunk_info(0).byte_offset
    raw = bytearray(path.read_bytes())
    raw[at] ^= 255
    path.write_bytes(raw)
    return path, ""


def netcdf4(folder: Path) -> tuple[Path, str]:
    netCDF4 = pytest.importorskip("netCDF4")
    path = folder / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 6)
        for name in ("a", "bad", "group/z"):
            file.createVariable(name, "f8", ("x",))[:] = GOOD
    break_header(path, "bad")
    return path, "header"


def netcdf3(folder: Path) -> tuple[Path, str]:
    path = folder / "x.nc3"
    with ps.create(path, device="host") as file:
        for name in ("a", "group_z", "bad"):
            file[name] = GOOD
    with path.open("rb+") as raw:
        raw.truncate(path.stat().st_size - 8)
    return path, ""


def zarr(folder: Path) -> Path:
    path = folder / "x.zarr"
    with ps.create(path, device="host") as file:
        for name in ("a", "bad", "group/z"):
            file[name] = GOOD
    return path


def zarr_codec(folder: Path) -> tuple[Path, str]:
    path = zarr(folder)
    document = json.loads((path / "bad/zarr.json").read_text())
    document["codecs"].append({"name": "unheard_of"})
    (path / "bad/zarr.json").write_text(json.dumps(document))
    return path, "unheard_of"


def zarr_document(folder: Path) -> tuple[Path, str]:
    path = zarr(folder)
    (path / "bad/zarr.json").write_text("{")
    return path, "not JSON"


def zarr_group(folder: Path) -> tuple[Path, str]:
    """Beside consolidated metadata that are good; what lies below it is found all the same."""
    path = zarr(folder)
    nodes = {name: json.loads((path / name / "zarr.json").read_text()) for name in ("a", "bad", "group", "group/z")}
    root = json.loads((path / "zarr.json").read_text())
    root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": nodes}
    (path / "zarr.json").write_text(json.dumps(root))
    (path / "bad/inside").mkdir()
    (path / "bad/zarr.json").write_text('{"zarr_format": 3, "node_type": "neither"}')
    return path, "node_type"


def zarr_chunk(folder: Path) -> tuple[Path, str]:
    path = zarr(folder)
    (path / "bad/c/0").write_bytes(b"short")
    return path, ""


CASES = [
    *(unknown_type, missing_filter, missing_external, broken_dataset, broken_group, broken_chunk),
    *(netcdf4, netcdf3, zarr_codec, zarr_document, zarr_group, zarr_chunk),
]


@pytest.mark.parametrize("make", CASES)
def test_it_is_listed_with_its_reason(make: Callable[[Path], tuple[Path, str]], tmp_path: Path) -> None:
    path, why = make(tmp_path)
    with ps.open(path, device="host") as file:
        names = list(file)
        assert len(names) == 3
        assert {"a", "bad"} <= set(names)
        assert "bad" in file
        lines = repr(file).splitlines()[1:]
        assert len(lines) == 3
        bad = next(line for line in lines if line.startswith("  bad  "))
        assert why in bad
        assert ("cannot be read" in bad) == bool(why), "what only reading tells is not told before"
        assert sum("cannot be read" in line for line in lines) == bool(why)
        with pytest.raises(ps.Error):
            file["bad"].read()
        for name in set(names) - {"bad"}:
            assert np.array_equal(file[name][...], GOOD), name


@pytest.mark.parametrize("make", CASES)
def test_load_reads_the_others(make: Callable[[Path], tuple[Path, str]], tmp_path: Path) -> None:
    path, why = make(tmp_path)
    with pytest.warns(ps.UnreadableWarning, match=r"left out, because they cannot be read: bad \(") as caught:
        found = ps.load(path, "host")
    assert why in str(caught[0].message)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert len(found) == 2
    assert all(np.array_equal(array, GOOD) for array in found.values())
    assert list(found.unreadable) == ["bad"]
    with pytest.raises(ps.Error):
        found["bad"]
    with pytest.raises(KeyError):
        found["nothing"]
    with ps.open(path, device="host") as file, pytest.warns(ps.UnreadableWarning) as again:
        file.load()
    assert again[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(ps.load(path, "host", names=["a"])) == ["a"]
        with pytest.raises(ps.Error):
            ps.load(path, "host", names=["a", "bad"])
        with pytest.raises(ps.Error):
            ps.load(path, "host", strict=True)


@pytest.mark.parametrize("make", CASES)
def test_xarray_opens_the_others(make: Callable[[Path], tuple[Path, str]], tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path, why = make(tmp_path)
    if not why:
        with xarray.open_dataset(path, engine="penstock") as data:
            assert np.array_equal(data["a"], GOOD), "a lazy one fails when its values are needed"
            with pytest.raises(ps.Error):
                data["bad"].load()
        return
    with pytest.warns(ps.UnreadableWarning, match=rf"left out.*: bad \(.*{why}"):
        data = xarray.open_dataset(path, engine="penstock")
    with data:
        assert "bad" not in data
        assert np.array_equal(data["a"].load(), GOOD)


def test_where_none_can_be_read_there_is_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        h5py.h5d.create(file.id, b"bad", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((2,)))
    with pytest.raises(ps.Error, match="time type"):
        ps.load(tmp_path / "x.h5", "host")


def test_errors_that_are_not_of_a_dataset_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = hdf5(tmp_path / "x.h5", lambda file: None)
    reads = []

    def read(*_: Any, **__: Any) -> Any:
        reads.append(1)
        raise ps.Error(code="out_of_memory", operation="allocate", cause="no memory")

    with ps.open(path, device="host") as file:
        monkeypatch.setattr(type(file._file), "start_read", read)
        monkeypatch.setattr(type(file._file), "read_whole", lambda *_: None)
        with pytest.raises(ps.Error, match="no memory"):
            file.load()
    assert len(reads) == 1


def test_names_cannot_write_to_a_terminal(tmp_path: Path) -> None:
    path = hdf5(tmp_path / "x.h5", lambda file: file.create_dataset(b"\x1b[2J\xff", data=GOOD))
    with ps.open(path, device="host") as file:
        shown = repr(file)
    assert "\\x1b[2J" in shown
    assert "\x1b" not in shown
    shown.encode("utf-8")
