"""`penstock ls`: what it lists is what the format's own library says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import Ran, assert_one_line_error

import penstock as library

h5py = pytest.importorskip("h5py")
Run = Callable[..., Ran]


@pytest.fixture
def run42(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "run42.h5", "w") as file:
        file["plain"] = np.zeros((100, 20), "<f4")
        file.create_dataset("group/packed", data=np.zeros((64, 64)), chunks=(16, 64), compression="gzip", shuffle=True)
        file.create_dataset("empty", shape=(10,), dtype=">i2")
        file["number"] = np.int8(7)
        file["words"] = np.array(["a", "bc"], h5py.string_dtype())
        h5py.h5d.create(file.id, b"when", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((2,)))
    return tmp_path / "run42.h5"


def test_it_tells_what_the_library_of_the_format_tells(penstock: Run, run42: Path) -> None:
    told = penstock("ls", run42, "--json")
    assert told.code == 0, told.err
    assert (told.json["file"], told.json["format"]) == (str(run42), "hdf5")
    found = {one["name"]: one for one in told.json["datasets"]}
    with h5py.File(run42) as file:
        assert set(found) == {"plain", "group/packed", "empty", "number", "words", "when"}
        for name in ("plain", "group/packed", "empty", "number"):
            dataset, one = file[name], found[name]
            assert tuple(one["shape"]) == dataset.shape
            assert one["bytes"] == dataset.nbytes
            assert one["stored_bytes"] == dataset.id.get_storage_size()
            assert (tuple(one["chunks"]) if one["chunks"] else None) == dataset.chunks
            assert one["problem"] is None
    assert found["group/packed"]["filters"] == ["shuffle", "deflate"]
    assert found["group/packed"]["layout"] == "chunked"
    assert "time type" in found["when"]["problem"]
    assert (found["when"]["bytes"], found["when"]["dtype"]) == (None, None)
    assert (found["words"]["problem"], found["words"]["dtype"]) == (None, "text")
    assert found["words"]["bytes"] is None


def test_bytes_in_the_file_are_those_that_hdf5_counts_whatever_the_layout_and_the_type(
    penstock: Run, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        layout.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((20,))
        compact = h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_FLOAT, space, layout)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(20, dtype="f4"))
        file["text"] = ["a", "bb"]
        file["references"] = np.array([file["text"].ref] * 3, h5py.ref_dtype)
        file.create_dataset("lists", (5,), h5py.vlen_dtype("i4"))[1] = [1, 2, 3]
        file.create_dataset("packed text", (30,), h5py.string_dtype(), chunks=(10,), compression="gzip")[:10] = "x"
        file.create_dataset("never written", (30,), h5py.vlen_dtype("i4"), chunks=(10,))
        counted = {name: file[name].id.get_storage_size() for name in file}
    assert counted["compact"] == 80
    found = {one["name"]: one["stored_bytes"] for one in penstock("ls", tmp_path / "x.h5", "--json").json["datasets"]}
    assert found == counted


def test_bytes_of_text_in_a_zarr_store_are_those_of_its_chunk_files(penstock: Run, tmp_path: Path) -> None:
    with library.create(tmp_path / "x.zarr", device="host") as file:
        file["words"] = ["some", "text"]
    [one] = penstock("ls", tmp_path / "x.zarr", "--json").json["datasets"]
    files = [one for one in (tmp_path / "x.zarr/words").rglob("*") if one.is_file() and one.name != "zarr.json"]
    assert one["stored_bytes"] == sum(one.stat().st_size for one in files) > 0


def test_people_get_a_table(penstock: Run, run42: Path) -> None:
    told = penstock("ls", run42)
    assert told.code == 0, told.err
    assert told.out.startswith(f"{run42}: hdf5, 6 datasets\n")
    lines = {line.split()[0]: line for line in told.out.splitlines() if line.strip()}
    assert "100 x 20" in lines["plain"]
    assert "chunks of 16 x 64, shuffle, deflate" in " ".join(told.out.split())
    assert "one element" in lines["number"]
    assert "cannot be read" in told.out


@pytest.mark.parametrize("suffix", ["nc", "nc3", "npy", "safetensors", "zarr"])
def test_every_format_is_listed(penstock: Run, tmp_path: Path, suffix: str) -> None:
    name = tmp_path / f"x.{suffix}"
    with library.create(name, device="host") as file:
        file["data"] = np.arange(24, dtype="<f8").reshape(4, 6)
    [one] = penstock("ls", name, "--json").json["datasets"]
    assert (one["name"], one["shape"], one["bytes"]) == ("data", [4, 6], 192)
    assert one["stored_bytes"] >= 192


def test_names_are_shown_as_text(penstock: Run, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["[red]a\x1b[31m\nb"] = np.zeros(1)
    told = penstock("ls", tmp_path / "x.h5")
    assert "\x1b" not in told.out
    assert "[red]a\\x1b[31m\\nb" in told.out.replace(" ", "")


def test_wrong_files_are_told_in_a_line(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("ls", tmp_path / "nothing.h5"), "No such file")
    (tmp_path / "x.txt").write_text("hello")
    assert_one_line_error(penstock("ls", tmp_path / "x.txt"), "known are hdf5 (.h5 ", "zarr (.zarr)\n")
    (tmp_path / "x.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(500))
    assert_one_line_error(penstock("ls", tmp_path / "x.mat"), "scipy.io.loadmat reads it\n")
    for other in ("x.txt", "x.mat", "."):
        assert "=" not in penstock("ls", tmp_path / other).err, "it advises keywords of Python"
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert_one_line_error(penstock("ls", tmp_path / "x.h5"))
    ran = penstock("ls", "")
    assert ran.code == 2
    assert_one_line_error(ran, "the name is empty")


def test_records_of_classic_netcdf_take_their_own_bytes(penstock: Run, tmp_path: Path) -> None:
    layouts = {"T": ((0, 3), "int16", {"resizable": (None, 3)}), "time": ((0,), "float64", {"resizable": (None,)})}
    with library.create(tmp_path / "x.nc3", device="host") as file:
        made = file.create_datasets(layouts)
        for step in range(4):
            made["T"].append(np.zeros(3, "int16"))
            made["time"].append(float(step))
    found = {one["name"]: one for one in penstock("ls", tmp_path / "x.nc3", "--json").json["datasets"]}
    assert [found[name]["stored_bytes"] for name in ("T", "time")] == [24, 32]
    assert "records of 1 x 3" in penstock("ls", tmp_path / "x.nc3").out


def test_members_that_are_arrays_have_their_shape(penstock: Run, tmp_path: Path) -> None:
    library.save(tmp_path / "x.npy", np.zeros(2, [("p", "f4", (3,)), ("m", "i2")]), "host")
    assert "{p: float32[3], m: int16}" in penstock("ls", tmp_path / "x.npy").out
