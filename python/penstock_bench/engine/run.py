"""One run of a suite: what the user asked for, and what a suite is given to carry it out."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock import Context
from penstock.calibration.workspace import Workspace
from penstock.cli.show import Step
from penstock_bench.engine import kinds
from penstock_bench.engine.results import Results
from penstock_bench.engine.suite import Suite


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    suite: Suite
    device: str
    directory: Path
    results: Path | None
    quick: bool
    peers: frozenset[str] = kinds.PEERS
    resume: bool = False
    remote: Path | None = None  # a second directory, for suites that measure two


@dataclass(frozen=True)
class Run:
    """What a kind of suite is given to run one. What it opens for the whole run it may leave to `stack`."""

    request: Request
    context: Context
    workspace: Workspace
    results: Results
    step: Step
    stack: ExitStack

    @property
    def peers(self) -> frozenset[str]:
        return self.request.peers

    @property
    def suite(self) -> Suite:
        return self.request.suite
