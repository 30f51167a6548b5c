"""The group Cells of SWIFT: as the code has it, and as swiftsimio's masks use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from array_rig import filled

import penstock

CELLS, BOX = (4, 3, 2), (8.0, 9.0, 10.0)


def particles(count: int, dtype: str = "f8") -> dict[str, np.ndarray]:
    draw = np.random.default_rng(count)
    at = (draw.random((count, 3)) * BOX).astype(dtype)
    return {"Coordinates": at, "ParticleIDs": np.arange(count, dtype="u8"), "Masses": draw.random(count).astype("f4")}


def cell_of(at: np.ndarray) -> np.ndarray:
    """By loops of NumPy."""
    along = np.minimum((np.asarray(at, "f8") / (np.array(BOX) / CELLS)).astype(int), np.array(CELLS) - 1)
    return (along[:, 0] * CELLS[1] + along[:, 1]) * CELLS[2] + along[:, 2]


def in_order(fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    order = penstock.cell_order(fields["Coordinates"], CELLS, BOX)
    return {name: array[order] for name, array in fields.items()}


def written(name: Path, gas: dict[str, np.ndarray], dark: dict[str, np.ndarray]) -> Path:
    fields = {f"PartType0/{path}": array for path, array in gas.items()}
    fields |= {f"PartType1/{path}": array for path, array in dark.items()}
    snapshot = penstock.Snapshot(name, fields, device="host", chunk_rows=64, checksums=True)
    snapshot.use_preset("swift", box_size=BOX, unit_length_cm=3.0e24, unit_mass_g=2.0e43, unit_time_s=3.0e16)
    snapshot.add_cells(CELLS, BOX, {0: gas["Coordinates"], 1: dark["Coordinates"]})
    snapshot.write()
    return name


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_order_is_that_of_cells_and_keeps_that_of_particles(dtype: str) -> None:
    at = particles(1000, dtype)["Coordinates"]
    order = penstock.cell_order(at, CELLS, BOX)
    np.testing.assert_array_equal(order, np.argsort(cell_of(at), kind="stable"))
    assert list(penstock.cell_order(np.zeros((0, 3)), CELLS, BOX)) == []
    beyond = np.array([[-1, 0, 0], [8, 9, 10], [-2, 100, 0.0]])
    assert list(penstock.cell_order(beyond, CELLS, BOX)) == [0, 2, 1]
    for nowhere in (np.nan, np.inf):
        with pytest.raises(penstock.Error, match="particle 1 lies at .* give finite positions"):
            penstock.cell_order(np.array([[0, 0, 0], [1, nowhere, 1]], dtype), CELLS, BOX)


def test_cells_are_as_swift_has_them(tmp_path: Path) -> None:
    gas, dark = in_order(particles(1000)), in_order(particles(3, "f4"))
    with h5py.File(written(tmp_path / "s.hdf5", gas, dark)) as file:
        cells = file["Cells"]
        assert set(cells) == {
            "Meta-data",
            "Centres",
            "Counts",
            "OffsetsInFile",
            "Files",
            "MinPositions",
            "MaxPositions",
        }
        meta = cells["Meta-data"].attrs
        assert list(meta["dimension"]) == list(CELLS) and list(meta["nr_cells"]) == [24]
        assert meta.get_id("nr_cells").dtype == "i4" and meta.get_id("dimension").dtype == "i4"
        np.testing.assert_allclose(meta["size"], [2.0, 3.0, 5.0])
        np.testing.assert_allclose(cells["Centres"][:3], [[1, 1.5, 2.5], [1, 1.5, 7.5], [1, 4.5, 2.5]])
        for kind, fields in (("PartType0", gas), ("PartType1", dark)):
            counts, offsets = cells["Counts"][kind][...], cells["OffsetsInFile"][kind][...]
            assert counts.dtype == offsets.dtype == "i8" and cells["Files"][kind].dtype == "i4"
            assert counts.sum() == len(fields["Masses"]) and not cells["Files"][kind][...].any()
            least, most = cells["MinPositions"][kind][...], cells["MaxPositions"][kind][...]
            for cell in range(24):
                at = file[f"{kind}/Coordinates"][offsets[cell] : offsets[cell] + counts[cell]]
                assert (cell_of(at) == cell).all()
                if counts[cell]:
                    np.testing.assert_array_equal(least[cell], at.min(axis=0))
                    np.testing.assert_array_equal(most[cell], at.max(axis=0))
                else:
                    assert (least[cell] == np.finfo("f8").max).all() and (most[cell] == -np.finfo("f8").max).all()


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "order": (
        {"positions": {0: particles(1000)["Coordinates"]}},
        penstock.Error,
        "particle .* of PartType0 lies in cell",
    ),
    "others": ({"positions": {0: np.zeros((2, 3))}}, penstock.Error, "has 1000 particles, and the cells are of 2"),
    "absent": ({"positions": {5: np.zeros((2, 3))}}, penstock.Error, "PartType5/Coordinates has 0 particles"),
    "integers": ({"positions": {0: np.zeros((2, 3), int)}}, ValueError, "give float32 or float64"),
    "flat": ({"positions": {0: np.zeros(6)}}, ValueError, "give float32 or float64"),
    "planar": ({"positions": {0: np.zeros((1000, 2))}}, ValueError, "give float32 or float64"),
    "big-endian": ({"positions": {0: np.zeros((1000, 3), ">f8")}}, ValueError, "positions are >f8 .* give float32"),
    "list": ({"positions": [np.zeros((2, 3))]}, TypeError, "positions are a dict of types and arrays, not list"),
    "nothing": ({"positions": None}, TypeError, "positions are a dict of types and arrays, not NoneType"),
    "name": ({"positions": {"PartType0": np.zeros((2, 3))}}, TypeError, "such as 0 of PartType0, not 'PartType0'"),
    "half": ({"positions": {0.5: np.zeros((2, 3))}}, TypeError, "such as 0 of PartType0, not 0.5"),
    "mixed": ({"positions": {0: np.zeros((2, 3)), "1": np.zeros((2, 3))}}, TypeError, "such as 0 of .*, not '1'"),
    "negative": ({"positions": {-1: np.zeros((2, 3))}}, ValueError, "no particles of type -1"),
    "huge": ({"positions": {2**32: np.zeros((2, 3))}}, ValueError, "no particles of type 4294967296"),
    "fraction": ({"cells": (4, 3, 2.5)}, ValueError, "give three numbers of cells"),
    "digits": ({"cells": "432"}, ValueError, "give three numbers of cells"),
    "one": ({"cells": 4}, ValueError, "give three numbers of cells"),
    "endless": ({"cells": (4, 3, 2**64)}, ValueError, "give three numbers of cells"),
    "infinite": ({"cells": (4, 3, np.inf)}, ValueError, "give three numbers of cells"),
    "no box": ({"box_size": None}, ValueError, "box_size is None; give one length, or three"),
    "cells": ({"cells": (4, 3)}, ValueError, "give three numbers of cells"),
    "none": ({"cells": (4, 0, 2)}, ValueError, "give three numbers of cells"),
    "many": ({"cells": (5000, 1, 1)}, penstock.Error, "give 1 to 4096"),
    "too many": ({"cells": (4096, 4096, 128)}, penstock.Error, "there are 2147483648 cells; give 2147483647 at most"),
    "box": ({"box_size": (1, 2, -3)}, penstock.Error, "a length of -3"),
    "nan": (
        {"positions": {0: np.full((1000, 3), np.nan, "f4")}},
        penstock.Error,
        "particle 0 of PartType0 lies at .nan, nan, nan.; give finite positions",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_cells_are_refused_and_not_kept(tmp_path: Path, what: str) -> None:
    check_refused(tmp_path / "s.hdf5", in_order(particles(1000)), "add_cells", what)


@pytest.mark.parametrize("what", [one for one in WRONG if one != "order"])
def test_a_wrong_sort_is_refused_and_rows_stay_as_they_are(tmp_path: Path, what: str) -> None:
    check_refused(tmp_path / "s.hdf5", particles(1000), "sort_by_cells", what)


def check_refused(name: Path, gas: dict[str, np.ndarray], call: str, what: str) -> None:
    given, kind, words = WRONG[what]
    snapshot = penstock.Snapshot(name, {f"PartType0/{one}": array for one, array in gas.items()}, device="host")
    with pytest.raises(kind, match=words):
        getattr(snapshot, call)(**{"cells": CELLS, "box_size": BOX, "positions": {0: gas["Coordinates"]}} | given)
    snapshot.write()
    with h5py.File(name) as file:
        assert set(file) == {"PartType0"}
        for one, array in gas.items():
            np.testing.assert_array_equal(file[f"PartType0/{one}"][...], array)


@pytest.mark.parametrize("call", ["add_cells", "sort_by_cells"])
@pytest.mark.parametrize("taken", ["Cells/Counts/PartType0", "Cells/MaxPositions/PartType0", "Cells/Meta-data"])
def test_cells_whose_name_is_taken_are_left_out_whole(tmp_path: Path, taken: str, call: str) -> None:
    """Tables of a sort that was refused would tell readers of rows that are not there."""
    gas = in_order(particles(500)) if call == "add_cells" else particles(500)
    for name in ("with.hdf5", "without.hdf5"):
        snapshot = penstock.Snapshot(tmp_path / name, flat({0: gas}) | {taken: np.arange(3)}, device="host")
        if name == "with.hdf5":
            with pytest.raises(penstock.Error, match="Cells|Meta-data"):
                getattr(snapshot, call)(CELLS, BOX, {0: gas["Coordinates"]})
        snapshot.write()
    assert (tmp_path / "with.hdf5").read_bytes() == (tmp_path / "without.hdf5").read_bytes()


CHUNKS = [{}, {"chunk_rows": 64}, {"chunk_rows": 64, "checksums": True}]


@pytest.mark.parametrize("options", CHUNKS, ids=["contiguous", "chunked", "checksums"])
@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4")], ids=lambda one: "-".join(one))
def test_sorted_by_the_snapshot_is_as_sorted_by_hand(
    tmp_path: Path, dtypes: tuple[str, str], options: dict[str, Any]
) -> None:
    types = {0: particles(1000, dtypes[0]), 1: particles(333, dtypes[1])}
    before = {kind: {name: array.copy() for name, array in fields.items()} for kind, fields in types.items()}
    names = tmp_path / "hand.hdf5", tmp_path / "snapshot.hdf5"
    for name, call in zip(names, ("add_cells", "sort_by_cells"), strict=True):
        given = {kind: in_order(fields) for kind, fields in types.items()} if call == "add_cells" else types
        snapshot = penstock.Snapshot(name, flat(given), device="host", **options)
        snapshot.add_dataset("Other/Table", np.arange(3000.0).reshape(1000, 3))
        getattr(snapshot, call)(CELLS, BOX, {kind: fields["Coordinates"] for kind, fields in given.items()})
        snapshot.write()
    assert names[1].read_bytes() == names[0].read_bytes()
    with h5py.File(names[1]) as file:
        for kind, fields in types.items():
            order = np.argsort(cell_of(fields["Coordinates"]), kind="stable")
            assert (order != np.arange(len(order))).any()
            for name, array in fields.items():
                np.testing.assert_array_equal(file[f"PartType{kind}/{name}"][...], array[order])
                np.testing.assert_array_equal(array, before[kind][name])
        np.testing.assert_array_equal(file["Other/Table"][...], np.arange(3000.0).reshape(1000, 3))


def flat(types: dict[int, dict[str, Any]]) -> dict[str, Any]:
    return {f"PartType{kind}/{name}": array for kind, fields in types.items() for name, array in fields.items()}


class LikeNumba:
    """Memory of a device as libraries of GPUs describe it, which NumPy cannot read."""

    def __init__(self, array: penstock.Array, strides: tuple[int, ...] | None = None) -> None:
        told = {"shape": array.shape, "typestr": np.dtype(str(array.dtype)).str, "strides": strides, "version": 3}
        self.__cuda_array_interface__ = {**told, "data": (array.address, False), "stream": None}


@pytest.mark.parametrize("call", ["add_cells", "sort_by_cells"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_positions_of_a_device_stay_there(tmp_path: Path, dtype: str, call: str) -> None:
    gas = particles(1000, dtype)
    context, names = penstock.Context("host"), (tmp_path / "hand.hdf5", tmp_path / "device.hdf5")
    given = in_order(gas) if call == "add_cells" else gas
    on_device = {name: filled(context, array) for name, array in given.items()}
    at = on_device["Coordinates"]
    by_hand = penstock.Snapshot(names[0], flat({0: in_order(gas)}), device="host")
    by_hand.add_cells(CELLS, BOX, {0: in_order(gas)["Coordinates"]})
    by_hand.write()
    for positions in (at, LikeNumba(at)):
        snapshot = penstock.Snapshot(names[1], flat({0: on_device}), memory="device", context=context)
        for wrong in (LikeNumba(at, (at.itemsize, 1000 * at.itemsize)), LikeNumba(at.view("u1"))):
            with pytest.raises(ValueError, match="not in C order; give a contiguous copy|positions are uint8"):
                getattr(snapshot, call)(CELLS, BOX, {0: wrong})
        getattr(snapshot, call)(CELLS, BOX, {0: positions})
        snapshot.write()
        assert names[1].read_bytes() == names[0].read_bytes()


def test_a_snapshot_that_was_written_and_is_kept_holds_no_descriptor(tmp_path: Path) -> None:
    """They would keep the blocks of files that were deleted, and run out where a program keeps its snapshots."""

    def here() -> int:
        open_files = [one for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
        return sum(str(tmp_path) in str(one.readlink()) for one in open_files)

    gas, kept = particles(100), []
    for _ in range(3):
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", flat({0: gas}), device="host")
        snapshot.sort_by_cells(CELLS, BOX, {0: gas["Coordinates"]})
        snapshot.write()
        kept.append(snapshot)
        assert here() == 0
    with pytest.raises(penstock.Error, match="the snapshot is written already"):
        kept[0].write()


def test_a_device_sorts_no_positions_of_the_host(tmp_path: Path) -> None:
    context, at = penstock.Context("host"), particles(1000)["Coordinates"]
    fields = {"PartType0/Coordinates": filled(context, at)}
    snapshot = penstock.Snapshot(tmp_path / "s.hdf5", fields, memory="device", context=context)
    with pytest.raises(penstock.Error, match="add cells"):
        snapshot.sort_by_cells(CELLS, BOX, {0: at})


def test_masks_of_swiftsimio_load_a_part_of_the_box(tmp_path: Path) -> None:
    swiftsimio = pytest.importorskip("swiftsimio")
    gas, dark = in_order(particles(5000)), in_order(particles(40))
    name = str(written(tmp_path / "s.hdf5", gas, dark))
    mask = swiftsimio.mask(name)
    size = mask.metadata.boxsize
    mask.constrain_spatial([[0 * size[0], 0.4 * size[0]], None, [0.1 * size[2], 0.3 * size[2]]])
    found = swiftsimio.load(name, mask=mask)
    at = gas["Coordinates"]
    inside = (at[:, 0] <= 0.4 * BOX[0]) & (at[:, 2] >= 0.1 * BOX[2]) & (at[:, 2] <= 0.3 * BOX[2])
    ids = found.gas.particle_ids.value
    assert set(gas["ParticleIDs"][inside]) <= set(ids) and len(ids) < 3000
    np.testing.assert_array_equal(found.gas.masses.value, gas["Masses"][np.isin(gas["ParticleIDs"], ids)])
