"""Two programs, or two handles of one, that write one restart: the second is refused in one line, on all ranks
too, and goes on when the first has ended, however it ended. test_mpi.py has C and Fortran."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks.threads import ThreadComm, on_ranks

import penstock as ps

REFUSED = "write restart {}: another writer, of this program or another one, has this name; end that one, or give "
# Writes a generation, says so, and holds the name until it is told to write another, or is killed.
PROGRAM = """
import itertools, sys, numpy, penstock
restart = penstock.Restart(sys.argv[1], device="host", durable=False)
for _ in itertools.chain(["first"], sys.stdin):
    print(restart.write({"x": numpy.arange(3.0)}).generation, flush=True)
"""


def opened(path: Path, **options: Any) -> ps.Restart:
    return ps.Restart(path, device="host", durable=False, **options)


def write(restart: ps.Restart) -> ps.RestartFacts:
    return restart.write({"x": np.arange(3.0)})


def refused(error: BaseException | None, path: Path) -> bool:
    return isinstance(error, ps.Error) and REFUSED.format(path) in str(error) and "\n" not in str(error)


def contents(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.iterdir()}


def test_another_program_is_refused_until_the_first_one_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdin is not None and first.stdout is not None
        assert first.stdout.readline() == "1\n"
        before, second = contents(tmp_path), opened(path)
        with pytest.raises(ps.Error) as told:
            write(second)
        assert refused(told.value, path) and contents(tmp_path) == before
        assert second.find() and second.generation == 1, "it may read"
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.stdout.readline() == "2\n"
        first.kill()
        first.wait()
        facts = write(second)
    assert facts.generation == 3 and facts.is_locked
    second.close()
    assert sorted(contents(tmp_path)) == ["run.0", "run.1"]


def test_of_two_handles_the_one_that_wrote_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with opened(path) as first, opened(path) as second:
        write(first)
        with pytest.raises(ps.Error) as told:
            write(second)
        assert refused(told.value, path)
        assert write(first).generation == 2
    assert write(opened(path)).generation == 3


def test_all_ranks_are_told_that_another_program_writes_the_name(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def work(comm: ThreadComm) -> Any:
        boxes = {"x": ((6,), (3 * comm.rank,))}
        return opened(path, comm=comm).write({"x": np.arange(3.0)}, boxes=boxes)

    with opened(path) as other:
        write(other)
        for rank, error in enumerate(on_ranks(2, work)):
            assert refused(error, path) if rank == 0 else REFUSED.format(path) in str(error)
    assert [one.generation for one in on_ranks(2, work)] == [2, 2]
