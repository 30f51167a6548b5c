"""HDF5 through penstock.open, create, save and load: the conformance kit, and random datasets against h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
import format_kit as kit  # noqa: E402
from hypothesis import given, strategies as st  # noqa: E402
from hypothesis.extra.numpy import array_shapes, basic_indices  # noqa: E402

import penstock  # noqa: E402

DTYPES = ["<f4", ">f8", "<i2", ">u4", "i1", "?", "<c8", "<f2", "S5"]


def test_round_trips_through_stock_hdf5(tmp_path: Path) -> None:
    def stock(path: Path) -> np.ndarray:
        with h5py.File(path) as file:
            return file["data"][...]

    kit.check_round_trips(tmp_path, ".h5", stock=stock)


def test_the_kit_of_writers(tmp_path: Path) -> None:
    kit.check_chunked_writes(tmp_path, ".h5")
    kit.check_appends(tmp_path, ".h5")
    kit.check_changes_in_place(tmp_path, ".h5")
    kit.check_big_endian_values(tmp_path, ".h5")
    kit.check_attributes(tmp_path, ".h5")
    kit.check_leaves_nothing_after_an_error(tmp_path, ".h5")


@pytest.mark.parametrize(
    "options", [{}, {"chunks": (5, 4)}, {"chunks": (5, 4), "compression": "gzip", "shuffle": True}]
)
@pytest.mark.parametrize("dtype", ["<f4", ">i2"])
def test_any_selection_of_stock_files(tmp_path: Path, options: dict, dtype: str) -> None:
    expected = kit.sample((23, 17), dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=expected, **options)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        kit.check_selections(file, "x", expected)
        kit.check_refuses_wrong_out(file["x"])
    if "compression" not in options:
        kit.check_reads_only_what_is_wanted(tmp_path / "x.h5", "x", np.s_[3:9, 2], 23 * 17 * 4)


@st.composite
def stored(draw: Any) -> tuple[np.ndarray, dict, Any]:
    """Data, how h5py is to store them, and a selection."""
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    data = kit.sample(shape, "i4", draw(st.integers(0, 9))).astype(dtype)
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["chunks"] = tuple(draw(st.integers(1, extent)) for extent in shape)
        options["compression"] = draw(st.sampled_from([None, "gzip", "lzf"]))
        options["fletcher32"] = draw(st.booleans())
        options["shuffle"] = draw(st.booleans())
        options["maxshape"] = tuple(draw(st.sampled_from([None, extent])) for extent in shape)
    return data, options, draw(basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))


@kit.few
@given(case=stored(), libver=st.sampled_from(["earliest", "v108", "latest"]))
def test_random_datasets_read_as_h5py_reads_them(tmp_path: Path, case: tuple, libver: str) -> None:
    data, options, index = case
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        file.create_dataset("x", data=data, **options)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        found, wanted = np.asarray(file["x"][index]), np.asarray(data[index], data.dtype.newbyteorder("="))
        assert found.shape == wanted.shape
        assert found.tobytes() == wanted.tobytes()


@kit.few
@given(
    shape=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7),
    dtype=st.sampled_from([one for one in DTYPES if one != "S5"]),
    data=st.data(),
)
def test_random_growth_is_what_h5py_finds(tmp_path: Path, shape: tuple, dtype: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    chunk = tuple(data.draw(st.integers(1, extent + 1)) for extent in shape) if data.draw(st.booleans()) else None
    expected = kit.sample((sum(rows), *shape[1:]), dtype)
    path, at = tmp_path / "x.h5", 0
    with penstock.create(path, device="host") as file:
        file.create_dataset("x", (0, *shape[1:]), dtype, resizable=(None, *shape[1:]), chunk_shape=chunk)
    for count in rows:
        with penstock.open(path, write=True, device="host") as file:
            file["x"].append(expected[at : at + count])
        at += count
    with h5py.File(path) as file:
        found = file["x"][...]
        assert np.array_equal(found, expected)


def test_compound_members_are_fields(tmp_path: Path) -> None:
    kind = np.dtype([("position", "<f4", (3,)), ("id", "<i8"), ("mass", "<f8")])
    expected = np.zeros(50, kind)
    expected["position"] = kit.sample((50, 3), "f4")
    expected["id"], expected["mass"] = np.arange(50), np.arange(50) / 3
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["p"] = expected
        file.create_dataset("q", data=expected, chunks=(7,), compression="gzip")
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        for name in ("p", "q"):
            kit.same(file[name].field("id"), expected["id"])
            kit.same(file[name]["mass"], expected["mass"])
            kit.same(file[name].field("position", np.s_[3:9]), expected["position"][3:9])


def test_options_reach_the_format(tmp_path: Path) -> None:
    expected = kit.sample((100, 3), "f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=expected, chunks=(16, 3), fletcher32=True)
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        kit.same(file["x"].read(), expected)
        assert file.evidence()["formats"]["host_decoded_bytes"] == expected.nbytes
    with penstock.open(tmp_path / "x.h5", device="host", skip_checksums=True) as file:
        kit.same(file["x"].read(), expected)
        assert file.evidence()["formats"]["host_decoded_bytes"] == 0


def test_a_file_under_change_reads_its_new_state_and_others_wait(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.h5", {"a": np.arange(10.0)}, "host")
    with penstock.open(tmp_path / "x.h5", write=True, device="host") as file:
        file["b"] = np.arange(5)
        file.attrs["title"] = "changed"
        assert sorted(file) == ["a", "b"]
        kit.same(file["b"].read(), np.arange(5))
        kit.same(file["a"][2:4], np.arange(10.0)[2:4])
        with pytest.raises(penstock.Error, match="open for writing"):
            penstock.open(tmp_path / "x.h5", device="host")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["title"] == "changed"
        assert file["b"][...].tolist() == [0, 1, 2, 3, 4]


def test_an_error_leaves_an_existing_file_as_it_was(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.h5", {"a": np.arange(10.0)}, "host")
    before = (tmp_path / "x.h5").read_bytes()
    with pytest.raises(RuntimeError), penstock.open(tmp_path / "x.h5", write=True, device="host") as file:
        file["b"] = np.arange(5000)
        raise RuntimeError
    assert (tmp_path / "x.h5").read_bytes() == before
