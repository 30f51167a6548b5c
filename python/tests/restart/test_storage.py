"""A restart on a storage that fails, is full or keeps writes to itself: each step of a write may go wrong, and both
generations are as they were; the next write goes on. The error names generation and field.

Each step of the file system fails in turn. PENSTOCK_FAULT_STEPS is how many of them (all without it)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from faulty_fs import CHANGING, FaultyFs, faulty_fs
from mounts import Mounted, root_only

import penstock as ps

VALUES = np.arange(300_000.0)


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[FaultyFs]:
    with faulty_fs(tmp_path) as mounted:
        yield mounted


def write(folder: Path, generation: int, durable: bool = True) -> None:
    restart = ps.Restart(folder / "run", device="host", durable=durable)
    restart.write({"x": VALUES + generation, "y": VALUES - generation}, attrs={"step": generation})


def generation_of(folder: Path) -> int:
    """The newest, whose data are right, and no other one is damaged."""
    restart = ps.Restart(folder / "run", device="host")
    x, y = np.empty_like(VALUES), np.empty_like(VALUES)
    facts = restart.read({"x": x, "y": y})
    assert facts.passed_over == "" and restart.attrs["step"] == facts.generation
    assert np.array_equal(x, VALUES + facts.generation) and np.array_equal(y, VALUES - facts.generation)
    return facts.generation


def test_the_data_are_synced_before_the_name_and_the_folder_after_it(fs: FaultyFs) -> None:
    write(fs.path, 1)
    with fs.logged() as steps:
        write(fs.path, 2)
    order = [one.operation for one in steps if one.operation in CHANGING.split(",") and one.pid]
    last_write = max(at for at, one in enumerate(order) if one == "write")
    named = order.index("rename")
    assert last_write < order.index("fsync") < named < order.index("fsyncdir")
    assert order.count("rename") == 1


def test_any_step_may_fail_and_both_generations_stay(fs: FaultyFs) -> None:
    for generation in (1, 2):
        write(fs.path, generation)
    with fs.logged() as steps:
        write(fs.path, 3)
    changing = [one for one in steps if one.operation in CHANGING.split(",") and one.pid]
    named = [one.operation for one in changing].index("rename")
    newest, told = 3, []
    for number, step in enumerate(changing):
        error = (errno.ENOSPC, errno.EIO)[number % 2]
        fault = fs.fail(CHANGING, error, skip=number, times=1)
        is_written = False
        try:
            write(fs.path, newest + 1)
            is_written = True  # by another path, where one failed
        except ps.Error as failed:
            told.append((step.operation, str(failed)))
        assert fault.fired
        fault.remove()
        found = generation_of(fs.path)
        may_be = {newest + 1} if is_written else {newest, newest + (number > named)}
        assert found in may_be, (step, is_written, told[-1:])
        lock = {".run.0.penstock-lock"} if step.operation == "unlink" else set()  # it could not be removed
        assert {one.name for one in fs.path.iterdir()} == {"run.0", "run.1"} | lock, step
        newest = found
    assert {"write", "fsync", "rename", "fallocate"} <= {operation for operation, _ in told}
    assert any("generation" in text and "field 'x'" in text for operation, text in told if operation == "write")


def test_writes_that_are_lost_are_told_by_the_fsync_and_the_older_generations_stay(fs: FaultyFs) -> None:
    write(fs.path, 1)
    lost = fs.lose(errno.EIO, at="fsync")
    with pytest.raises(ps.Error, match="Input/output error"):
        write(fs.path, 2)
    assert lost.fired
    lost.remove()
    assert generation_of(fs.path) == 1
    write(fs.path, 2)
    assert generation_of(fs.path) == 2


@root_only
def test_a_full_disk_leaves_both_generations_and_the_error_says_what_was_written(tmp_path: Path) -> None:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=12m", "tmpfs") as place:
        for generation in (1, 2):
            write(place, generation)
        with pytest.raises(ps.Error, match=r"generation 3: No space left .* room for three") as failed:
            write(place, 3)
        assert failed.value.code == "no_space"
        assert generation_of(place) == 2
