"""Virtual datasets and external storage: extents where the parts lie plainly, decoded by HDF5 where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
from hdf5_kit import equal, fetch, whole  # noqa: E402

from penstock._error import Error  # noqa: E402
from penstock.formats.hdf5.reader import Hdf5  # noqa: E402
from penstock.formats.model import Box  # noqa: E402


def source(path: Path, data: np.ndarray, **options: object) -> h5py.VirtualSource:
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=data, **options)
    return h5py.VirtualSource(path.name, "d", shape=data.shape)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape).astype("<f4")


def check(path: Path, name: str = "v", plain: bool = True) -> None:
    """Values are h5py's; and the table holds extents, or (not plain) the one row to decode."""
    with h5py.File(path) as file:
        expected = file[name][...]
    hdf5 = Hdf5(path)
    assert hdf5.info(name).layout == "virtual"
    table = hdf5.table(name, whole(expected.shape))
    assert bool(table.encoded.any()) != plain
    equal(fetch(hdf5, name), expected)
    low = tuple(n // 3 for n in expected.shape)
    high = tuple(n // 3 + max(1, n // 2) for n in expected.shape)
    part = expected[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
    equal(fetch(hdf5, name, Box(low, tuple(a + n for a, n in zip(low, part.shape, strict=True)))), part)


def virtual(path: Path, layout: h5py.VirtualLayout, **options: object) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout, **options)


def test_files_stacked_along_a_new_dimension(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4, 6, 5), "<f4")
    for index in range(4):
        layout[index] = source(tmp_path / f"s{index}.h5", numbers(6, 5) + index)
    virtual(tmp_path / "v.h5", layout)
    check(tmp_path / "v.h5")
    hdf5 = Hdf5(tmp_path / "v.h5")
    assert hdf5.info("v").chunk_shape == (1, 6, 5)
    assert len(hdf5.table("v", Box((1, 0, 0), (2, 6, 5))).files) == 4
    assert len(hdf5.table("v", Box((1, 0, 0), (2, 6, 5))).origin) == 1


def test_files_of_several_lengths_one_after_the_other(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((60, 3), "<f4")
    at = 0
    for index, rows in enumerate((10, 20, 30)):
        layout[at : at + rows] = source(tmp_path / f"s{index}.h5", numbers(rows, 3))
        at += rows
    virtual(tmp_path / "v.h5", layout)
    check(tmp_path / "v.h5")
    assert Hdf5(tmp_path / "v.h5").info("v").chunk_shape == (10, 3)


def test_tiles_and_parts_of_sources(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((8, 12), "<f4")
    for row in range(2):
        for column in range(2):
            one = source(tmp_path / f"s{row}{column}.h5", numbers(6, 6) + row)
            layout[4 * row : 4 * row + 4, 6 * column : 6 * column + 6] = one[1:5]
    virtual(tmp_path / "v.h5", layout)
    check(tmp_path / "v.h5")


def test_columns_of_a_source_become_short_runs(tmp_path: Path) -> None:
    one = source(tmp_path / "s.h5", numbers(6, 4, 8))
    layout = h5py.VirtualLayout((6, 5), "<f4")
    layout[...] = one[:, 2, 1:6]
    virtual(tmp_path / "v.h5", layout)
    check(tmp_path / "v.h5")


@pytest.mark.parametrize("chunks", [(3, 4), (2, 8)])
def test_sources_in_chunks_without_filters(tmp_path: Path, chunks: tuple[int, int]) -> None:
    layout = h5py.VirtualLayout((12, 8), "<f4")
    for index in range(2):
        layout[6 * index : 6 * index + 6] = source(tmp_path / f"s{index}.h5", numbers(6, 8), chunks=chunks)
    virtual(tmp_path / "v.h5", layout)
    check(tmp_path / "v.h5")


def test_virtual_datasets_of_virtual_datasets(tmp_path: Path) -> None:
    inner = h5py.VirtualLayout((4, 5), "<f4")
    inner[...] = source(tmp_path / "s.h5", numbers(4, 5))
    virtual(tmp_path / "inner.h5", inner)
    outer = h5py.VirtualLayout((2, 4, 5), "<f4")
    outer[1] = h5py.VirtualSource("inner.h5", "v", shape=(4, 5))
    virtual(tmp_path / "outer.h5", outer)
    check(tmp_path / "outer.h5")


def test_a_source_in_the_same_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file["d"] = numbers(5, 4)
        layout = h5py.VirtualLayout((10, 4), "<f4")
        layout[5:] = h5py.VirtualSource(file["d"])
        file.create_virtual_dataset("v", layout, fillvalue=3)
    check(tmp_path / "v.h5")


def test_a_circle_of_virtual_datasets_ends(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        layout = h5py.VirtualLayout((4,), "<f4")
        layout[...] = h5py.VirtualSource(f"{other}.h5", "v", shape=(4,))
        virtual(tmp_path / f"{one}.h5", layout)
    hdf5 = Hdf5(tmp_path / "a.h5")
    with pytest.raises(Error, match="lead to virtual datasets without end"):
        hdf5.table("v", whole((4,)))


@pytest.mark.parametrize("case", ["missing", "filtered", "converted", "strided", "overlapping", "printf"])
def test_what_is_not_plain_is_read_by_hdf5(tmp_path: Path, case: str) -> None:
    data = numbers(6, 4)
    options = {"chunks": (3, 4), "compression": "gzip"} if case == "filtered" else {}
    stored = data.astype(">f8") if case == "converted" else data
    one = source(tmp_path / "s0.h5", stored, **options)
    one = h5py.VirtualSource("s0.h5", "d", shape=(6, 4))
    layout = h5py.VirtualLayout((12, 4), "<f4")
    if case == "strided":
        layout[::2] = one
    elif case == "printf":
        layout = h5py.VirtualLayout((2, 6, 4), "<f4", maxshape=(None, 6, 4))
        layout[0 : h5py.h5s.UNLIMITED : 1] = h5py.VirtualSource("s%b.h5", "d", shape=(6, 4))[...]
    else:
        layout[0:6] = one
        layout[(3 if case == "overlapping" else 6) : (9 if case == "overlapping" else 12)] = one
    if case == "missing":
        (tmp_path / "s0.h5").unlink()
    fill = 0 if case == "overlapping" else -1  # HDF5 takes overlapping mappings for a whole, and fills nothing
    virtual(tmp_path / "v.h5", layout, fillvalue=fill)
    check(tmp_path / "v.h5", plain=False)


def test_holes_of_a_source_have_its_own_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("d", (4, 4), "<f4", chunks=(2, 4), fillvalue=5)[0] = 1
    layout = h5py.VirtualLayout((4, 4), "<f4")
    layout[...] = h5py.VirtualSource("s.h5", "d", shape=(4, 4))
    virtual(tmp_path / "v.h5", layout, fillvalue=-1)
    check(tmp_path / "v.h5", plain=False)


def test_a_source_that_changes_later_is_noticed(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4,), "<f4")
    layout[...] = source(tmp_path / "s.h5", numbers(4))
    virtual(tmp_path / "v.h5", layout)
    hdf5 = Hdf5(tmp_path / "v.h5")
    hdf5.info("v")
    source(tmp_path / "s.h5", numbers(4000))
    from penstock import Error

    with pytest.raises(Error, match=r"s\.h5.*changed"):
        hdf5.table("v", whole((4,)))


@pytest.mark.parametrize("pieces", [[(0, 96)], [(16, 48), (0, 48)], [(8, 24), (40, h5py.h5f.UNLIMITED)]])
def test_external_storage_is_read_where_it_lies(tmp_path: Path, pieces: list[tuple[int, int]]) -> None:
    external = [(str(tmp_path / f"raw{i}.bin"), offset, size) for i, (offset, size) in enumerate(pieces)]
    data = numbers(8, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=data, external=external)
    hdf5 = Hdf5(tmp_path / "x.h5")
    assert hdf5.info("x").layout == "external"
    table = hdf5.table("x", whole((8, 3)))
    assert not table.encoded.any()
    assert len(table.files) == len(pieces)
    equal(fetch(hdf5, "x"), data)
    equal(fetch(hdf5, "x", Box((3, 1), (7, 2))), data[3:7, 1:2])


def test_external_storage_cut_within_a_row_or_too_short_is_read_by_hdf5(tmp_path: Path) -> None:
    data = numbers(8, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        parts = [(str(tmp_path / "a.bin"), 0, 40), (str(tmp_path / "b.bin"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("cut", data=data, external=parts)
        file.create_dataset("short", data=data, external=[(str(tmp_path / "c.bin"), 0, 96)])
    with (tmp_path / "c.bin").open("r+b") as raw:
        raw.truncate(50)
    with h5py.File(tmp_path / "x.h5") as file:
        expected = {name: file[name][...] for name in file}
    hdf5 = Hdf5(tmp_path / "x.h5")
    for name, values in expected.items():
        assert hdf5.table(name, whole((8, 3))).encoded.all()
        equal(fetch(hdf5, name), values)
