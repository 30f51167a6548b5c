"""What the cells of the suite `core` read, write and copy: two files that stay open, and page-locked memory."""

from __future__ import annotations

from penstock._api import Buffer, File
from penstock.calibration.workspace import make_cold, make_hot, make_resident
from penstock_bench.engine.run import Run

PINNED_COPY_BYTES = 1 << 30


def source(run: Run) -> File:
    return run.opened(run.workspace.source)


def target(run: Run) -> File:
    return run.opened(run.workspace.target)


def pinned(run: Run) -> Buffer:
    return run.memory(min(PINNED_COPY_BYTES, run.bytes), "pinned")


def _make_loaded(file: File, bytes: int) -> float:
    """In the page cache and not touched since it came there: what the second reader of a file finds."""
    make_cold(file, bytes)
    return make_resident(file, bytes)


STATES = {"hot": make_hot, "second": _make_loaded, "cold": make_cold}
