"""One run of `penstock bench`: workspace, files, fingerprint, suite, results. The only place that joins the rest."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from penstock import Context
from penstock.calibration.machine import fingerprint, storage
from penstock.calibration.workspace import OTHER_SEED, Workspace
from penstock.cli.show import Step
from penstock_bench.engine import kinds
from penstock_bench.engine.results import Results, unfinished
from penstock_bench.engine.run import Request, Run


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
