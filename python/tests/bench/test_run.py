"""The Run that every function of a suite is given: what its cells share is made once, and what it opened is closed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from lone_run import lone_run

from penstock import Context
from penstock.calibration.workspace import Workspace

BYTES = 1 << 20


def test_memory_of_one_kind_is_made_once_as_large_as_the_largest(context: Context, tmp_path: Path) -> None:
    with Workspace(context, tmp_path, BYTES, files=1) as place:
        run = lone_run(context, place, "core")
        context.fill(run.device, 7)
        assert run.memory().bytes == run.memory(BYTES).bytes == BYTES and run.memory(100).bytes == 100
        assert bytes(memoryview(run.memory(100))) == bytes([7]) * 100, "the same memory"
        assert run.memory(2 * BYTES).bytes == 2 * BYTES
        context.fill(run.memory(2 * BYTES), 9)
        assert bytes(memoryview(run.device)) == bytes([9]) * BYTES, "the larger one stands for the smaller"
        context.fill(run.memory(100, "pinned"), 1)
        context.fill(run.memory(100, "pinned", "gpu"), 2)
        assert [bytes(memoryview(run.memory(1, "pinned", touch))) for touch in ("cpu", "gpu")] == [b"\1", b"\2"]


def test_a_file_that_stays_open_is_opened_once_and_closed_with_the_run(context: Context, tmp_path: Path) -> None:
    with Workspace(context, tmp_path, BYTES, files=1) as place, ExitStack() as stack:
        run = lone_run(context, place, "core", stack)
        file = run.opened(place.make(place.source))
        assert run.opened(place.source) is file
        stack.close()
        with pytest.raises(ValueError, match="is closed"):
            file.read(run.device)


def test_no_two_writes_have_one_seed(context: Context, tmp_path: Path) -> None:
    with Workspace(context, tmp_path, BYTES, files=1) as place:
        run = lone_run(context, place, "core")
        assert len({next(run.seeds) for _ in range(5)}) == 5
