"""A file of a stranger may say that its elements lie in any file of ours: nothing is written there unless asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")

PRECIOUS = np.arange(4.0)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A file whose datasets all lie elsewhere, and have names of its own objects there."""
    PRECIOUS.tofile(tmp_path / "precious.bin")
    with h5py.File(tmp_path / "precious.h5", "w") as file:
        file["d"] = PRECIOUS
        file.create_group("g")
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("precious.h5", "d", (4,))
    with h5py.File(tmp_path / "trap.h5", "w") as file:
        file["d"] = np.zeros(4)
        file.create_group("g")
        file.create_dataset("raw", (4,), "f8", external=[(str(tmp_path / "precious.bin"), 0, 32)])
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink("precious.h5", "/d")
        file["group"] = h5py.ExternalLink("precious.h5", "/g")
        file["nowhere"] = h5py.SoftLink("/nothing")
    return tmp_path / "trap.h5"


def is_untouched(trap: Path) -> bool:
    with h5py.File(trap.parent / "precious.h5") as file, h5py.File(trap) as own:
        same = np.array_equal(file["d"], PRECIOUS) and len(file["g"]) + len(file["d"].attrs) == 0
        plain = not np.any(own["d"]) and len(own["g"]) + len(own["d"].attrs) == 0
    return same and plain and np.array_equal(np.fromfile(trap.parent / "precious.bin"), PRECIOUS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raw", "its elements lie in another file, .*precious.bin"),
        ("virtual", "precious.h5"),
        ("link", "external link"),
    ],
)
def test_elements_in_other_files_are_not_written(name: str, words: str, trap: Path) -> None:
    with pytest.raises(ps.Error, match=words), ps.open(trap, device="host", write=True) as file:
        file[name][...] = np.full(4, 7.0)
    with ps.open(trap, device="host", write=True) as file, pytest.raises(ps.Error, match=words):
        file[name].write(np.full(1, 7.0), slice(1, 2))
    assert is_untouched(trap)
    with ps.open(trap, device="host") as file:
        assert np.array_equal(file[name][...], PRECIOUS), "reading is as ever"


@pytest.mark.parametrize("name", ["raw", "virtual"])
def test_they_are_where_the_caller_says_so(name: str, trap: Path) -> None:
    with ps.open(trap, device="host", write=True, external=True) as file:
        file[name][...] = np.full(4, 7.0)
    with h5py.File(trap) as file:
        assert np.array_equal(file[name], np.full(4, 7.0))
    assert not is_untouched(trap)


@pytest.mark.parametrize("external", [False, True])
def test_nothing_is_added_behind_an_external_link(external: bool, trap: Path) -> None:
    """HDF5 would follow it into an object of this file that happens to have the name."""
    actions: list[Any] = [
        lambda file: file["link"].attrs.update(x=1),
        lambda file: file["group"].attrs.update(x=1),
        lambda file: file.create_dataset("group/new", (4,), "f8"),
        lambda file: file.create_dataset("nowhere/new", (4,), "f8"),
        lambda file: file["link"].read(),
    ]
    for action in actions:
        with ps.open(trap, device="host", write=True, external=external) as file:
            with pytest.raises((ps.Error, KeyError)):  # a group of another file is none of this one's names
                action(file)
            file.abandon()
        assert is_untouched(trap)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_chunks_of_zarr_that_are_links_are_not_written(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    with ps.create(path, device="host") as file:
        file.create_dataset("d", (4,), "f8", chunk_shape=(2,))[...] = PRECIOUS
    inside = path / "d/c/1" if what == "file" else path / "d/c"
    inside.rename(tmp_path / "precious")
    inside.symlink_to(tmp_path / "precious")
    kept = tmp_path / "precious" if what == "file" else tmp_path / "precious/1"
    with pytest.raises(ps.Error, match="lie in another file"), ps.open(path, device="host", write=True) as file:
        file["d"][2:] = np.full(2, 7.0)
    assert np.array_equal(np.fromfile(kept), PRECIOUS[2:])
    with ps.open(path, device="host", write=True, external=True) as file:
        file["d"][2:] = np.full(2, 7.0)
    assert np.array_equal(np.fromfile(kept), [7.0, 7.0])


def test_a_store_behind_a_link_is_written(tmp_path: Path) -> None:
    with ps.create(tmp_path / "x.zarr", device="host") as file:
        file.create_dataset("d", (4,), "f8", chunk_shape=(2,))[...] = PRECIOUS
    (tmp_path / "link.zarr").symlink_to(tmp_path / "x.zarr")
    with ps.open(tmp_path / "link.zarr", device="host", write=True) as file:
        file["d"][0:2] = np.full(2, 7.0)
        file["d"].append(np.full(2, 8.0))
    assert np.array_equal(ps.load(tmp_path / "x.zarr", "host")["d"], [7, 7, 2, 3, 8, 8])
