"""One run of `penstock bench`: workspace, files, fingerprint, suite, results. The only place that joins the rest."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Context
from penstock.calibration.machine import fingerprint, storage
from penstock.calibration.workspace import OTHER_SEED, Workspace
from penstock_bench.engine import kinds
from penstock_bench.engine.grid import Step
from penstock_bench.engine.results import Results, unfinished
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


def _results(request: Request, machine: dict[str, Any]) -> Results:
    """Begun with a row that says what runs where; or continued, when that is wanted and the row is the same."""
    suite = request.suite
    started = {
        "suite": suite.name,
        "quick": request.quick,
        "file_bytes": suite.file_bytes,
        "repeats": suite.repeats,
        "definition": suite.definition,
        "peers": sorted(request.peers.intersection(kinds.KINDS[suite.kind].peers)),
        "machine": machine,
    }
    if request.remote is not None:
        started["remote"] = storage(request.remote)
    earlier = unfinished(request.results, started) if request.resume and request.results is not None else []
    results = Results(request.results, earlier)
    if not earlier:
        results.add("machine", **started)
    return results


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


def run(request: Request, step: Step) -> list[dict[str, Any]]:
    """Runs the suite and returns its rows, which are also in the results file. Leaves nothing else behind."""
    suite, kind = request.suite, kinds.KINDS[request.suite.kind]
    with ExitStack() as stack:
        context = stack.enter_context(Context(request.device))
        place = stack.enter_context(Workspace(context, request.directory, suite.file_bytes, kind.file_count))
        results = stack.enter_context(_results(request, fingerprint(context, request.directory)))
        if kind.makes_files:
            step(0, 0, "making the files")
            place.make(place.source)
            place.make(place.target, seed=OTHER_SEED)
        kinds.resolve(kind.run)(Run(request, context, place, results, step, stack))
        return results.rows
