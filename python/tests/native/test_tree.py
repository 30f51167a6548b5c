"""Files that the library's own writer of HDF5 laid out: h5py and h5dump read what the tree said; h5py adds to them."""

import shutil
import subprocess
from pathlib import Path

import h5py
import hdf5_samples
import numpy as np
import pytest

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
NUMBERS += ["complex64", "complex128", "bool"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "tree.h5"
    hdf5_samples.run("tree", path)
    return path


def test_numbers_of_all_types_keep_type_shape_and_place(tree: Path) -> None:
    with h5py.File(tree) as file:
        places = {name: file["numbers"][name].id.get_offset() for name in NUMBERS}
    want = {}
    with tree.open("r+b") as raw:
        for name in NUMBERS:
            want[name] = (np.arange(6).reshape(2, 3) % (2 if name == "bool" else 7)).astype(name)
            raw.seek(places[name])
            raw.write(want[name].tobytes())
    with h5py.File(tree) as file:
        for name in NUMBERS:
            got = file["numbers"][name]
            assert got.dtype == np.dtype(name)
            np.testing.assert_array_equal(got[:], want[name])
        assert file["numbers/foreign"].dtype == np.dtype(">f4")


def test_large_data_begin_on_a_page(tree: Path) -> None:
    with h5py.File(tree) as file:
        assert file["PartType1/Coordinates"].id.get_offset() % 4096 == 0


def test_datasets_of_no_data_no_elements_and_one(tree: Path) -> None:
    with h5py.File(tree) as file:
        np.testing.assert_array_equal(file["absent"][:], [-7] * 4)
        assert file["empty"][:].shape == (0, 3)
        assert file["scalar"][()] == 0


def test_chunks_lie_where_the_layout_says(tree: Path, tmp_path: Path) -> None:
    places = [line.split() for line in hdf5_samples.run("tree", tmp_path / "again.h5").splitlines()]
    want = np.random.default_rng(3).random((1000, 3)).astype("f4")
    with h5py.File(tree) as file:
        data = file["PartType1/Checked"]
        assert data.chunks == (7, 2) and data.fletcher32
        chunks = [data.id.get_chunk_info(i) for i in range(data.id.get_num_chunks())]
        stored = {one.chunk_offset: one for one in chunks}
        assert len(stored) == 143 * 2
        offsets = [stored[i, j].byte_offset for i in range(0, 1000, 7) for j in (0, 2)]
        assert offsets == [int(offset) for _, offset, size in places if size == "60"]
    with h5py.File(tree, "r+") as file:
        file["PartType1/Checked"][:] = want
    with h5py.File(tree) as file:
        np.testing.assert_array_equal(file["PartType1/Checked"][:], want)


def test_attributes_are_what_the_tree_said(tree: Path) -> None:
    with h5py.File(tree) as file:
        got = file.attrs
        assert (got["title"], got["nothing"], got["zürich"]) == (b"sample", b"", "grüezi".encode())
        assert got["time"] == 1.5 and got["time"].dtype == "f8"
        assert got["steps"] == 7 and got["steps"].dtype == "i4"
        np.testing.assert_array_equal(got["box"], [1.0, 2.0, 3.0])
        assert file[got["one"][0]].name == "/PartType1/Coordinates"
        assert [[file[one].name for one in some] for some in got["lists"]] == [
            ["/PartType1/Coordinates", "/"],
            ["/PartType1/Coordinates"],
        ]
        assert file[got["uses"][0][0]].name == "/PartType1/Coordinates" and got["uses"][0][1] == 1


def test_links_lead_where_the_tree_said(tree: Path) -> None:
    with h5py.File(tree) as file:
        assert list(file) == ["numbers", "PartType1", "absent", "scalar", "empty", "Header", "again", "soft", "far"]
        assert file["again"] == file["PartType1/Coordinates"]
        assert h5py.h5o.get_info(file["again"].id).rc == 2
        assert file.get("soft", getlink=True).path == "/PartType1"
        far = file.get("far", getlink=True)
        assert (far.filename, far.path) == ("other.h5", "/x")


def test_h5py_adds_to_the_file(tree: Path) -> None:
    with h5py.File(tree, "r+") as file:
        for i in range(40):
            file.create_dataset(f"new/{i}", data=np.full(100, i))
            file.attrs[f"attribute {i}"] = i
        del file["absent"]
        file["PartType1/Checked"].resize(2000, 0)
        file["PartType1/Checked"][1990:] = 3
    with h5py.File(tree) as file:
        assert [file[f"new/{i}"][5] for i in range(40)] == list(range(40))
        assert file["PartType1/Checked"][1995, 2] == 3
        assert len(file) == 9


@pytest.mark.skipif(not shutil.which("h5dump"), reason="no h5dump")
def test_h5dump_reads_all(tree: Path) -> None:
    done = subprocess.run(["h5dump", str(tree)], capture_output=True, text=True, check=False)
    words = [line for line in done.stderr.splitlines() if "external" not in line and "other.h5" not in line]
    assert "Checked" in done.stdout and "error" not in done.stdout.lower() and words[:1] == []
