"""A run of a suite of measurements that nothing but a test measures with: its rows stay in memory."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from penstock import Context
from penstock.calibration.workspace import Workspace
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.run import Run


def lone_run(context: Context, place: Workspace, suite: str, stack: ExitStack | None = None, **settings: Any) -> Run:
    """Of files as large as the workspace's. `settings` are the suite's own table."""
    asked = Definition(suite, file_bytes=place.file_bytes, kind=suite, settings={suite: settings})
    return Run(context, place, asked, stack=stack or ExitStack())
