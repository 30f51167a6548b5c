"""Restarts from Python: what is written is read bit by bit, by h5py too, in any number of processes; damage is told and
the older generation taken."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.formats.loading import UnreadableWarning

ROWS = 100_003  # of 24 bytes: more than two blocks


def opened(path: Path, **options: Any) -> ps.Restart:
    return ps.Restart(path / "restart", device="host", durable=False, **options)


def particles() -> np.ndarray:
    return np.arange(3 * ROWS, dtype="f8").reshape(ROWS, 3)


def turn_bit(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 16
    file.write_bytes(data)


def test_what_was_written_is_read_into_arrays_of_the_same_type_and_shape(tmp_path: Path) -> None:
    restart, x, ids = opened(tmp_path), particles(), np.arange(7, dtype="u8")
    assert not restart.find()
    attrs = {"step": 12, "time": 0.25, "dice": np.arange(4, dtype="u8"), "model": "flöw"}
    facts = restart.write({"gas/x": x, "ids": ids, "none": np.empty((0, 3), "f4")}, attrs=attrs)
    assert (facts.generation, facts.passed_over, facts.data_bytes) == (1, "", x.nbytes + ids.nbytes)

    other = opened(tmp_path)
    assert other.find() and other.generation == 1
    assert other.shapes == {"gas/x": (ROWS, 3), "ids": (7,), "none": (0, 3)}
    assert other.dtypes == {"gas/x": "float64", "ids": "uint64", "none": "float32"}
    found, found_ids = np.empty_like(x), np.empty_like(ids)
    read = other.read({"gas/x": found, "ids": found_ids})
    assert np.array_equal(found, x) and np.array_equal(found_ids, ids)
    assert sum(path["bytes"] for path in read.evidence["paths"]) == read.data_bytes
    assert read.evidence["predicted_seconds"] != 0, "None where nothing predicts it"
    assert other.attrs["step"] == 12 and other.attrs["time"] == 0.25 and other.attrs["model"] == "flöw"
    assert np.array_equal(other.attrs["dice"], np.arange(4)) and other.attrs["dice"].dtype == "uint64"


def test_the_files_are_hdf5_and_have_the_crc_of_each_mebibyte(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    x = particles()
    opened(tmp_path).write({"gas/x": x, "m": x[:, 0].copy()}, attrs={"step": 3, "model": "flow"})
    with h5py.File(tmp_path / "restart.0") as file:
        assert np.array_equal(file["gas/x"][...], x) and np.array_equal(file["m"][...], x[:, 0])
        assert file.attrs["step"] == 3 and file.attrs["model"] == "flow"
        assert file["penstock"].attrs["generation"] == 1
        data = [x.tobytes(), x[:, 0].tobytes()]
        blocks = [one[at : at + 2**20] for one in data for at in range(0, len(one), 2**20)]
        assert file["penstock/checksums"][...].tolist() == [zlib.crc32(block) for block in blocks]


def test_arrays_of_the_device_are_taken_and_filled(tmp_path: Path) -> None:
    context = ps.Context("host")
    restart = ps.Restart(tmp_path / "restart", context=context, memory="device", durable=False)
    x = ps.Array(context.allocate(8000), "float64", (1000,))
    context.copy_to_device(x.buffer, np.arange(1000.0))
    restart.write({"x": x})
    context.copy_to_device(x.buffer, np.zeros(1000))
    assert restart.find()
    restart.read({"x": x})
    assert np.array_equal(np.from_dlpack(x), np.arange(1000.0))
    with pytest.raises(ps.Error, match="'x'.*memory"):
        restart.write({"x": np.arange(1000.0)})


def test_arrays_that_were_loaded_on_the_host_are_written(tmp_path: Path) -> None:
    values = np.arange(1000.0)
    np.save(tmp_path / "x.npy", values)
    ours = ps.load(tmp_path / "x.npy", device="host")
    ps.Restart(tmp_path / "run", device="host").write({"x": ours})
    read = np.zeros_like(values)
    ps.Restart(tmp_path / "run", device="host").read({"x": read})
    assert (read == values).all()


def test_damage_is_told_by_a_warning_and_the_older_generation_is_read(tmp_path: Path) -> None:
    restart, x = opened(tmp_path), particles()
    restart.write({"x": x}, attrs={"step": 1})
    restart.write({"x": x + 1}, attrs={"step": 2})
    turn_bit(tmp_path / "restart.1", 1_500_000)
    found = np.empty_like(x)
    with pytest.warns(UnreadableWarning, match=r"generation 1 was taken; .*restart.1: generation 2: field 'x'"):
        facts = restart.read({"x": found})
    assert facts.generation == 1 and "checksum" in facts.passed_over and np.array_equal(found, x)
    assert restart.attrs["step"] == 1
    turn_bit(tmp_path / "restart.0", 1_500_000)
    with pytest.raises(ps.Error, match=r"no generation is whole: .*restart.0.*restart.1"):
        opened(tmp_path).read({"x": found})


def test_a_name_means_the_same_files_wherever_the_program_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    restart = ps.Restart("restart", device="host", durable=False)
    monkeypatch.chdir(elsewhere)
    restart.write({"x": np.arange(3.0)})
    assert (tmp_path / "restart.0").exists() and not any(elsewhere.iterdir())
    assert restart.find()


def test_a_folder_that_is_not_there_is_no_begin(tmp_path: Path) -> None:
    restart = opened(tmp_path / "mistyped")
    with pytest.raises(ps.Error, match="there is no folder .*mistyped; make it, or check the name"):
        restart.find()
    (tmp_path / "mistyped").mkdir()
    assert not restart.find()


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    restart, x = opened(tmp_path), np.arange(6.0).reshape(2, 3)
    with pytest.raises(ps.Error, match="there is no generation"):
        restart.read({"x": x})
    with pytest.raises(TypeError, match="'x' does not have its elements one behind the other"):
        restart.write({"x": x.T})
    with pytest.raises(TypeError, match="'t' is a float"):
        restart.write({"t": 1.5})
    with pytest.raises(TypeError, match="order of this machine"):
        restart.write({"x": x.astype(">f8")})
    with pytest.raises(TypeError, match="attribute 'a'"):
        restart.write({"x": x}, attrs={"a": {}})
    with pytest.raises(ValueError, match="which are no fields"):
        restart.write({"x": x}, boxes={"y": ((2, 3), (0, 0))})
    with pytest.raises(ps.Error, match="each element of each field once"):
        restart.write({"x": x}, boxes={"x": ((4, 3), (0, 0))})
    assert not any(tmp_path.iterdir())
    restart.write({"x": x})
    with pytest.raises(ps.Error, match="'x' is float64 .2, 3. in generation 1"):
        restart.read({"x": x[0]})
    with pytest.raises(ps.Error, match="no field 'y' in generation 1"):
        restart.read({"y": x})
    for constant in (np.frombuffer(bytes(x.nbytes)).reshape(x.shape), np.broadcast_to(0.0, x.shape), np.float64(0)):
        with pytest.raises(ValueError, match="'x' is read-only"):
            restart.read({"x": constant})
        assert not np.any(constant)


WRONG_WRITES: list[tuple[dict[str, Any], str]] = [
    ({"fields": 3}, "fields are a dict by name, not int"),
    ({"attrs": [1]}, "attrs are a dict by name, not list"),
    ({"attrs": {"a": [[1], [2, 3]]}}, "attribute 'a' is [[1], [2, 3]]; give text, a number or an array of numbers"),
    ({"boxes": 3}, "boxes are a dict by name, not int"),
    ({"boxes": {"x": 3}}, "the box of field 'x' is 3; give (shape of the whole field, where the array begins in it)"),
    ({"boxes": {"x": ((2.5, 3), (0, 0))}}, "the shape of field 'x' is a list of whole numbers, not (2.5, 3)"),
    ({"boxes": {"x": ((2, 3), (-1, 0))}}, "the start of field 'x' is (-1, 0); numbers are from 0 to 2^63-1"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG_WRITES)
def test_what_is_no_dict_and_no_box_is_told_by_its_name(tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    restart, x = opened(tmp_path), np.arange(6.0).reshape(2, 3)
    with pytest.raises((TypeError, ValueError)) as told:
        restart.write(**{"fields": {"x": x}, **wrong})
    assert str(told.value) == words
    assert not any(tmp_path.iterdir())
    restart.write({"x": x})  # the model goes on


def test_options_that_make_no_sense_are_told_by_their_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="comm= is a communicator as mpi4py has them, and a int has no rank"):
        ps.Restart(tmp_path / "restart", device="host", comm=3)
    with pytest.raises(TypeError, match="durable is True or False, not 'maybe'"):
        ps.Restart(tmp_path / "restart", device="host", durable="maybe")  # type: ignore[arg-type]


class Threads:
    """A communicator as mpi4py's, of threads."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier, self.said = size, threading.Barrier(size, timeout=60), [None] * size
        self._rank = threading.local()

    @property
    def rank(self) -> int:
        return self._rank.number

    def allgather(self, value: Any) -> list[Any]:
        self.said[self.rank] = value
        self.barrier.wait()
        found = list(self.said)
        self.barrier.wait()
        return found

    def bcast(self, value: Any, root: int) -> Any:
        return self.allgather(value)[root]

    def run(self, work: Callable[[int], Any]) -> list[Any]:
        """What it gave in each process, or raised."""
        ends: list[Any] = [None] * self.size

        def one(rank: int) -> None:
            self._rank.number = rank
            try:
                ends[rank] = work(rank)
            except Exception as error:
                ends[rank] = error

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ends


