"""One run of a suite: what the user asked for, and what a suite is given to carry it out."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock import Context
from penstock.calibration.workspace import Workspace
from penstock.cli.show import Step
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.results import Results


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    definition: Definition
    device: str
    directory: Path
    results: Path | None
    quick: bool
    peers: frozenset[str] | None = None  # those that are measured too; None: all that the suite can
    resume: bool = False
    remote: Path | None = None  # a second directory, for suites that measure two


@dataclass(frozen=True)
class Run:
    """What a suite is given to run. What it opens for the whole run it may leave to `stack`."""

    request: Request
    peers: frozenset[str]
    context: Context
    workspace: Workspace
    results: Results
    step: Step
    stack: ExitStack

    @property
    def definition(self) -> Definition:
        return self.request.definition
