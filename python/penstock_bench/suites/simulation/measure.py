"""The suite `simulation`: what writing costs models that run, each way in turn in one run. Here is the flow model;
`cluster` and `particles` have the others, `ranks` files of several processes, and `packing` what is compressed.

A step is the model's time steps, then the output. Each is timed by itself: `compute_ms` is the first, `stall_ms` the
calls of the second without waits for a slot, which are `wait_ms`. Both are medians of steps. The first step also makes
files and slots: `first_stall_ms`. The seconds of a trial end when the files are closed. `output_s` are those of them
in which there was something to write: all but the first step's computing. `write_ms` is what a thread beside the model
took for a step.
"""

from __future__ import annotations

import shutil
import statistics
import time
from functools import partial

from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.engine.run import Run
from penstock_bench.suites.simulation import cluster, packing, particles
from penstock_bench.suites.simulation.model import FlowRun, expect, made
from penstock_bench.suites.simulation.ranks import probes as ranks
from penstock_bench.suites.simulation.ways import WAYS, FieldOutput, check

KIND = "simulation"
PART = "flow"  # of the rows of the suite, on its page
ENGINE = "the engine alone"  # writes as many bytes from the same memory, and nothing else


def run_suite(run: Run) -> None:
    run.step(0, 0, "making the model")
    case = made(run)
    run.step(0, 0, "running it for the values that files must have")
    expect(case)
    probes = [Probe(way, partial(measure, case, way)) for way in WAYS]
    probes.append(Probe(ENGINE, partial(engine, case)))
    run.step(0, 0, "making the cluster and the particles")
    probes += cluster.probes(cluster.made(run))
    probes += particles.probes(run, particles.particles(run))
    run.step(0, 0, "building the programs of ranks")
    run_rounds(run, [*probes, *packing.probes(run), *ranks.probes(run)])


def measure(case: FlowRun, way: str, _round: int = 0) -> Sample:
    """One run of the model that writes this way. What it wrote is compared with the model, and removed."""
    folder = case.run.workspace.directory / "output"
    folder.mkdir()
    try:
        case.model.restart()
        computed, put, waits = [], [], [0.0]
        with Stopwatch() as watch:
            writing = WAYS[way](case, folder)
            for step in range(case.steps):
                began = time.perf_counter()
                case.advance()
                ready = time.perf_counter()
                writing.put(step)
                computed.append((ready - began) * 1e3)
                put.append((time.perf_counter() - ready) * 1e3)
                waits.append(writing.wait_seconds() * 1e3)
            closing = time.perf_counter()
            writing.close()
            closed = time.perf_counter() - closing
        written = _written(writing, case.steps)
        bytes = check(writing)
    finally:
        shutil.rmtree(folder)
    return {
        "part": PART,
        "bytes": bytes,
        "seconds": watch.seconds,
        "steps": case.steps,
        "substeps": case.substeps,
        "step_bytes": case.bytes // case.steps,
        "compute_ms": statistics.median(computed),
        "output_s": watch.seconds - computed[0] / 1e3,
        **_stalls(put, waits),
        **written,
        "wait_ms": waits[-1] / case.steps,
        "close_s": closed,
        **watch.cpu(),
    }


def _written(writing: FieldOutput, steps: int) -> Sample:
    seconds = writing.write_seconds()
    return {} if seconds is None else {"write_ms": seconds * 1e3 / steps}


def _stalls(put: list[float], waits: list[float]) -> Sample:
    """`waits`: in all, before the first step and after each."""
    stalls = [one - (after - before) for one, before, after in zip(put, waits, waits[1:], strict=False)]
    return {"stall_ms": max(0.0, statistics.median(stalls)), "first_stall_ms": max(0.0, stalls[0])}


def engine(case: FlowRun, _round: int = 0) -> Sample:
    """The engine's own rate: steps of the same bytes from memory of the device into a new file, one after the other."""
    path = case.run.workspace.directory / "engine.bin"
    step_bytes = case.bytes // case.steps
    memory = case.run.memory(step_bytes)
    try:
        with Stopwatch() as watch, case.run.context.create(path) as file:
            for step in range(case.steps):
                file.write(memory, step * step_bytes)
        assert path.stat().st_size == case.steps * step_bytes
    finally:
        path.unlink(missing_ok=True)
    each = {"steps": case.steps, "step_bytes": step_bytes, "step_write_ms": watch.seconds * 1e3 / case.steps}
    return {"part": PART, "bytes": case.steps * step_bytes, "seconds": watch.seconds, **each, **watch.cpu()}
