"""One run of `penstock bench`: workspace, files, fingerprint, suite, results. The only place that joins the rest."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Context, File
from penstock.bench import core, formats, grid
from penstock.bench.grid import Step
from penstock.bench.machine import fingerprint
from penstock.bench.results import Results
from penstock.bench.suite import Suite
from penstock.bench.workspace import Workspace

PINNED_COPY_BYTES = 1 << 30


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    suite: Suite
    device: str
    directory: Path
    results: Path | None
    quick: bool


def run(request: Request, step: Step) -> list[dict[str, Any]]:
    """Runs the suite and returns its rows, which are also in the results file. Leaves nothing else behind."""
    suite = request.suite
    with ExitStack() as stack:
        context = stack.enter_context(Context(request.device))
        place = stack.enter_context(Workspace(context, request.directory, suite.file_bytes))
        results = stack.enter_context(Results(request.results))
        results.add(
            "machine",
            suite=suite.name,
            quick=request.quick,
            file_bytes=suite.file_bytes,
            repeats=suite.repeats,
            machine=fingerprint(context, request.directory),
        )
        step(0, 0, "making the files")
        made = [place.make(place.source), place.make(place.target)]
        if "core" in suite.settings:
            files = [stack.enter_context(context.open(path, write=True)) for path in made]
            core.run(_core_bench(place, results, suite, files), suite, step)
        elif "formats" in suite.settings:
            formats.run(_formats_bench(place, results, suite), suite, step)
        else:
            grid.run(grid.Bench(context, place, results), suite, step)
        return results.rows


def _formats_bench(place: Workspace, results: Results, suite: Suite) -> formats.Bench:
    device = place.context.allocate(suite.file_bytes, first_touch="gpu")
    return formats.Bench(place.context, place, results, suite.settings["formats"], device)


def _core_bench(place: Workspace, results: Results, suite: Suite, files: list[File]) -> core.Bench:
    context = place.context
    device = context.allocate(suite.file_bytes, first_touch="gpu")
    pinned = context.allocate(min(PINNED_COPY_BYTES, suite.file_bytes), "pinned", first_touch="cpu")
    return core.Bench(context, place, results, suite.settings["core"], files[0], files[1], device, pinned)
