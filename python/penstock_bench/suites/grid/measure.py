"""Runs the trials of a grid: repeats interleaved across variants, every trial verified, states proved.

A trial whose path this machine does not have, or whose cache state cannot be made, is listed as missing with the
reason. Wrong data fails the run.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Context, Error, _core
from penstock._api import Buffer, File
from penstock.calibration.media import Moved, from_another_cache
from penstock.calibration.poison import poison, poison_staging
from penstock.calibration.stage import MISSING_CODES
from penstock.calibration.workspace import FILE_SEED, NotPossible, Workspace, make_cold, make_hot, resident
from penstock.cli.show import Step
from penstock_bench.engine.definition import Definition, Trial
from penstock_bench.engine.results import Results, Stopwatch, seconds_of
from penstock_bench.engine.stamped import check

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

MAX_REQUESTS = 16384  # of one trial: enough to be steady, few enough to be short
COPY_BYTES = 256 << 20
ENGINE_TRIES = 3  # a ceiling is the best of them


@dataclass
class GridBench:
    """What all trials share. Buffers are made once; files are opened for each trial, because a mapping that a trial
    leaves on an open file would keep its pages in the cache."""

    context: Context
    workspace: Workspace
    results: Results
    buffers: dict[tuple[str, str], Buffer] = field(default_factory=dict)
    missing: dict[Trial, str] = field(default_factory=dict)
    # Of what is written: a new one each time, so that what an earlier write left in the file cannot pass for this one.
    seeds: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    def buffer(self, kind: str, first_touch: str) -> Buffer:
        """A buffer of the file's size. With first_touch none it is a fresh one each time: its pages are part of the
        trial."""
        if first_touch == "none":
            return self.context.allocate(self.workspace.file_bytes, kind, first_touch="none")
        key = (kind, first_touch)
        if key not in self.buffers:
            self.buffers[key] = self.context.allocate(self.workspace.file_bytes, kind, first_touch=first_touch)
        return self.buffers[key]


def run_suite(run_of: Run) -> None:
    run(GridBench(run_of.context, run_of.workspace, run_of.results), run_of.definition, run_of.step)


def run(bench: GridBench, definition: Definition, step: Step) -> bool:
    """Runs all trials. False when the time ran out before all repeats were done; every variant ran at least once then,
    unless the time did not suffice even for that."""
    began = time.monotonic()
    order = random.Random(7)
    total = definition.repeats * len(definition.trials)
    done = 0
    for repeat in range(definition.repeats):
        _copies(bench, repeat)
        _engine(bench, definition, repeat)
        trials = list(definition.trials)
        order.shuffle(trials)
        for trial in trials:
            if time.monotonic() - began > definition.seconds:
                bench.results.add("stopped", cause=f"time limit of {definition.seconds:g} s", done=done, planned=total)
                return False
            step(done, total, f"{trial.direction} {trial.path} {trial.cache}")
            _try(bench, trial, repeat)
            done += 1
    step(total, total, "done")
    return True


def _copies(bench: GridBench, repeat: int) -> None:
    """The ceiling: one pinned copy each way."""
    bytes = min(COPY_BYTES, bench.workspace.file_bytes)
    device = bench.buffer("device", "gpu").slice(0, bytes)
    pinned = bench.buffer("pinned", "gpu").slice(0, bytes)
    for direction, up in (("read", True), ("write", False)):
        if bench.results.has("ceiling", direction=direction, repeat=repeat):
            continue
        seconds = _core.copy_seconds(bench.context._raw, up, device, pinned)
        bench.results.add(
            "ceiling",
            direction=direction,
            repeat=repeat,
            bytes=bytes,
            seconds=seconds,
            bytes_per_second=bytes / seconds,
        )


def _engine(bench: GridBench, definition: Definition, repeat: int) -> None:
    """The other ceiling: what the engine does when storage moves nothing, for each size of request in the suite."""
    for direction, request in sorted({(trial.direction, trial.request_bytes) for trial in definition.trials}):
        if bench.results.has("engine", direction=direction, request_bytes=request, repeat=repeat):
            continue
        trial = Trial("null", direction, request)
        block, bytes = _extent(bench, trial)
        memory = bench.buffer(trial.buffer, trial.first_touch).slice(0, bytes)
        with bench.context.open(bench.workspace.target, write=True) as file:
            tries = [_move(file, memory, trial, block)[0] for _ in range(ENGINE_TRIES)]
        outcome = min(tries, key=lambda one: one["seconds"])
        rate = bytes / outcome["seconds"]
        bench.results.add(
            "engine", direction=direction, request_bytes=request, repeat=repeat, **outcome, bytes_per_second=rate
        )


def _extent(bench: GridBench, trial: Trial) -> tuple[int, int]:
    """Bytes of one request and of all."""
    block = trial.request_bytes or bench.workspace.file_bytes
    return block, min(bench.workspace.file_bytes, block * MAX_REQUESTS)


def _try(bench: GridBench, trial: Trial, repeat: int) -> None:
    if trial in bench.missing or bench.results.has("trial", **trial.as_dict(), repeat=repeat):
        return
    if bench.results.has("missing", **trial.as_dict()):
        return
    try:
        bench.results.add("trial", **trial.as_dict(), repeat=repeat, **run_trial(bench, trial))
    except NotPossible as reason:
        _miss(bench, trial, str(reason))
    except Error as error:
        if error.code not in MISSING_CODES:
            raise
        _miss(bench, trial, error.cause)


def _miss(bench: GridBench, trial: Trial, cause: str) -> None:
    bench.missing[trial] = cause
    bench.results.add("missing", **trial.as_dict(), cause=cause)


def run_trial(bench: GridBench, trial: Trial) -> dict[str, Any]:
    """One measured and verified trial: bytes, rates, and each of its seconds apart; CPU seconds, the path taken, what
    the medium moved, residency before and after. `seconds` are of the transfer alone."""
    _need_touch(bench, trial)
    writes = trial.direction == "write"
    block, bytes = _extent(bench, trial)
    memory = bench.buffer(trial.buffer, trial.first_touch).slice(0, bytes)
    seed = next(bench.seeds) if writes else FILE_SEED
    _load(bench, trial, memory, seed)
    times = {"create_s": _create_seconds(bench, bytes)} if writes else {}
    with bench.context.open(_file(bench, trial), write=True) as file:
        before = make_hot(file, bytes) if trial.cache == "hot" else make_cold(file, bytes)
        with bench.workspace.media.watch() as media:
            outcome, watch = _move(file, memory, trial, block)
            after = resident(file, bytes)
            times |= {"fsync_s": seconds_of(file.sync)} if writes else {}
        times |= {"close_s": seconds_of(file.close)} if writes else {}
    if outcome["bytes"] != bytes:
        raise Error(
            code="io_error", operation="bench", file=file.name, cause=f"moved {outcome['bytes']} of {bytes} bytes"
        )
    verify_s = _verify(bench, trial, memory, seed)  # wrong bytes end the run, in whatever state the file was
    _need_state(trial, after, media, bytes)
    if trial.first_touch == "none" and _on_device(trial):
        poison(bench.context, memory)  # a later trial, which may not touch its memory first, may get this again
    return outcome | {
        "requests": -(-bytes // block),
        "bytes_per_second": bytes / outcome["seconds"],
        **watch.cpu(),
        "resident_before": before,
        "resident_after": after,
        "verify_s": verify_s,
        **media.fields(),
        **times,
    }


def _file(bench: GridBench, trial: Trial) -> Path:
    return bench.workspace.target if trial.direction == "write" else bench.workspace.source


def _create_seconds(bench: GridBench, bytes: int) -> float:
    """Of making a file of this size with its space reserved. It never appears: trials overwrite one that is there, so
    that its state in the page cache can be proved."""
    made: list[File] = []
    seconds = seconds_of(lambda: made.append(bench.context.create(bench.workspace.directory / "created.bin", bytes)))
    made.pop().abandon()
    return seconds


def _need_state(trial: Trial, after: float, media: Moved, bytes: int) -> None:
    """NotPossible when a trial turned out not to be in the state it was to be in."""
    if trial.cache == "direct" and after > 0.05:
        raise NotPossible(f"{after:.0%} of the file was in the page cache afterwards: this was not direct")
    if trial.direction == "read" and trial.cache != "hot":
        cause = from_another_cache(media, bytes)
        if cause:
            raise NotPossible(cause)


def _need_touch(bench: GridBench, trial: Trial) -> None:
    """Refuses a first touch that is not possible: the CPU cannot touch a device's, nor a GPU the system's unless the
    link is coherent."""
    device = bench.context.device
    if trial.buffer == "device" and trial.first_touch == "cpu":
        raise NotPossible("the CPU cannot touch device memory first")
    if trial.buffer == "system" and trial.first_touch == "gpu" and not device["coherent_with_host"]:
        raise NotPossible("this device cannot touch ordinary host memory first")


def _load(bench: GridBench, trial: Trial, memory: Buffer, seed: int) -> None:
    """Puts the pattern into a buffer to be written, poison into one to be read; leaves untouched pages untouched."""
    far = memory if _on_device(trial) else bench.buffer("device", "gpu").slice(0, memory.bytes)
    if trial.direction == "write":
        bench.context.stamp(far, 0, seed)
    elif trial.first_touch != "none":
        poison(bench.context, far)
    else:
        poison_staging(bench.context)
        return
    if far is not memory:
        bench.context.copy_to_host(memory, far)


def _on_device(trial: Trial) -> bool:
    return trial.buffer != "system"


def _move(file: File, memory: Buffer, trial: Trial, block: int) -> tuple[dict[str, Any], Stopwatch]:
    options: dict[str, Any] = {
        "path": trial.path,
        "workers": trial.workers,
        "depth": trial.depth,
        "strict": trial.path != "auto",
    }
    blocks = {"direction": trial.direction, "block_bytes": block, "seed": 0 if block >= memory.bytes else 5}
    with Stopwatch() as watch:
        raw = _core.start_blocks(file._raw, memory, blocks, **options).result()
    raw.or_throw()
    return {"bytes": raw.bytes, "seconds": raw.seconds, "took": raw.path}, watch


def _verify(bench: GridBench, trial: Trial, memory: Buffer, seed: int) -> float:
    """On the device: what a read brought, or what a buffered read brings of what was written. Returns the seconds of
    the comparison."""
    checked, name = memory, _file(bench, trial)
    if trial.direction == "write":
        checked = bench.buffer("device", "gpu").slice(0, memory.bytes)
        poison(bench.context, checked)
        with bench.context.open(name) as file:
            file.read(checked, path="buffered")
    elif not _on_device(trial):
        checked = bench.buffer("device", "gpu").slice(0, memory.bytes)
        bench.context.copy_to_device(checked, memory)
    return check(bench.context, name, checked, seed, f" after {trial.direction} by {trial.path}")
