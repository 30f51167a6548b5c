"""Runs the trials of a grid: repeats interleaved across variants, every trial verified, states proved.

A trial whose path this machine does not have, or whose cache state cannot be made, is listed as missing with the
reason. Wrong data fails the run.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Error
from penstock._api import Buffer, File
from penstock.calibration.media import Moved, from_another_cache
from penstock.calibration.poison import poison, poison_staging
from penstock.calibration.stage import MISSING_CODES
from penstock.calibration.workspace import FILE_SEED, NotPossible, make_cold, make_hot, resident
from penstock_bench import _measure
from penstock_bench.engine.definition import Trial
from penstock_bench.engine.results import Stopwatch, seconds_of
from penstock_bench.engine.stamped import check

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

MAX_REQUESTS = 16384  # of one trial: enough to be steady, few enough to be short
COPY_BYTES = 256 << 20
ENGINE_TRIES = 3  # a ceiling is the best of them


def run_suite(run: Run) -> None:
    """Runs all trials, until the time is up: every variant ran at least once then, unless the time did not suffice even
    for that."""
    definition = run.definition
    began = time.monotonic()
    order = random.Random(7)
    total = definition.repeats * len(definition.trials)
    done = 0
    for repeat in range(definition.repeats):
        _copies(run, repeat)
        _engine(run, repeat)
        trials = list(definition.trials)
        order.shuffle(trials)
        for trial in trials:
            if time.monotonic() - began > definition.seconds:
                run.results.add("stopped", cause=f"time limit of {definition.seconds:g} s", done=done, planned=total)
                return
            run.step(done, total, f"{trial.direction} {trial.path} {trial.cache}")
            _try(run, trial, repeat)
            done += 1
    run.step(total, total, "done")


def _copies(run: Run, repeat: int) -> None:
    """The ceiling: one pinned copy each way."""
    bytes = min(COPY_BYTES, run.bytes)
    device = run.device.slice(0, bytes)
    pinned = run.memory(kind="pinned", first_touch="gpu").slice(0, bytes)
    for direction, up in (("read", True), ("write", False)):
        if run.results.has("ceiling", direction=direction, repeat=repeat):
            continue
        seconds = _measure.copy_seconds(run.context._raw, up, device, pinned)
        run.results.add(
            "ceiling",
            direction=direction,
            repeat=repeat,
            bytes=bytes,
            seconds=seconds,
            bytes_per_second=bytes / seconds,
        )


def _engine(run: Run, repeat: int) -> None:
    """The other ceiling: what the engine does when storage moves nothing, for each size of request in the suite."""
    for direction, request in sorted({(trial.direction, trial.request_bytes) for trial in run.definition.trials}):
        if run.results.has("engine", direction=direction, request_bytes=request, repeat=repeat):
            continue
        trial = Trial("null", direction, request)
        block, bytes = _extent(run, trial)
        memory = _memory(run, trial, bytes)
        with run.context.open(run.workspace.target, write=True) as file:
            tries = [_move(file, memory, trial, block)[0] for _ in range(ENGINE_TRIES)]
        outcome = min(tries, key=lambda one: one["seconds"])
        rate = bytes / outcome["seconds"]
        run.results.add(
            "engine", direction=direction, request_bytes=request, repeat=repeat, **outcome, bytes_per_second=rate
        )


def _extent(run: Run, trial: Trial) -> tuple[int, int]:
    """Bytes of one request and of all."""
    block = trial.request_bytes or run.bytes
    return block, min(run.bytes, block * MAX_REQUESTS)


def _memory(run: Run, trial: Trial, bytes: int) -> Buffer:
    """The buffer of a trial, which all of its kind share. With first_touch none it is a fresh one each time: its pages
    are part of the trial."""
    if trial.first_touch == "none":
        return run.context.allocate(run.bytes, trial.buffer, first_touch="none").slice(0, bytes)
    return run.memory(kind=trial.buffer, first_touch=trial.first_touch).slice(0, bytes)


def _try(run: Run, trial: Trial, repeat: int) -> None:
    if run.results.has("missing", **trial.as_dict()) or run.results.has("trial", **trial.as_dict(), repeat=repeat):
        return
    try:
        run.results.add("trial", **trial.as_dict(), repeat=repeat, **run_trial(run, trial))
    except NotPossible as reason:
        run.results.add("missing", **trial.as_dict(), cause=str(reason))
    except Error as error:
        if error.code not in MISSING_CODES:
            raise
        run.results.add("missing", **trial.as_dict(), cause=error.cause)


def run_trial(run: Run, trial: Trial) -> dict[str, Any]:
    """One measured and verified trial: bytes, rates, and each of its seconds apart; CPU seconds, the path taken, what
    the medium moved, residency before and after. `seconds` are of the transfer alone."""
    _need_touch(run, trial)
    writes = trial.direction == "write"
    block, bytes = _extent(run, trial)
    memory = _memory(run, trial, bytes)
    seed = next(run.seeds) if writes else FILE_SEED
    _load(run, trial, memory, seed)
    times = {"create_s": _create_seconds(run, bytes)} if writes else {}
    with run.context.open(_file(run, trial), write=True) as file:
        before = make_hot(file, bytes) if trial.cache == "hot" else make_cold(file, bytes)
        with run.workspace.media.watch() as media:
            outcome, watch = _move(file, memory, trial, block)
            after = resident(file, bytes)
            times |= {"fsync_s": seconds_of(file.sync)} if writes else {}
        times |= {"close_s": seconds_of(file.close)} if writes else {}
    if outcome["bytes"] != bytes:
        raise Error(
            code="io_error", operation="bench", file=file.name, cause=f"moved {outcome['bytes']} of {bytes} bytes"
        )
    verify_s = _verify(run, trial, memory, seed)  # wrong bytes end the run, in whatever state the file was
    _need_state(trial, after, media, bytes)
    if trial.first_touch == "none" and _on_device(trial):
        poison(run.context, memory)  # a later trial, which may not touch its memory first, may get this again
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


def _file(run: Run, trial: Trial) -> Path:
    return run.workspace.target if trial.direction == "write" else run.workspace.source


def _create_seconds(run: Run, bytes: int) -> float:
    """Of making a file of this size with its space reserved. It never appears: trials overwrite one that is there, so
    that its state in the page cache can be proved."""
    made: list[File] = []
    seconds = seconds_of(lambda: made.append(run.context.create(run.workspace.directory / "created.bin", bytes)))
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


def _need_touch(run: Run, trial: Trial) -> None:
    """Refuses a first touch that is not possible: the CPU cannot touch a device's, nor a GPU the system's unless the
    link is coherent."""
    device = run.context.device
    if trial.buffer == "device" and trial.first_touch == "cpu":
        raise NotPossible("the CPU cannot touch device memory first")
    if trial.buffer == "system" and trial.first_touch == "gpu" and not device["coherent_with_host"]:
        raise NotPossible("this device cannot touch ordinary host memory first")


def _load(run: Run, trial: Trial, memory: Buffer, seed: int) -> None:
    """Puts the pattern into a buffer to be written, poison into one to be read; leaves untouched pages untouched."""
    far = memory if _on_device(trial) else run.device.slice(0, memory.bytes)
    if trial.direction == "write":
        run.context.stamp(far, 0, seed)
    elif trial.first_touch != "none":
        poison(run.context, far)
    else:
        poison_staging(run.context)
        return
    if far is not memory:
        run.context.copy_to_host(memory, far)


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
        raw = _measure.start_blocks(file._raw, memory, blocks, **options).result()
    raw.or_throw()
    return {"bytes": raw.bytes, "seconds": raw.seconds, "took": raw.path}, watch


def _verify(run: Run, trial: Trial, memory: Buffer, seed: int) -> float:
    """On the device: what a read brought, or what a buffered read brings of what was written. Returns the seconds of
    the comparison."""
    checked, name = memory, _file(run, trial)
    if trial.direction == "write":
        checked = run.device.slice(0, memory.bytes)
        poison(run.context, checked)
        with run.context.open(name) as file:
            file.read(checked, path="buffered")
    elif not _on_device(trial):
        checked = run.device.slice(0, memory.bytes)
        run.context.copy_to_device(checked, memory)
    return check(run.context, name, checked, seed, f" after {trial.direction} by {trial.path}")
