"""The kit for the formats that hold several datasets and grow; their stock tools are in tests of their own."""

from __future__ import annotations

import os
from pathlib import Path

import format_kit as kit
import numpy as np
import pytest

import penstock

CHUNKED = [".zarr", ".h5", ".nc"]
GROWING = {
    ".zarr": {"chunk_shape": (2, 4, 3)},
    ".h5": {"chunk_shape": (2, 4, 3)},
    ".nc": {"chunk_shape": (2, 4, 3)},
    ".nc3": {},
}
CLASSIC = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")


@pytest.mark.parametrize("suffix", CHUNKED)
def test_round_trips(tmp_path: Path, suffix: str) -> None:
    types = kit.DTYPES if suffix != ".nc" else ("bool", *CLASSIC)  # netCDF has no float16 and no complex numbers
    kit.check_round_trips(tmp_path, suffix, dtypes=types)


def test_round_trips_of_classic_netcdf(tmp_path: Path) -> None:
    """Which has no bool and no complex numbers, and a dimension of length 0 only as the record dimension."""
    kit.check_round_trips(tmp_path, ".nc3", dtypes=CLASSIC, shapes=[one for one in kit.SHAPES if 0 not in one])


@pytest.mark.parametrize("suffix", CHUNKED)
def test_chunked_writes(tmp_path: Path, suffix: str) -> None:
    kit.check_chunked_writes(tmp_path, suffix)


@pytest.mark.parametrize("suffix", GROWING)
def test_appends(tmp_path: Path, suffix: str) -> None:
    kit.check_appends(tmp_path, suffix, **GROWING[suffix])


@pytest.mark.parametrize("suffix", GROWING)
def test_the_rest_of_the_kit(tmp_path: Path, suffix: str) -> None:
    kit.check_changes_in_place(tmp_path, suffix)
    kit.check_big_endian_values(tmp_path, suffix)
    kit.check_attributes(tmp_path, suffix)
    kit.check_leaves_nothing_after_an_error(tmp_path, suffix)


@pytest.mark.parametrize("suffix", GROWING)
def test_selections_and_out(tmp_path: Path, suffix: str) -> None:
    expected = kit.sample((31, 6, 5), "f4")
    penstock.save(tmp_path / f"x{suffix}", {"x": expected, "y": np.arange(5.0)}, "host")
    with penstock.open(tmp_path / f"x{suffix}", device="host") as file:
        kit.check_selections(file, "x", expected)
        kit.check_refuses_wrong_out(file["x"])


@pytest.mark.parametrize("suffix", [*GROWING, ".npy", ".safetensors"])
def test_a_symbolic_link_stays_and_what_it_leads_to_is_made_or_replaced(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "far").mkdir()
    link, target = tmp_path / f"x{suffix}", tmp_path / "far" / f"y{suffix}"
    link.symlink_to(target)
    for values in (np.arange(6.0), np.arange(9.0)):
        with penstock.create(link, device="host") as file:
            file["data"] = values
        assert link.is_symlink()
        assert [path.name for path in (tmp_path / "far").iterdir()] == [target.name]
        with penstock.open(link, device="host") as file:
            assert np.array_equal(file["data"][...].to_numpy(), values)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("suffix", GROWING)
def test_a_second_writer_is_refused_until_the_first_closes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    penstock.save(path, {"x": np.arange(6.0)}, "host")
    for end in ("close", "abandon"):
        first = penstock.open(path, write=True, device="host")
        with pytest.raises(penstock.Error, match=r"has it open.*wait until it is closed"):
            penstock.open(path, write=True, device="host")
        if suffix in (".zarr", ".nc3"):  # readers see what is published; HDF5 locks them out, as it always does
            with penstock.open(path, device="host") as file:
                assert np.array_equal(file["x"][...].to_numpy(), np.arange(6.0))
        getattr(first, end)()
    with penstock.open(path, write=True, device="host") as file:
        file["x"][:] = np.ones(6)


@pytest.mark.parametrize("suffix", [".zarr", ".nc3"])
def test_nobody_replaces_what_is_being_changed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    penstock.save(path, {"x": np.arange(6.0)}, "host")
    late = penstock.create(path, device="host")
    late["x"] = np.zeros(3)
    with penstock.open(path, write=True, device="host") as file:
        with pytest.raises(penstock.Error, match="has it open for writing"):
            penstock.create(path, device="host")
        with pytest.raises(penstock.Error, match="has it open for writing"):
            late.close()
        file["x"][:] = np.ones(6)
    with penstock.open(path, device="host") as file:
        assert np.array_equal(file["x"][...].to_numpy(), np.ones(6))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".zarr", ".nc3"])
def test_a_child_that_lives_on_does_not_keep_the_lock(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    penstock.save(path, {"x": np.arange(6.0)}, "host")
    file = penstock.open(path, write=True, device="host")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        file.close()
        penstock.open(path, write=True, device="host").close()
    finally:
        os.close(write)
        os.waitpid(child, 0)
        os.close(read)


def test_groups_of_one_store_have_one_writer(tmp_path: Path) -> None:
    penstock.save(tmp_path / "s.zarr", {"g/x": np.arange(6.0)}, "host")
    with (
        penstock.open(tmp_path / "s.zarr/g", write=True, device="host"),
        pytest.raises(penstock.Error, match="has it open for writing"),
    ):
        penstock.open(tmp_path / "s.zarr", write=True, device="host")


@pytest.mark.parametrize("suffix", GROWING)
@pytest.mark.parametrize("change", ["elements", "append", "attribute", "close"])
def test_what_has_taken_the_name_of_an_open_file_is_not_written(tmp_path: Path, suffix: str, change: str) -> None:
    """As rsync and mv do it, which do not ask whether a program writes."""
    path, other = tmp_path / f"x{suffix}", tmp_path / f"other{suffix}"
    for one in (path, other):
        with penstock.create(one, device="host") as made:
            made.create_dataset("x", (0, 4, 3), "f8", resizable=(None, 4, 3), **GROWING[suffix])
            made["x"].append(np.zeros((4, 4, 3)))
    held = content(other)
    file = penstock.open(path, write=True, device="host")
    if change == "close":
        file["x"].append(np.ones((4, 4, 3)))
    path.rename(tmp_path / f"moved{suffix}")
    other.rename(path)
    with pytest.raises(penstock.Error, match="another file has taken its name"):
        if change == "elements":
            file["x"][1] = np.ones((4, 3))
        elif change == "append":
            file["x"].append(np.ones((4, 4, 3)))
        elif change == "attribute":
            file["x"].attrs["a"] = 1
        else:
            file.close()
    file.abandon()
    assert content(path) == held
    with penstock.open(tmp_path / f"moved{suffix}", device="host") as ours:
        assert ours["x"].shape == (4, 4, 3) and not np.asarray(ours["x"][...]).any()


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    return {str(one.relative_to(path)): one.read_bytes() for one in files}
