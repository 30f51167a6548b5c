"""What the suite `data` compares of files that are changed in place: a row that is read, and one that is written.

Each side has a copy of the file, because a file that is open for writing is locked. What was written is looked for in
the bytes of that copy, without either library.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from penstock_bench.suites.data.files import NAME, ROW_BYTES, place, plain_place
from penstock_bench.suites.data.pair import Call, Pair, row_of

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

_CALLS = 20  # for each one of the definition's: a call takes microseconds


@dataclass(frozen=True)
class WrittenRow:
    """As an array: what the file has there."""

    file: Path
    offset_bytes: int
    settle: Callable[[], object] = tuple  # what has a library put its buffers into the file

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self.settle()
        return np.fromfile(self.file, "f4", ROW_BYTES // 4, offset=self.offset_bytes)


def pairs(run: Run) -> Iterator[Pair]:
    """None on a GPU: what is written there comes from its memory."""
    if not run.emulated:
        return
    yield Pair("HDF5 open for writing: a row", "h5py", partial(_of_read, run), ("h5py",), _CALLS)
    yield Pair("HDF5 open for writing: a row written", "h5py", partial(_of_write, run), ("h5py",), _CALLS)
    yield Pair("file.write: 4 KiB", "os.pwrite", partial(_of_plain, run), (), _CALLS, by_clock=True)


def _copies(run: Run, of: Path) -> tuple[Path, Path]:
    ours, theirs = (run.workspace.directory / f"{whose}-{of.name}" for whose in ("ours", "theirs"))
    for copy in (ours, theirs):
        shutil.copyfile(of, copy)
    return ours, theirs


def _opened(run: Run, stack: ExitStack) -> tuple[Path, Path, Any, Any, int]:
    """Both copies, the dataset in each, and where its elements begin."""
    import h5py

    ours, theirs = _copies(run, place(run, "HDF5"))
    mine = stack.enter_context(penstock.open(ours, write=True, context=run.context))[NAME]
    other = stack.enter_context(h5py.File(theirs, "r+"))[NAME]
    return ours, theirs, mine, other, other.id.get_offset()


def _of_read(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    _, _, mine, other, _ = _opened(run, stack)
    return (lambda turn: mine[row_of(run, turn)]), (lambda turn: other[row_of(run, turn)])


def _of_write(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs, mine, other, begin = _opened(run, stack)
    values = [np.full(ROW_BYTES // 4, number, "f4") for number in range(1, 8)]

    def by(dataset: Any, file: Path, settle: Callable[[], object]) -> Call:
        def write(turn: int) -> WrittenRow:
            row = row_of(run, turn)
            dataset[row] = values[turn % 7]
            return WrittenRow(file, begin + row * ROW_BYTES, settle)

        return write

    return by(mine, ours, tuple), by(other, theirs, other.file.flush)


def _of_plain(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _copies(run, plain_place(run))
    file = stack.enter_context(run.context.open(ours, write=True))
    descriptor = os.open(theirs, os.O_WRONLY)
    stack.callback(os.close, descriptor)
    values = [np.full(ROW_BYTES // 4, number, "f4") for number in range(1, 8)]

    def by(put: Callable[[np.ndarray, int], object], path: Path) -> Call:
        def write(turn: int) -> WrittenRow:
            offset = row_of(run, turn) * ROW_BYTES
            put(values[turn % 7], offset)
            return WrittenRow(path, offset)

        return write

    return by(file.write, ours), by(partial(os.pwrite, descriptor), theirs)  # noqa: TID251 - it is what is measured
