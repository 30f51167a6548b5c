"""Several processes write one snapshot: one file of all, or one each and a virtual one; uneven and empty ranks; a rank
that fails or dies leaves the files as they were. Ranks are threads, and processes where one dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from ranks.threads import ThreadComm, on_ranks

import penstock

COUNTS = {
    "even": [5, 5, 5],
    "uneven": [7, 1, 40],
    "empty first": [0, 3, 2],
    "empty last": [30_000, 3, 0],
    "none": [0] * 3,
}
PRESET = {"box_size": 10.0, "time": 0.5}
LIMIT_S = 60


def part(rank: int, counts: list[int]) -> dict[str, np.ndarray]:
    """The particles of a rank: those of all, from its first one on."""
    first, count = sum(counts[:rank]), counts[rank]
    ids = np.arange(first, first + count, dtype="u8")
    at = np.stack([ids, 2 * ids, 3 * ids], axis=1).astype("f8")
    return {
        "PartType1/Coordinates": at,
        "PartType1/ParticleIDs": ids,
        "PartType0/Masses": ids[ids % 2 == 0].astype("f4"),
    }


def write(comm: ThreadComm, name: Path, counts: list[int], layout: str = "gadget4", **options: Any) -> Any:
    snapshot = penstock.Snapshot(name, part(comm.rank, counts), device="host", comm=comm, **options)
    snapshot.add_dataset("table", np.arange(4.0), is_whole=True)
    snapshot.use_preset(layout, **PRESET)
    snapshot.set_attrs("Header", {"Comment": "all ranks say it"})
    return snapshot.write()


def check(file: h5py.File, parts: list[dict[str, np.ndarray]]) -> None:
    for path in parts[0]:
        np.testing.assert_array_equal(file[path][()], np.concatenate([one[path] for one in parts]))
    np.testing.assert_array_equal(file["table"][...], np.arange(4.0))
    assert file["Header"].attrs["Comment"] == b"all ranks say it"


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("what", COUNTS)
def test_one_file_has_the_rows_of_all(tmp_path: Path, what: str, durable: bool) -> None:
    counts, name = COUNTS[what], tmp_path / "s.hdf5"
    name.write_bytes(b"old")
    facts = on_ranks(3, lambda comm: write(comm, name, counts, durable=durable))
    parts = [part(rank, counts) for rank in range(3)]
    with h5py.File(name) as file:
        check(file, parts)
        assert file["Header"].attrs["NumPart_ThisFile"][1] == sum(counts) == file["Header"].attrs["NumPart_Total"][1]
        assert file["Header"].attrs["NumFilesPerSnapshot"] == 1
    own = [sum(one.nbytes for one in some.values()) for some in parts]
    assert [one.data_bytes for one in facts] == [own[0] + 32, own[1], own[2]]
    assert [one.name for one in tmp_path.iterdir()] == ["s.hdf5"]
    alone = tmp_path / "alone.hdf5"
    on_ranks(1, lambda comm: write(comm, alone, [sum(counts)]))
    assert alone.read_bytes() == name.read_bytes()


@pytest.mark.parametrize("layout", ["gadget4", "swift", "arepo"])
@pytest.mark.parametrize("what", COUNTS)
def test_a_file_each_and_a_virtual_one_of_them(tmp_path: Path, what: str, layout: str) -> None:
    counts, name = COUNTS[what], tmp_path / "snap_042.hdf5"
    on_ranks(3, lambda comm: write(comm, name, counts, layout, file_each=True, virtual_file=True))
    parts = [part(rank, counts) for rank in range(3)]
    assert sorted(one.name for one in tmp_path.iterdir()) == [*(f"snap_042.{i}.hdf5" for i in range(3)), name.name]
    for rank, own in enumerate(parts):
        with h5py.File(tmp_path / f"snap_042.{rank}.hdf5") as file:
            check(file, [own])
            header = file["Header"].attrs
            assert header["NumPart_ThisFile"][1] == counts[rank] and header["NumPart_Total"][1] == sum(counts)
            assert header["NumFilesPerSnapshot"] == 3
            if layout == "swift":
                assert header["ThisFile"] == [rank] and header["Virtual"] == [0]
                assert file["PartType1"].attrs["NumberOfParticles"] == [counts[rank]]
                assert file["PartType1"].attrs["TotalNumberOfParticles"] == [sum(counts)]
    with h5py.File(name) as file:
        check(file, parts)
        header = file["Header"].attrs
        assert header["NumPart_ThisFile"][1] == sum(counts) == header["NumPart_Total"][1]
        assert header["NumFilesPerSnapshot"] == 1 and file["PartType1/Coordinates"].is_virtual == any(counts)
        if layout == "swift":
            assert header["Virtual"] == [1] and header["ThisFile"] == [0]
            assert isinstance(file.get("DMParticles", getlink=True), h5py.SoftLink)
    with penstock.open(name, device="host") as ours:
        found = ours["PartType1/Coordinates"][...].to_numpy()
        np.testing.assert_array_equal(found, np.concatenate([one["PartType1/Coordinates"] for one in parts]))


@pytest.mark.parametrize("virtual", [True, False])
def test_a_set_of_files_is_refused_with_the_name_of_the_file_that_shows_them(tmp_path: Path, virtual: bool) -> None:
    whole = tmp_path / "s.hdf5"
    on_ranks(2, lambda comm: write(comm, whole, [3, 4], file_each=True, virtual_file=virtual))
    with pytest.raises(penstock.Error) as error:
        penstock.open(tmp_path / "s.#.hdf5", device="host")
    there = "open that one" if virtual else "write it too, by virtual_file"
    assert f"(file_each) is read by the virtual file of them, {whole}: {there}" in str(error.value)


def test_chunks_with_sums_in_a_file_each(tmp_path: Path) -> None:
    counts = [70, 0, 131]
    options: dict[str, Any] = {"file_each": True, "virtual_file": True, "chunk_rows": 64, "checksums": True}
    on_ranks(3, lambda comm: write(comm, tmp_path / "s.hdf5", counts, "swift", **options))
    with h5py.File(tmp_path / "s.2.hdf5") as file:
        assert file["PartType1/Coordinates"].fletcher32 and file["PartType1/Coordinates"].chunks == (64, 3)
    with h5py.File(tmp_path / "s.hdf5") as file:
        check(file, [part(rank, counts) for rank in range(3)])


def test_what_ranks_may_not_do_is_told_on_all(tmp_path: Path) -> None:
    name, counts = tmp_path / "s.hdf5", [3, 4, 5]
    name.write_bytes(b"old")

    def other_attribute(comm: ThreadComm) -> None:
        snapshot = penstock.Snapshot(name, part(comm.rank, counts), device="host", comm=comm)
        snapshot.set_attrs("/", {"rank": comm.rank})
        snapshot.write()

    def no_folder(comm: ThreadComm) -> None:
        write(comm, tmp_path / "none" / "s.hdf5", counts)

    def chunks(comm: ThreadComm) -> None:
        write(comm, name, counts, chunk_rows=2)

    def virtual(comm: ThreadComm) -> None:
        write(comm, name, counts, virtual_file=True)

    for work, words in (
        (other_attribute, "the processes define different files"),
        (no_folder, "No such file"),
        (chunks, "has chunks, and rows of several processes in one file"),
        (virtual, "a virtual file shows the files of all processes, and they write one"),
    ):
        for error in on_ranks(3, work):
            assert isinstance(error, penstock.Error), error
            assert words in str(error) and "\n" not in str(error)
    assert name.read_bytes() == b"old" and [one.name for one in tmp_path.iterdir()] == ["s.hdf5"]


WRONG: dict[str, tuple[Any, type[Exception]]] = {
    "is not in C order": (np.zeros((5, 3), order="F"), ValueError),
    "is text of any length": (np.array(["a", "bc"], object), TypeError),
    "in the order of this machine": (np.zeros((5, 3), ">f8"), TypeError),
    "has elements of": (np.zeros(3, "M8[s]"), TypeError),
}


@pytest.mark.parametrize("how", ["made", "added", "written"])
@pytest.mark.parametrize("words", WRONG)
def test_a_mistake_of_one_rank_is_told_on_all(tmp_path: Path, words: str, how: str) -> None:
    wrong, kind = WRONG[words]

    def work(comm: ThreadComm) -> None:
        fields = {"b": np.ones(3), "a": wrong if comm.rank == 1 else np.zeros((5, 3))}
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", fields if how == "made" else None, device="host", comm=comm)
        if how == "added":
            snapshot.add_dataset("a", fields["a"])
        snapshot.write(fields if how == "written" else None)

    for rank, error in enumerate(on_ranks(3, work)):
        assert isinstance(error, kind if rank == 1 else penstock.Error), error
        assert words in str(error) and "\n" not in str(error)
        assert rank == 1 or "process 1: " in str(error)
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_cannot_open_is_told_on_all(tmp_path: Path) -> None:
    def work(comm: ThreadComm) -> None:
        penstock.Snapshot(tmp_path / "s.hdf5", device="host", comm=comm, path="none" if comm.rank == 2 else "auto")

    for rank, error in enumerate(on_ranks(3, work)):
        assert isinstance(error, Exception) and "none" in str(error)
        assert rank == 2 or (isinstance(error, penstock.Error) and "process 2: " in str(error))


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "adds no other dataset, and process 1 'b', rows of float64": ({}, {"b": np.ones(3)}),
    "adds 'b', rows of float64, and process 1 no other dataset": ({"b": np.ones(3)}, {}),
    "adds 'b', one float64, and process 1 'b', rows of float64": ({"b": np.float64(3)}, {"b": np.ones(3)}),
    "adds 'b', rows of float64, and process 1 'b', rows of float64 (2,)": (
        {"b": np.ones(3)},
        {"b": np.ones((3, 2))},
    ),
    "adds 'b', rows of float64, and process 1 'b', rows of float32": ({"b": np.ones(3)}, {"b": np.ones(3, "f4")}),
    "adds 'b', rows of float64, and process 1 'c', rows of float64": ({"b": np.ones(3)}, {"c": np.ones(3)}),
}


@pytest.mark.parametrize("words", DIFFERENT)
def test_datasets_that_differ_between_ranks_are_named_on_all(tmp_path: Path, words: str) -> None:
    first, second = DIFFERENT[words]

    def work(comm: ThreadComm) -> None:
        own = second if comm.rank == 1 else first
        penstock.Snapshot(tmp_path / "s.hdf5", {"a": np.ones(2), **own}, device="host", comm=comm).write()

    for error in on_ranks(3, work):
        assert isinstance(error, penstock.Error), error
        assert f"the processes define different files: process 0 {words}; add the same" in str(error)
    assert list(tmp_path.iterdir()) == []


def test_ranks_that_call_other_functions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    def work(comm: ThreadComm) -> None:
        snapshot = penstock.Snapshot(tmp_path / "s.hdf5", {"a": np.ones(2)}, device="host", comm=comm)
        if comm.rank == 0:
            snapshot.add_dataset("b", np.ones(2))
        snapshot.write()

    for rank, error in enumerate(on_ranks(3, work)):
        assert isinstance(error, penstock.Error), error
        assert ("process 1 writes, and process 0 adds a dataset" in str(error)) == (rank == 0)
        assert ("process 0 adds a dataset, and process" in str(error)) == (rank != 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_each", [False, True])
@pytest.mark.parametrize("failing", [0, 2])
def test_a_rank_that_fails_is_named_on_all_and_leaves_the_old_files(
    tmp_path: Path, failing: int, file_each: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, counts = tmp_path / "s.hdf5", [3, 4, 5]
    options = {"file_each": file_each, "virtual_file": file_each}
    on_ranks(3, lambda comm: write(comm, name, counts, **options))
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}

    def work(comm: ThreadComm) -> None:
        snapshot = penstock.Snapshot(name, part(comm.rank, counts), device="host", comm=comm, **options)
        if comm.rank == failing:
            monkeypatch.setattr(snapshot, "_given", lambda: [("PartType1/Coordinates", np.zeros(1), 0, 8)])
        snapshot.write()

    for rank, error in enumerate(on_ranks(3, work)):
        assert isinstance(error, penstock.Error) and "is given 8 bytes" in str(error)
        assert rank == failing or f"process {failing}: " in str(error)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


DYING = """
import os, sys, time
from pathlib import Path
import numpy as np, penstock
from penstock import _core
name, rank = sys.argv[1], int(sys.argv[2])
snapshot = penstock.Snapshot(name, device="host")
raw = _core.snapshot(penstock.Context("host")._raw, name, memory="host", process=rank, processes=2)
raw.add_dataset(path="x", dtype="float64", shape=[1000], process_rows=[1000, 1000])
if rank == 0:
    raw.begin(None)
    print(raw.place(), flush=True)
