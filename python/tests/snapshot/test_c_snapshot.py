"""A snapshot written through the C ABI is what h5py reads: groups, links, attributes by type and shape, and data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.snapshot_rig import LIBRARY, CError, CSnapshot

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")


@pytest.fixture
def name(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.hdf5"


@pytest.fixture
def snapshot(name: Path) -> Iterator[CSnapshot]:
    made = CSnapshot(name)
    yield made
    made.close()


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
TYPES = (*INTEGERS, "float16", "float32", "float64", "bool")


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (0,), (100003, 3)])
def test_data_are_read_by_h5py(snapshot: CSnapshot, name: Path, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(1)
    fields = {f"a/b/{one}": np.asarray(draw.random(shape) * 100).astype(one) for one in (*TYPES, "complex64")}
    for path, array in fields.items():
        snapshot.dataset(path, array)
    snapshot.write(fields)
    with h5py.File(name) as file:
        for path, array in fields.items():
            assert file[path].shape == shape and file[path].dtype == array.dtype, path
            np.testing.assert_array_equal(file[path][()], array)
            assert file[path].chunks is None and file[path].compression is None


def test_groups_are_there_also_where_they_are_empty(snapshot: CSnapshot, name: Path) -> None:
    for path in ("Header", "a/b/c", "/a/b", "PartType0"):
        snapshot.group(path)
    snapshot.dataset("PartType0/x", np.zeros(3))
    snapshot.link("GasParticles", "/PartType0")
    snapshot.link("a/nowhere", "/none")
    snapshot.write({"PartType0/x": np.arange(3.0)})
    with h5py.File(name) as file:
        assert set(file) == {"Header", "a", "PartType0", "GasParticles"} and not len(file["a/b/c"])
        link = file.get("GasParticles", getlink=True)
        assert isinstance(link, h5py.SoftLink) and link.path == "/PartType0"
        np.testing.assert_array_equal(file["GasParticles/x"][...], np.arange(3.0))
        assert isinstance(file["a"].get("nowhere", getlink=True), h5py.SoftLink)


def test_attributes_have_their_type_and_shape(snapshot: CSnapshot, name: Path) -> None:
    snapshot.dataset("g/x", np.zeros(2))
    wanted: dict[str, np.ndarray] = {}
    for dtype in TYPES:
        for shape in ((), (1,), (6,), (2, 3)):
            wanted[f"{dtype} {shape}"] = (np.ones(shape) * 7).astype(dtype)
    wanted["largest"] = np.array([2**64 - 1, 2**53 + 1], "uint64")
    for where in ("/", "g", "g/x"):
        for one, value in wanted.items():
            snapshot.numbers(where, one, value)
        snapshot.numbers(where, "float64 ()", np.float64(1.5))
    wanted["float64 ()"] = np.asarray(1.5)
    snapshot.write({"g/x": np.zeros(2)})
    with h5py.File(name) as file:
        for where in ("/", "g", "g/x"):
            assert list(file[where].attrs) == sorted(wanted)
            for one, value in wanted.items():
                found = file[where].attrs.get_id(one)
                assert found.shape == value.shape and found.dtype == value.dtype, one
                np.testing.assert_array_equal(file[where].attrs[one], value)


def test_text_has_a_fixed_length_or_its_own(snapshot: CSnapshot, name: Path) -> None:
    snapshot.group("g")
    snapshot.text("g", "fixed", "SWIFT")
    snapshot.text("g", "empty", "")
    snapshot.text("g", "padded", "abc", text_bytes=10)
    snapshot.text("g", "list", ["Gas", "DM", "Stars"])
    snapshot.text("g", "greek", "μm")
    for one, value in (("own", "h·M☉"), ("own list", ["a", "", "longer"]), ("own empty", "")):
        snapshot.text("g", one, value, any_length=1)
    snapshot.write({})
    with h5py.File(name) as file:
        attrs = file["g"].attrs
        assert attrs["fixed"] == np.bytes_("SWIFT") and attrs.get_id("fixed").dtype == np.dtype("S5")
        assert attrs.get_id("fixed").shape == () and attrs["empty"] == np.bytes_("")
        assert attrs.get_id("padded").dtype == np.dtype("S10") and attrs["padded"] == np.bytes_("abc")
        assert list(attrs["list"]) == [b"Gas", b"DM", b"Stars"] and attrs.get_id("list").dtype == np.dtype("S5")
        assert attrs["greek"] in ("μm", np.bytes_("μm".encode()))
        assert attrs["own"] == "h·M☉" and attrs["own empty"] == "" and list(attrs["own list"]) == ["a", "", "longer"]
        assert h5py.check_string_dtype(attrs.get_id("own").dtype).length is None


def test_many_attributes_and_members_stay_in_their_object(snapshot: CSnapshot, name: Path) -> None:
    for i in range(300):
        snapshot.numbers("/", f"n{i:03}", np.array([i]))
        snapshot.text("/", f"t{i:03}", "x" * i, any_length=1)
        snapshot.group(f"g{i:03}")
    snapshot.write({})
    with h5py.File(name) as file:
        assert len(file) == 300 and len(file.attrs) == 600
        assert all(file.attrs[f"n{i:03}"][0] == i and file.attrs[f"t{i:03}"] == "x" * i for i in range(300))


def test_a_file_that_exists_is_refused_where_asked(name: Path) -> None:
    name.write_bytes(b"old")
    snapshot = CSnapshot(name, refuse_existing=1, durable=1)
    with pytest.raises(CError, match="exists"):
        snapshot.write({})
    snapshot.close()
    assert name.read_bytes() == b"old" and list(name.parent.iterdir()) == [name]
