"""The group Cells of SWIFT of several processes: rows from the offset of a cell on are its particles, in one file of
all and in a file of each, and counts and bounds are those of one process. Ranks are threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from ranks.threads import ThreadComm, on_ranks

import penstock

CELLS, BOX = (4, 3, 2), (8.0, 9.0, 10.0)
# Which process has a cell: neighbours, one cell in turn, ranks without a cell, and all cells with one.
OWNERS = {
    "slabs": np.arange(24) // 8,
    "in turn": np.arange(24) % 3,
    "empty first": 1 + np.arange(24) % 2,
    "empty last": np.arange(24) // 6 % 2,
    "one": np.full(24, 1),
}
Fields = dict[str, np.ndarray]


def cell_of(at: np.ndarray) -> np.ndarray:
    along = np.minimum((np.asarray(at, "f8") / (np.array(BOX) / CELLS)).astype(int), np.array(CELLS) - 1)
    return (along[:, 0] * CELLS[1] + along[:, 1]) * CELLS[2] + along[:, 2]


def sorted_particles(count: int, dtype: str) -> Fields:
    draw = np.random.default_rng(count)
    at = (draw.random((count, 3)) * BOX).astype(dtype)
    fields = {"Coordinates": at, "ParticleIDs": np.arange(count, dtype="u8"), "Masses": draw.random(count).astype("f4")}
    order = penstock.cell_order(at, CELLS, BOX)
    return {name: array[order] for name, array in fields.items()}


TYPES = {"PartType0": sorted_particles(1000, "f8"), "PartType1": sorted_particles(7, "f4")}
NONE = {"PartType0": sorted_particles(1000, "f8"), "PartType1": sorted_particles(0, "f4")}


def part(rank: int, owners: np.ndarray, types: dict[str, Fields] = TYPES) -> Fields:
    own: Fields = {}
    for kind, fields in types.items():
        here = owners[cell_of(fields["Coordinates"])] == rank
        own |= {f"{kind}/{name}": array[here] for name, array in fields.items()}
    return own


def write(comm: ThreadComm | None, name: Path, fields: Fields, **options: Any) -> None:
    snapshot = penstock.Snapshot(name, fields, device="host", comm=comm, **options)
    snapshot.use_preset("swift", box_size=BOX)
    snapshot.add_cells(CELLS, BOX, {kind: fields[f"PartType{kind}/Coordinates"] for kind in (1, 0)})
    snapshot.write()


@pytest.fixture(scope="module", params=[TYPES, NONE], ids=["both types", "a type without particles"])
def of_one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Fields]]:
    """The snapshot of one process."""
    name = tmp_path_factory.mktemp("one") / "s.hdf5"
    write(None, name, part(0, np.zeros(24, int), request.param))
    return name, request.param


def check_tables(file: h5py.File, alone: h5py.File, owners: np.ndarray, files: list[h5py.File]) -> None:
    """The rows of each cell, in the file that it names, are those of one process."""
    assert dict(file["Cells/Meta-data"].attrs).keys() == dict(alone["Cells/Meta-data"].attrs).keys()
    assert file["Cells/Centres"][...].tolist() == alone["Cells/Centres"][...].tolist()
    for kind in TYPES:
        for same in ("Counts", "MinPositions", "MaxPositions"):
            assert file[f"Cells/{same}/{kind}"].dtype == alone[f"Cells/{same}/{kind}"].dtype
            np.testing.assert_array_equal(file[f"Cells/{same}/{kind}"], alone[f"Cells/{same}/{kind}"])
        counts, first = alone[f"Cells/Counts/{kind}"][...], alone[f"Cells/OffsetsInFile/{kind}"][...]
        offsets, numbers = file[f"Cells/OffsetsInFile/{kind}"][...], file[f"Cells/Files/{kind}"][...]
        assert offsets.dtype == "i8" and numbers.dtype == "i4"
        for cell in range(24):
            assert len(files) == 1 or not counts[cell] or numbers[cell] == owners[cell]
            for name in TYPES[kind]:
                found = files[numbers[cell]][f"{kind}/{name}"][offsets[cell] : offsets[cell] + counts[cell]]
                wanted = alone[f"{kind}/{name}"][first[cell] : first[cell] + counts[cell]]
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("which", OWNERS)
def test_one_file_of_all_has_the_cells_of_all(
    tmp_path: Path, of_one: tuple[Path, dict[str, Fields]], which: str
) -> None:
    alone, types = of_one
    name = tmp_path / "s.hdf5"
    assert on_ranks(3, lambda comm: write(comm, name, part(comm.rank, OWNERS[which], types))) == [None] * 3
    with h5py.File(name) as file, h5py.File(alone) as one:
        check_tables(file, one, OWNERS[which], [file])
        assert not any(file[f"Cells/Files/{kind}"][...].any() for kind in TYPES)
    if which in ("slabs", "one"):  # the order of all particles is that of one process
        assert name.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize("file_each", [False, True])
def test_each_rank_sorts_its_particles(tmp_path: Path, file_each: bool) -> None:
    """The files are those of ranks that sort by hand."""

    def work(comm: ThreadComm, by_hand: bool) -> None:
        own = part(comm.rank, OWNERS["in turn"])
        fields = {path: array[np.random.default_rng(len(array)).permutation(len(array))] for path, array in own.items()}
        at = {kind: fields[f"PartType{kind}/Coordinates"] for kind in (0, 1)}
        if by_hand:
            orders = {f"PartType{kind}": penstock.cell_order(one, CELLS, BOX) for kind, one in at.items()}
            fields = {path: array[orders[path.split("/")[0]]] for path, array in fields.items()}
            at = {kind: fields[f"PartType{kind}/Coordinates"] for kind in (0, 1)}
        options: dict[str, Any] = {"file_each": file_each, "virtual_file": file_each}
        name = tmp_path / ("hand" if by_hand else "sorted") / "s.hdf5"
        snapshot = penstock.Snapshot(name, fields, device="host", comm=comm, **options)
        (snapshot.add_cells if by_hand else snapshot.sort_by_cells)(CELLS, BOX, at)
        snapshot.write()

    for by_hand, folder in ((True, "hand"), (False, "sorted")):
        (tmp_path / folder).mkdir()
        assert on_ranks(3, lambda comm, by_hand=by_hand: work(comm, by_hand)) == [None] * 3
    hand, found = (sorted((tmp_path / folder).iterdir()) for folder in ("hand", "sorted"))
    assert [one.name for one in hand] == [one.name for one in found] and len(hand) == (4 if file_each else 1)
    for one, other in zip(hand, found, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_datasets_without_a_row_a_particle_on_each_rank_stay_as_they_are(tmp_path: Path) -> None:
    """A rank that has as many rows as particles by chance would tear what the others write as it lies."""
    own = [part(rank, OWNERS["slabs"]) for rank in range(3)]
    own = [{path: np.ascontiguousarray(array[::-1]) for path, array in fields.items()} for fields in own]
    counts = [len(fields["PartType0/Coordinates"]) for fields in own]
    table = np.arange(counts[0])
    rows = [np.arange(count + rank) for rank, count in enumerate(counts)]

    def work(comm: ThreadComm) -> None:
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", own[comm.rank], device="host", comm=comm)
        snapshot.add_dataset("PartType0/Table", table, is_whole=True)
        snapshot.add_dataset("PartType0/Events", rows[comm.rank])
        snapshot.sort_by_cells(**given(comm, own[comm.rank]))
        snapshot.write()

    assert on_ranks(3, work) == [None] * 3
    with h5py.File(tmp_path / "s.hdf5") as file:
        np.testing.assert_array_equal(file["PartType0/Table"][...], table)
        np.testing.assert_array_equal(file["PartType0/Events"][...], np.concatenate(rows))
        assert (np.diff(cell_of(file["PartType0/Coordinates"][: counts[0]])) >= 0).all()


def sorted_rows(own: list[Fields]) -> np.ndarray:
    orders = [penstock.cell_order(fields["PartType0/Coordinates"], CELLS, BOX) for fields in own]
    ids = [fields["PartType0/ParticleIDs"][order] for fields, order in zip(own, orders, strict=True)]
    return np.concatenate(ids)


@pytest.mark.parametrize("file_each", [False, True])
def test_a_second_write_follows_one_that_found_a_folder_of_its_name(tmp_path: Path, file_each: bool) -> None:
    """The name of the virtual file, too, is tried before ranks write and publish files of their own."""
    own = [part(rank, OWNERS["in turn"]) for rank in range(3)]
    own = [{path: np.ascontiguousarray(array[::-1]) for path, array in fields.items()} for fields in own]
    name = tmp_path / "s.hdf5"
    name.mkdir()

    def work(comm: ThreadComm) -> None:
        options = {"file_each": file_each, "virtual_file": file_each}
        snapshot = penstock.Snapshot(name, own[comm.rank], device="host", comm=comm, **options)
        snapshot.sort_by_cells(**given(comm, own[comm.rank]))
        with pytest.raises(penstock.Error, match="something that is not a regular file has this name"):
            snapshot.write()
        comm.allgather(None)
        if comm.rank == 0:
            assert list(tmp_path.iterdir()) == [name]
            name.rmdir()
        comm.allgather(None)
        snapshot.write()

    assert on_ranks(3, work) == [None] * 3
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["PartType0/ParticleIDs"][...], sorted_rows(own))


def test_a_second_write_follows_one_whose_name_was_taken_at_last(tmp_path: Path) -> None:
    """Ranks other than 0, which gives the one file its name, have not ended before it has it."""
    own = [part(rank, OWNERS["in turn"]) for rank in range(3)]
    name = tmp_path / "s.hdf5"

    def work(comm: ThreadComm) -> None:
        snapshot = penstock.Snapshot(name, own[comm.rank], device="host", comm=comm, replace=False)
        snapshot.sort_by_cells(**given(comm, own[comm.rank]))
        fields = snapshot._given  # which the write asks for when the file is begun

        def taken() -> Any:
            name.write_text("of another program")
            return fields()

        if comm.rank == 0:
            snapshot._given = taken  # type: ignore[method-assign]
        with pytest.raises(penstock.Error, match="File exists"):
            snapshot.write()
        comm.allgather(None)
        if comm.rank == 0:
            assert name.read_text() == "of another program"
            name.unlink()
            snapshot._given = fields  # type: ignore[method-assign]
        comm.allgather(None)
        snapshot.write()

    assert on_ranks(3, work) == [None] * 3
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["PartType0/ParticleIDs"][...], sorted_rows(own))


def test_a_rank_that_sorts_where_others_add_cells_is_told(tmp_path: Path) -> None:
    def work(comm: ThreadComm) -> None:
        fields = part(comm.rank, OWNERS["slabs"])
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", fields, device="host", comm=comm)
        (snapshot.sort_by_cells if comm.rank == 1 else snapshot.add_cells)(**given(comm, fields))

    for rank, error in enumerate(on_ranks(3, work)):
        words = "process 0 adds cells, and process 1 sorts by cells" if rank == 1 else "process 1 sorts by cells, and"
        assert isinstance(error, penstock.Error) and words in str(error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("which", OWNERS)
def test_files_of_each_have_the_cells_of_all_and_so_has_the_virtual_one(
    tmp_path: Path, of_one: tuple[Path, dict[str, Fields]], which: str, virtual: bool
) -> None:
    alone, types = of_one
    options: dict[str, Any] = {"file_each": True, "virtual_file": virtual, "chunk_rows": 64, "checksums": True}
    fields = [part(rank, OWNERS[which], types) for rank in range(3)]
    ran = on_ranks(3, lambda comm: write(comm, tmp_path / "s.hdf5", fields[comm.rank], **options))
    assert ran == [None] * 3
    files = [h5py.File(tmp_path / f"s.{rank}.hdf5") for rank in range(3)]
    with h5py.File(alone) as one:
        for file in files:
            check_tables(file, one, OWNERS[which], files)
        for file in files:
            file.close()
        if virtual:
            with h5py.File(tmp_path / "s.hdf5") as file:
                check_tables(file, one, OWNERS[which], [file])
                assert not file["Cells/OffsetsInFile/PartType0"].is_virtual


def test_one_rank_and_ranks_without_particles_make_cells(tmp_path: Path) -> None:
    empty = {name: array[:0] for name, array in part(0, OWNERS["one"]).items()}
    for ranks in (1, 2):
        assert on_ranks(ranks, lambda comm: write(comm, tmp_path / "s.hdf5", empty)) == [None] * ranks
        with h5py.File(tmp_path / "s.hdf5") as file:
            assert not file["Cells/Counts/PartType0"][...].any() and file["Cells/Files/PartType1"].shape == (24,)
            assert (file["Cells/MinPositions/PartType0"][...] == np.finfo("f8").max).all()


def given(comm: ThreadComm, fields: Fields, **other: Any) -> dict[str, Any]:
    """The arguments of add_cells on this rank: rank 1 has others."""
    own = {0: fields["PartType0/Coordinates"], 1: fields["PartType1/Coordinates"]}
    return {"cells": CELLS, "box_size": BOX, "positions": own} | (other if comm.rank == 1 else {})


# What rank 1 does, and what all ranks tell.
WRONG: dict[str, tuple[Any, str]] = {
    "other cells": (
        lambda fields: {"cells": (2, 3, 4)},
        "process 0 gives cells .4, 3, 2. .* and process 1 cells .2, 3, 4.",
    ),
    "other box": (lambda fields: {"box_size": 9.0}, "a box .8.0, 9.0, 10.0. .* and process 1 .* a box .9.0, 9.0, 9.0."),
    "other types": (
        lambda fields: {"positions": {0: fields["PartType0/Coordinates"]}},
        "for the types .0, 1., and process 1 .* for the types .0.",
    ),
    "not sorted": (
        lambda fields: {"positions": {0: fields["PartType0/Coordinates"][::-1], 1: fields["PartType1/Coordinates"]}},
        "of PartType0 lies in cell .*, and the one before it in cell",
    ),
    "fewer": (lambda fields: {"positions": {0: np.zeros((2, 3)), 1: np.zeros((0, 3))}}, "and the cells are of 2"),
    "integers": (lambda fields: {"positions": {0: np.zeros((2, 3), int)}}, "give float32 or float64"),
    "no cells": (lambda fields: {"cells": (0, 1, 1)}, "give three numbers of cells"),
}


@pytest.mark.parametrize("file_each", [False, True])
@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_of_one_rank_is_told_on_all_and_no_cell_is_kept(tmp_path: Path, what: str, file_each: bool) -> None:
    other, words = WRONG[what]

    def work(comm: ThreadComm) -> None:
        fields = part(comm.rank, OWNERS["slabs"])
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", fields, device="host", comm=comm, file_each=file_each)
        with pytest.raises((penstock.Error, ValueError), match=words) as error:
            snapshot.add_cells(**given(comm, fields, **other(fields)))
        assert "\n" not in str(error.value)
        snapshot.write()

    assert on_ranks(3, work) == [None] * 3
    with h5py.File(tmp_path / ("s.0.hdf5" if file_each else "s.hdf5")) as file:
        assert set(file) == {"PartType0", "PartType1"}


@pytest.mark.parametrize("file_each", [False, True])
def test_a_cell_of_two_ranks_is_refused_on_all_and_both_are_named(tmp_path: Path, file_each: bool) -> None:
    owners = OWNERS["in turn"]
    words = "processes 1 and 2 both have particles of PartType0 in cell 22; give all"

    def work(comm: ThreadComm) -> None:
        fields = part(comm.rank, owners)
        if comm.rank == 2:  # it has one more particle, the last one of cell 22, which is of rank 1
            more = TYPES["PartType0"]["Coordinates"][cell_of(TYPES["PartType0"]["Coordinates"]) == 22][-1:]
            at = np.concatenate([fields["PartType0/Coordinates"], more])
            fields = {"PartType0/Coordinates": at[penstock.cell_order(at, CELLS, BOX)]}
        else:
            fields = {"PartType0/Coordinates": fields["PartType0/Coordinates"]}
        options: dict[str, Any] = {"file_each": file_each, "virtual_file": file_each}
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", fields, device="host", comm=comm, **options)
        with pytest.raises(penstock.Error, match=words):
            snapshot.add_cells(CELLS, BOX, {0: fields["PartType0/Coordinates"]})
        snapshot.write()

    assert on_ranks(3, work) == [None] * 3
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert set(file) == {"PartType0"}


def test_a_rank_that_writes_instead_is_told(tmp_path: Path) -> None:
    def work(comm: ThreadComm) -> None:
        fields = part(comm.rank, OWNERS["slabs"])
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", fields, device="host", comm=comm)
        if comm.rank != 1:
            snapshot.add_cells(**given(comm, fields))
        snapshot.write()

    for rank, error in enumerate(on_ranks(3, work)):
        words = "process 0 adds cells, and process 1 writes" if rank == 1 else "process 1 writes, and process"
        assert isinstance(error, penstock.Error) and words in str(error)
    assert list(tmp_path.iterdir()) == []


def test_masks_of_swiftsimio_load_a_part_of_the_box_from_a_virtual_file(tmp_path: Path) -> None:
    swiftsimio = pytest.importorskip("swiftsimio")
    name, gas = tmp_path / "s.hdf5", TYPES["PartType0"]
    options: dict[str, Any] = {"file_each": True, "virtual_file": True}
    assert on_ranks(3, lambda comm: write(comm, name, part(comm.rank, OWNERS["in turn"]), **options)) == [None] * 3
    mask = swiftsimio.mask(str(name))
    size = mask.metadata.boxsize
    mask.constrain_spatial([[0 * size[0], 0.4 * size[0]], None, [0.1 * size[2], 0.3 * size[2]]])
    found = swiftsimio.load(str(name), mask=mask)
    at, ids = gas["Coordinates"], found.gas.particle_ids.value
    inside = (at[:, 0] <= 0.4 * BOX[0]) & (at[:, 2] >= 0.1 * BOX[2]) & (at[:, 2] <= 0.3 * BOX[2])
    assert set(gas["ParticleIDs"][inside]) <= set(ids) and len(ids) < 700
    masses = dict(zip(gas["ParticleIDs"], gas["Masses"], strict=True))
    assert [masses[one] for one in ids] == list(found.gas.masses.value)
