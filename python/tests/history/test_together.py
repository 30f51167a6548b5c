"""Several processes write one history: each its box, uneven and empty ones too, in each format. What they do not agree
about is refused by all, and where one fails all have its message. Ranks are threads here; see test_mpi4py.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks.threads import ThreadComm, on_ranks

import penstock
from penstock.history import together
from penstock.history.history import History
from penstock.history.together import HistoryRanks

COLUMNS, STEPS = 30, 3
ENDS = {
    "one": [12],
    "equal": [4, 8, 12],
    "shorter": [5, 10, 12],
    "empty": [3, 3, 9, 12],
    "first is empty": [0, 6, 12, 12],
    "eight": [2, 4, 6, 8, 10, 12, 12, 12],
}
FORMATS = [("zarr", "zstd"), ("zarr", None), ("raw", None), ("cdf5", None), ("netcdf4", None), ("hdf5", None)]


def wanted(rows: int, step: int) -> np.ndarray:
    y, x = np.ogrid[:rows, :COLUMNS]
    return (1000 * step + 100 * y + x).astype("f4")


def opened(comm: ThreadComm, path: Path, ends: list[int], **options: Any) -> tuple[History, slice]:
    """Its history, and the rows of its box."""
    rows = slice(ends[comm.rank - 1] if comm.rank else 0, ends[comm.rank])
    history = penstock.History(path, device="host", comm=comm, encode_threads=1, **options)
    box = {"global_shape": (ends[-1], COLUMNS), "start": (rows.start, 0)}
    history.constant("x", np.arange(COLUMNS), ["x"])
    history.define("T", ["y", "x"], shape=(rows.stop - rows.start, COLUMNS), **box)
    history.define("mean", ["y", "x"], like=np.zeros((rows.stop - rows.start, COLUMNS)), statistic="mean", **box)
    history.define("level", ["z"], shape=[3])
    return history, rows


def put(history: History, field: np.ndarray, step: int) -> None:
    history.put("T", np.ascontiguousarray(field))
    history.put("mean", field.astype("f8") - 1)
    history.put("mean", field.astype("f8") + 1)
    history.put("level", np.full(3, step, "f4"))


def write(comm: ThreadComm, path: Path, ends: list[int], **options: Any) -> penstock.HistoryFacts:
    with opened(comm, path, ends, **options)[0] as history:
        rows = slice(ends[comm.rank - 1] if comm.rank else 0, ends[comm.rank])
        for step in range(1, STEPS + 1):
            put(history, wanted(ends[-1], step)[rows], step)
            history.end_step(10.0 * step)
        history.wait()
        return history.facts()


def check(path: Path, rows: int, steps: int = STEPS) -> None:
    with penstock.open(path, device="host") as file:
        assert file["T"].shape == (steps, rows, COLUMNS)
        for step in range(steps):
            for name in ("T", "mean"):
                assert np.array_equal(file[name][step].to_numpy(), wanted(rows, step + 1)), name
            assert np.array_equal(file["level"][step].to_numpy(), np.full(3, step + 1, "f4"))
        assert np.array_equal(file["time"][...].to_numpy(), 10.0 * np.arange(1, steps + 1))


@pytest.mark.parametrize(("form", "compression"), FORMATS, ids=lambda one: str(one))
@pytest.mark.parametrize("what", ENDS)
def test_all_write_one_file_and_each_its_box(tmp_path: Path, what: str, form: str, compression: str | None) -> None:
    ends, path = ENDS[what], tmp_path / "run"
    told = on_ranks(len(ends), lambda comm: write(comm, path, ends, format=form, compression=compression))
    assert [one.steps_published for one in told] == [STEPS] * len(ends), told
    assert [one.steps_written for one in told] == [STEPS] * len(ends)
    check(path, 12)
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "raw"])
def test_boxes_of_any_length_are_one_file_where_nothing_is_compressed(tmp_path: Path, form: str) -> None:
    ends = [1000 * (rank + 1) // 7 for rank in range(7)]
    told = on_ranks(7, lambda comm: write(comm, tmp_path / "run", ends, format=form, slots=comm.rank % 3))
    assert all(isinstance(one, penstock.HistoryFacts) for one in told), told
    check(tmp_path / "run", 1000)


def refused(told: list[Any], words: str) -> None:
    for one in told:
        assert isinstance(one, penstock.Error) and words in str(one), told


@pytest.mark.parametrize("form", ["netcdf4", "hdf5"])
def test_one_file_of_compressed_data_is_refused_with_what_to_use_instead(tmp_path: Path, form: str) -> None:
    told = on_ranks(2, lambda comm: write(comm, tmp_path / "run", [6, 12], format=form, compression="zstd"))
    refused(told, "use the format zarr; or give each process a file of its own, as history.pe000000.nc")
    assert not any(tmp_path.iterdir())


def test_definitions_that_differ_are_refused_before_there_is_a_file(tmp_path: Path) -> None:
    def differing(comm: ThreadComm) -> None:
        history, _ = opened(comm, tmp_path / "run", [6, 12], format="zarr", attrs={"member": comm.rank})
        history.begin()

    refused(on_ranks(2, differing), "processes 0 and 1 define different files; give the same names")
    assert not any(tmp_path.iterdir())


def test_a_store_that_cannot_be_cut_is_refused_by_all_and_an_older_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "run"
    on_ranks(2, lambda comm: write(comm, path, [6, 12], format="zarr"))
    told = on_ranks(3, lambda comm: write(comm, path, [333, 667, 1000], format="zarr"))
    refused(told, "give each process 334 along it")
    check(path, 12)


def test_times_that_differ_are_refused_and_the_steps_before_stay(tmp_path: Path) -> None:
    def late(comm: ThreadComm) -> None:
        with opened(comm, tmp_path / "run", [6, 12], format="zarr")[0] as history:
            for step in (1, 2):
                put(history, wanted(12, step)[6 * comm.rank : 6 * comm.rank + 6], step)
                history.end_step(10.0 * step + (comm.rank if step == 2 else 0))
                if step == 1:
                    history.wait()

    refused(on_ranks(2, late), "processes 0 and 1 give different times")
    check(tmp_path / "run", 12, 1)


def test_what_one_rank_did_not_put_is_told_to_all_by_the_end_of_the_step(tmp_path: Path) -> None:
    def forgetful(comm: ThreadComm) -> None:
        history, rows = opened(comm, tmp_path / "run", [6, 12], format="zarr")
        put(history, wanted(12, 1)[rows], 1)
        history.end_step(10.0)
        history.wait()
        history.put("level", np.zeros(3, "f4"))
        if comm.rank == 0:
            history.put("T", wanted(12, 2)[rows])
            history.put("mean", wanted(12, 2)[rows].astype("f8"))
        else:
            with pytest.raises(penstock.Error, match="defined for arrays of shape"):
                history.put("T", wanted(12, 2))
        with pytest.raises(penstock.Error, match="variable 'T' was not put in this step"):
            history.end_step(20.0)
        for call in (history.wait, history.close):
            with pytest.raises(penstock.Error, match="was not put"):  # all know it, and no rank waits for another one
                call()
        history.close()

    assert on_ranks(2, forgetful) == [None, None]
    check(tmp_path / "run", 12, 1)


def test_a_rank_whose_store_cannot_grow_is_told_to_all_by_the_end_of_the_step(tmp_path: Path) -> None:
    wide = 200_000  # a step has files of its own

    def grows(comm: ThreadComm) -> None:
        history = penstock.History(tmp_path / "run", format="zarr", device="host", comm=comm, slots=0)
        history.define("T", ["y", "x"], shape=(1, wide), global_shape=(2, wide), start=(comm.rank, 0))
        history.put("T", np.ones((1, wide), "f4"))
        history.end_step(10.0)
        history.wait()
        if comm.rank == 1:
            (tmp_path / "run" / "T").rename(tmp_path / "T")
        comm.allgather(None)
        history.put("T", np.ones((1, wide), "f4"))
        with pytest.raises(penstock.Error, match="step 2, .*No such file"):
            history.end_step(20.0)
        with pytest.raises(penstock.Error, match="step 2, .*No such file"):
            history.close()

    assert on_ranks(2, grows) == [None, None]


# What the second rank does wrong in the third step, and what all are told.
MISTAKES: dict[str, tuple[str, Callable[[History, ThreadComm], None]]] = {
    "no time": ("the time is no number", lambda history, comm: history.end_step(np.nan if comm.rank else 30.0)),
    "another time": ("give different times", lambda history, comm: history.end_step(30.0 + comm.rank)),
    "another call": (
        "call the same functions",
        lambda history, comm: history.wait() if comm.rank else history.end_step(30),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("form", ["cdf5", "zarr"])
def test_steps_that_all_have_written_are_seen_after_a_failure_of_one(
    tmp_path: Path, form: str, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [True]  # the model is faster than the files, until a rank fails
    counted = together._written
    monkeypatch.setattr(together, "_written", lambda raw: 0 if slow[0] else counted(raw))

    def fails(comm: ThreadComm) -> None:
        history, rows = opened(comm, tmp_path / "run", [6, 12], format=form, slots=4)
        for step in (1, 2):
            put(history, wanted(12, step)[rows], step)
            history.end_step(10.0 * step)
        history._raw.wait()
        assert history.facts().steps_published == 0
        comm.allgather(None)
        slow[0] = False
        put(history, wanted(12, 3)[rows], 3)
        words, wrong = MISTAKES[mistake]
        for call in (lambda: wrong(history, comm), history.close):
            with pytest.raises(penstock.Error, match=words):
                call()
        assert history.facts().steps_ended == 2, "none has ended the step"

    assert on_ranks(2, fails) == [None, None]
    check(tmp_path / "run", 12, 2)


def test_ranks_that_call_other_functions_are_told_so(tmp_path: Path) -> None:
    def uneven(comm: ThreadComm) -> None:
        history, rows = opened(comm, tmp_path / "run", [6, 12], format="zarr")
        put(history, wanted(12, 1)[rows], 1)
        history.end_step(10.0)
        if comm.rank == 1:
            history.close()
        put(history, wanted(12, 2)[rows], 2)
        history.end_step(20.0)

    refused(on_ranks(2, uneven), "call the same functions in each process, in one order")


def test_a_rank_that_puts_nothing_is_told_when_it_closes(tmp_path: Path) -> None:
    def idle(comm: ThreadComm) -> None:
        with opened(comm, tmp_path / "run", [6, 12], format="zarr")[0] as history:
            history.wait()
            if comm.rank == 0:
                history.put("level", np.zeros(3, "f4"))

    refused(on_ranks(2, idle), "call the same functions in each process, in one order")
    assert not any(tmp_path.iterdir())


def test_a_rank_that_has_no_history_is_told_to_all(tmp_path: Path) -> None:
    told = on_ranks(2, lambda comm: write(comm, tmp_path / "run", [6, 12], format="raw", slots=65 - comm.rank))
    refused(told, "65 slots are asked for")
    assert "process 0" in str(told[1])


@pytest.mark.parametrize(("form", "compression"), FORMATS)
@pytest.mark.parametrize("start", [3, 5])
def test_boxes_with_gaps_or_overlaps_are_refused_by_all(
    tmp_path: Path, form: str, compression: str | None, start: int
) -> None:
    path = tmp_path / "run"

    def rank(comm: ThreadComm) -> str:
        history = penstock.History(path, device="host", comm=comm, format=form, compression=compression)
        first = comm.rank * start
        history.define("T", ["y"], shape=(4,), global_shape=(start + 4,), start=(first,))
        history.define("U", ["y"], shape=(start if first == 0 else 4,), global_shape=(start + 4,), start=(first,))
        with pytest.raises(penstock.Error) as raised:
            history.begin()
        return str(raised.value)

    for said in on_ranks(2, rank):
        assert "of 'T' leave gaps, or overlap" in said, said
    assert not path.exists()


def test_gaps_that_are_meant_are_allowed(tmp_path: Path) -> None:
    def rank(comm: ThreadComm) -> None:
        with penstock.History(tmp_path / "run.nc", device="host", comm=comm, may_have_gaps=True) as history:
            history.define("T", ["y"], shape=(4,), global_shape=(9,), start=(5 * comm.rank,))
            history.put("T", np.full(4, comm.rank + 1, "f4"))
            history.end_step(1)

    on_ranks(2, rank)
    with penstock.open(tmp_path / "run.nc", device="host") as file:
        assert np.array_equal(file["T"][0], [1, 1, 1, 1, 0, 2, 2, 2, 2])


def test_a_box_outside_of_the_whole_is_refused(tmp_path: Path) -> None:
    with (
        penstock.History(tmp_path / "run", device="host") as history,
        pytest.raises(penstock.Error, match="let each process give a box inside of global_shape"),
    ):
        history.define("T", ["y"], shape=[4], global_shape=[6], start=[3])


@pytest.mark.parametrize(("length", "ranks"), [(1000, 7), (10, 7), (3, 8), (1025, 6)])
def test_a_split_is_boxes_of_which_a_store_is_made(tmp_path: Path, length: int, ranks: int) -> None:
    shares = [penstock.history_split(length, ranks, rank) for rank in range(ranks)]
    ends = [start + shape for start, shape in shares]
    assert [start for start, _ in shares] == [0, *ends[:-1]] and ends[-1] == length
    told = on_ranks(ranks, lambda comm: write(comm, tmp_path / "run", ends, format="zarr", compression="zstd"))
    assert all(isinstance(one, penstock.HistoryFacts) for one in told), told
    check(tmp_path / "run", length)
    with pytest.raises(penstock.Error, match=f"this is process {ranks} of {ranks}"):
        penstock.history_split(length, ranks, ranks)


class Said:
    """A communicator in whose meetings process 1 says what it is told to, and a history that writes nothing."""

    rank, size = 0, 2

    def __init__(self, other: Any, written: int = 3) -> None:
        self.other, self.heard, self.published, self.written = other, [], [], written

    def allgather(self, sendobj: Any) -> list[Any]:
        self.heard.append(sendobj)
        return [sendobj, (sendobj[0], self.other, "")]

    def bcast(self, obj: Any, root: int = 0) -> Any:
        raise NotImplementedError

    def check_step(self, time: float) -> None:
        pass

    def end_step(self, time: float) -> None:
        pass

    def facts(self) -> dict[str, int]:
        return {"steps_written": self.written}

    def publish(self, steps: int) -> None:
        self.published.append(steps)
        if steps == 2:
            raise penstock.Error(operation="write history", cause="no space")


def test_the_smallest_number_of_written_steps_is_published() -> None:
    said: Any = Said((10.0, 1))
    HistoryRanks(said, "run").end_step(said, lambda: 10.0)
    assert said.published == [1]


def test_what_a_rank_could_not_write_is_told_by_the_next_meeting_once() -> None:
    for kept in (False, True):
        said: Any = Said((10.0, 2))
        ranks = HistoryRanks(said, "run")
        if kept:
            assert not ranks.keeps(penstock.Error(operation="put", cause="another shape"))
            assert ranks.keeps(penstock.Error(operation="write history", cause="no space"))
        else:
            ranks.end_step(said, lambda: 10.0)  # and what failed when it was published
        for _ in range(2):
            with pytest.raises(penstock.Error, match="no space"):
                ranks.end_step(said, lambda: 10.0)
        assert "no space" in said.heard[-1][2]
        assert len(said.heard) == (1 if kept else 2), "none speaks again"