else:
    raw.begin(sys.argv[3])
raw.write([("x", np.full(1000, 7.0), 0, 8000)])
print("written", flush=True)
if sys.argv[4:] == ["dies"]:
    os.kill(os.getpid(), 9)
sys.stdin.readline()
if rank == 0:
    raw.commit()
"""


def started(name: Path, *arguments: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", DYING, str(name), *arguments], **pipes)


@pytest.mark.parametrize("dies", [True, False])
def test_processes_of_their_own_and_one_that_dies(tmp_path: Path, dies: bool) -> None:
    name = tmp_path / "s.hdf5"
    name.write_bytes(b"old")
    with started(name, "0", "", *(["dies"] if dies else [])) as first:
        assert first.stdout is not None
        place = first.stdout.readline().strip()
        assert Path(place).parent == tmp_path and name.read_bytes() == b"old"
        if not dies:
            with started(name, "1", place) as second:
                second.communicate("go\n", timeout=LIMIT_S)
            assert second.returncode == 0 and name.read_bytes() == b"old"
        first.communicate("go\n", timeout=LIMIT_S)
    assert (first.returncode == -9) == dies
    assert (name.read_bytes() == b"old") == dies
    on_ranks(2, lambda comm: penstock.Snapshot(name, {"x": np.ones(3)}, device="host", comm=comm).write())
    with h5py.File(name) as file:
        assert list(file["x"]) == [1.0] * 6
    assert [one.name for one in tmp_path.iterdir()] == ["s.hdf5"]  # also what the dead process left is gone


def test_the_calls_of_several_processes_are_in_order(tmp_path: Path) -> None:
    from penstock import _core

    context = penstock.Context("host")._raw
    raw = _core.snapshot(context, tmp_path / "s.hdf5", memory="host", process=1, processes=2)
    raw.add_dataset(path="x", dtype="float64", shape=[2], process_rows=[1, 2])
    for call, words in (
        (lambda: raw.write([]), "the file is not begun"),
        (lambda: raw.commit(), "the file is not begun"),
        (lambda: raw.begin(None), "no place of process 0"),
        (lambda: raw.begin(tmp_path / "none"), "No such file"),
        (lambda: raw.add_dataset(path="y", dtype="float64", shape=[2], process_rows=[2]), "of 1 processes, and there"),
        (lambda: raw.add_dataset(path="y", dtype="float64", shape=[3], process_rows=[1, 2]), "has 3 rows here"),
    ):
        with pytest.raises(penstock.Error, match=words):
            call()
    with pytest.raises(penstock.Error, match="process 2 of 2; number them from 0 on"):
        _core.snapshot(context, tmp_path / "s.hdf5", memory="host", process=2, processes=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_a_preset_whose_name_is_taken_is_left_out_whole(tmp_path: Path, processes: int) -> None:
    def work(comm: ThreadComm, folder: Path, uses_preset: bool) -> None:
        fields = {"PartType0/Coordinates": np.zeros((4, 3)), "GasParticles": np.arange(3)}
        several: dict[str, Any] = {"comm": comm, "file_each": True, "virtual_file": True} if processes > 1 else {}
        snapshot = penstock.Snapshot(folder / "s.hdf5", fields, device="host", **several)
        if uses_preset:
            with pytest.raises(penstock.Error, match="GasParticles"):
                snapshot.use_preset("swift", box_size=1)
        snapshot.write()

    for folder in ("with", "without"):
        (tmp_path / folder).mkdir()
        ran = on_ranks(processes, lambda comm, to=folder: work(comm, tmp_path / to, to == "with"))
        assert ran == [None] * processes
    names = sorted(one.name for one in (tmp_path / "with").iterdir())
    assert len(names) == (3 if processes > 1 else 1)
    for one in names:
        assert (tmp_path / "with" / one).read_bytes() == (tmp_path / "without" / one).read_bytes(), one
