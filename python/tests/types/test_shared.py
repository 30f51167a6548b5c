"""Two readers of one HDF5 file. HDF5 reads what has no fixed size through the first handle, also after its close: each
case has a process of its own, which may die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")

TEXT = h5py.string_dtype()
KINDS = {
    "text with a fill value": (TEXT, "-", "abc"),
    "members": (np.dtype([("a", "i4"), ("s", TEXT)]), None, (1, "abc")),
    "lists of text": (h5py.vlen_dtype(TEXT), None, np.array(["a", "b"], object)),
    "arrays of text": (np.dtype((TEXT, (2,))), None, np.array(["a", "b"], object)),
}
TURNS = """
import sys
import penstock as ps
one, other = sys.argv[1:]
for turn in range(50):
    a = ps.open(one, device="host")
    first = str(a["s"][...])
    b = ps.open(other, device="host")
    b["s"][...]
    a.close()
    c = ps.open(one, device="host")
    assert str(c["s"][...]) == first
    c.close()
    assert str(b["s"][...]) == first
    b.close()
"""


@pytest.mark.parametrize("is_linked", [False, True], ids=["one name", "two names"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_does_not_die_of_anothers_close(kind: str, is_linked: bool, tmp_path: Path) -> None:
    dtype, fill, value = KINDS[kind]
    name, other = tmp_path / "a.h5", tmp_path / ("b.h5" if is_linked else "a.h5")
    with h5py.File(name, "w") as file:
        options = {} if fill is None else {"fillvalue": fill}
        file.create_dataset("s", (3,), dtype=dtype, **options)[0] = value
    if is_linked:
        os.link(name, other)
    done = subprocess.run([sys.executable, "-c", TURNS, str(name), str(other)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_readers_have_one_handle(tmp_path: Path) -> None:
    """What HDF5 does with two is not the same each time: it may read what it has freed, and live."""
    name, other = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(name, "w") as file:
        file["x"] = np.arange(5)
    os.link(name, other)

    def handles() -> int:
        return h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)

    before = handles()
    with (
        ps.open(name, device="host") as one,
        ps.open(name, device="host") as same,
        ps.open(other, device="host") as two,
    ):
        for file in (one, same, two):
            assert np.array_equal(file["x"][...], np.arange(5))
            file["x"].attrs.get("units")
        assert handles() == before + 1
    assert handles() == before


def test_the_last_reader_closes_the_file(tmp_path: Path) -> None:
    name = tmp_path / "a.h5"
    with h5py.File(name, "w") as file:
        file["x"] = np.arange(5)
    one, other = ps.open(name, device="host"), ps.open(name, device="host")
    one.close()
    assert np.array_equal(other["x"][...], np.arange(5))
    with pytest.raises(ValueError, match="is closed"):
        one["x"]
    other.close()
    with h5py.File(name, "r+") as file:  # HDF5 refuses that of a file that is open for reading
        file["x"][2] = 7
    with ps.open(name, device="host") as file:
        assert np.array_equal(file["x"][...], [0, 1, 7, 3, 4])


def test_each_reader_names_the_file_as_it_was_given(tmp_path: Path) -> None:
    name, other = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(name, "w") as file:
        file.create_dataset("x", data=np.arange(5), chunks=(5,), compression="gzip")
    os.link(name, other)
    with ps.open(name, device="host") as one, ps.open(other, device="host") as file:
        assert np.array_equal(one["x"][...], file["x"][...])
        assert [part.file for part in one["x"].extents()] == [str(name)]
        assert [part.file for part in file["x"].extents()] == [str(other)]
