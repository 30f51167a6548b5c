"""One run of `penstock bench`: workspace, files, fingerprint, suite, results. The only place that joins the rest."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from penstock import Context
from penstock.calibration.machine import fingerprint, storage
from penstock.calibration.workspace import OTHER_SEED, Workspace
from penstock.cli.show import Step
from penstock_bench.engine.results import Results
from penstock_bench.engine.run import Request, Run
from penstock_bench.runs.stored import unfinished
from penstock_bench.runs.suites import SUITES


def _results(request: Request, machine: dict[str, Any]) -> Results:
    """Begun with a row that says what runs where; or continued, when that is wanted and the row is the same."""
    definition = request.definition
    started = {
        "suite": definition.name,
        "quick": request.quick,
        "file_bytes": definition.file_bytes,
        "repeats": definition.repeats,
        "definition": definition.digest,
        "peers": sorted(_peers(request)),
        "machine": machine,
    }
    if request.remote is not None:
        started["remote"] = storage(request.remote)
    earlier = unfinished(request.results, started) if request.resume and request.results is not None else []
    results = Results(request.results, earlier)
    if not earlier:
        results.add("machine", **started)
    return results


def _peers(request: Request) -> frozenset[str]:
    able = frozenset(SUITES[request.definition.kind].peers)
    return able if request.peers is None else able & request.peers


def run(request: Request, step: Step) -> list[dict[str, Any]]:
    """Runs the suite and returns its rows, which are also in the results file. Leaves nothing else behind."""
    definition, suite = request.definition, SUITES[request.definition.kind]
    with ExitStack() as stack:
        context = stack.enter_context(Context(request.device))
        place = stack.enter_context(Workspace(context, request.directory, definition.file_bytes, suite.file_count))
        results = stack.enter_context(_results(request, fingerprint(context, request.directory)))
        if suite.makes_files:
            step(0, 0, "making the files")
            place.make(place.source)
            place.make(place.target, seed=OTHER_SEED)
        suite.run(Run(context, place, definition, results, _peers(request), request.remote, step, stack))
        return results.rows