def share(rank: int, size: int) -> slice:
    return slice(ROWS * rank // size, ROWS * (rank + 1) // size)


def write_by(size: int, path: Path, value: np.ndarray, step: Callable[[int], Any] = lambda _: 1) -> list[Any]:
    comm = Threads(size)

    def work(rank: int) -> Any:
        rows = share(rank, size)
        boxes = {"x": ((ROWS, 3), (rows.start, 0))}
        return opened(path, comm=comm).write({"x": value[rows]}, attrs={"step": step(rank)}, boxes=boxes)

    return comm.run(work)


def read_by(size: int, path: Path, into: np.ndarray) -> list[Any]:
    comm = Threads(size)

    def work(rank: int) -> Any:
        rows = share(rank, size)
        return opened(path, comm=comm).read({"x": into[rows]}, boxes={"x": ((ROWS, 3), (rows.start, 0))})

    return comm.run(work)


@pytest.mark.parametrize(("writers", "readers"), [(1, 3), (3, 1), (2, 5), (5, 2)])
def test_any_number_of_processes_goes_on(tmp_path: Path, writers: int, readers: int) -> None:
    x = particles()
    assert [end.generation for end in write_by(writers, tmp_path, x)] == [1] * writers
    found = np.zeros_like(x)
    assert [end.generation for end in read_by(readers, tmp_path, found)] == [1] * readers
    assert np.array_equal(found, x)


def test_all_processes_pass_over_what_one_finds_damaged(tmp_path: Path) -> None:
    x = particles()
    write_by(2, tmp_path, x)
    write_by(3, tmp_path, x + 1)
    turn_bit(tmp_path / "restart.1", 100_000)  # the rows of the first process alone
    found = np.zeros_like(x)
    with pytest.warns(UnreadableWarning):
        ends = read_by(4, tmp_path, found)
    assert [end.generation for end in ends] == [1] * 4 and np.array_equal(found, x)


def test_processes_that_disagree_are_refused_on_all_and_nothing_is_written(tmp_path: Path) -> None:
    ends = write_by(3, tmp_path, particles(), step=lambda rank: int(rank == 2))
    assert all("processes 0 and 2 do not agree" in str(end) for end in ends)
    ends = write_by(2, tmp_path, particles()[: ROWS // 2])
    assert all(isinstance(end, ps.Error) for end in ends)
    assert not any(tmp_path.iterdir())


def test_half_a_letter_is_told_in_words(tmp_path: Path) -> None:
    restart, x = opened(tmp_path), particles()
    for fields, attrs, words in (
        ({"\ud800": x}, {}, "the name of a field '\\ud800' holds"),
        ({"x": x}, {"\ud800": 1}, "the name of an attribute '\\ud800' holds"),
        ({"x": x}, {"a": "\ud800"}, "attribute 'a': its text '\\ud800' holds"),
    ):
        with pytest.raises(ValueError) as caught:
            restart.write(fields, attrs)
        assert words in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="the name of a field is a str, not int"):
        restart.write({3: x})  # type: ignore[dict-item]
    assert not any(tmp_path.iterdir())


def test_an_attribute_that_one_process_cannot_write_is_told_on_all(tmp_path: Path) -> None:
    ends = write_by(3, tmp_path, particles(), step=lambda rank: 1j if rank == 1 else 1)
    for rank, end in enumerate(ends):
        assert isinstance(end, TypeError if rank == 1 else ps.Error) and "attribute 'step' is 1j" in str(end)
    assert not any(tmp_path.iterdir())
