"""The suite `first-touch`: bandwidth against problem size, for memory that the CPU or the GPU touched first.

Each trial takes new memory, touches it where the variant says (which decides where managed and system pages lie), moves
the particles, and is checked on the device. What must stay true: nothing but the transfer stands between the first
touch and the end of the clock; what this machine cannot do is listed as missing with the cause.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from penstock import Error
from penstock._api import Buffer
from penstock.calibration.media import from_another_cache
from penstock.calibration.poison import POISON, poison
from penstock.calibration.stage import MISSING_CODES
from penstock.calibration.workspace import FILE_SEED, NotPossible, make_cold, make_hot
from penstock_bench.engine.stamped import check
from penstock_bench.suites.first_touch import particle_files
from penstock_bench.suites.first_touch.cases import PARTICLE_BYTES, Variant, variants
from penstock_bench.suites.first_touch.particle_files import Spent

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

KIND = "first-touch"
WRITE_SEED = 1000
ENGINE_TRIES = 3  # a ceiling is the best of them
CPU_COPY_BYTES = 64 << 20  # of pages that the CPU fills at a time


def run_suite(run: Run) -> None:
    """Rounds over all variants in shuffled order, until they are done or the time is up. Variants of `large_bytes` and
    more take part in the first `large_repeats` rounds only."""
    definition, results = run.definition, run.results
    settings = definition.settings.get(KIND, {})
    large = penstock.parse_bytes(str(settings.get("large_bytes", definition.file_bytes + 1)))
    every = variants(definition)
    if not every:
        raise Error(
            operation="bench", file=definition.name, cause="no variant fits --file-bytes", advice="use larger files"
        )
    largest = max(every, key=lambda one: one.bytes)
    run.memory(largest.bytes)  # patterns come from there
    if any(one.format == "raw" and one.direction == "read" for one in every):
        _make(run, run.workspace.source, largest.particles, "raw")
    began, order = time.monotonic(), random.Random(13)
    rounds = int(settings.get("large_repeats", definition.repeats))
    planned = [[one for one in every if one.bytes < large or turn < rounds] for turn in range(definition.repeats)]
    total, done = sum(map(len, planned)), 0
    for turn, of_round in enumerate(planned):
        _engine(run, sorted({(one.direction, one.particles) for one in of_round}), turn)
        order.shuffle(of_round)
        for one in of_round:
            if time.monotonic() - began > definition.seconds:
                results.add("stopped", cause=f"time limit of {definition.seconds:g} s", done=done, planned=total)
                return
            run.step(done, total, one.name)
            _try(run, one, turn)
            done += 1


def _engine(run: Run, sizes: list[tuple[str, int]], turn: int) -> None:
    """The ceiling of each size: what the engine does when storage moves nothing."""
    results, context = run.results, run.context
    most = max((particles for _, particles in sizes), default=1) * PARTICLE_BYTES
    with context.create(run.workspace.directory / "engine.bin", most) as file:
        for direction, particles in sizes:
            if results.has("engine", direction=direction, particles=particles, repeat=turn):
                continue
            variant = Variant(particles, direction=direction)
            memory = run.memory(variant.bytes)
            move = file.read if direction == "read" else file.write
            outcomes = [move(memory, path="null", strict=True) for _ in range(ENGINE_TRIES)]
            outcome = max(outcomes, key=lambda one: one.bytes_per_second)
            results.add(
                "engine",
                direction=direction,
                particles=particles,
                request_bytes=variant.bytes,
                repeat=turn,
                bytes=outcome.bytes,
                seconds=outcome.seconds,
                bytes_per_second=outcome.bytes_per_second,
            )
        file.abandon()


def _try(run: Run, variant: Variant, turn: int) -> None:
    results, name = run.results, variant.name
    if results.has("missing", name=name) or results.has(KIND, name=name, round=turn):
        return
    try:
        sample = _measured(run, variant, turn)
    except NotPossible as reason:
        results.add("missing", name=name, what=variant.family, **variant.as_dict(), cause=str(reason))
    except Error as error:
        if error.code not in MISSING_CODES:
            raise
        results.add("missing", name=name, what=variant.family, **variant.as_dict(), cause=error.cause)
    else:
        results.add(KIND, name=name, **variant.as_dict(), round=turn, **sample)


def _measured(run: Run, variant: Variant, turn: int) -> dict[str, Any]:
    writes = variant.direction == "write"
    seed = WRITE_SEED + turn if writes else FILE_SEED
    path = run.workspace.directory / f"written.{particle_files.SUFFIXES[variant.format]}"
    source = path if writes else _source(run, variant)
    memory = _touched(run, variant, seed)
    state = {} if writes else {"resident_before": _in_state(run, source, variant)}
    with run.workspace.media.watch() as media:
        move = particle_files.write if writes else particle_files.read
        spent = move(run.context, source, variant, memory)
    verify_s = _verified(run, variant, (source, memory), seed)
    if writes:
        path.unlink()
    elif variant.cache == "cold":
        cause = from_another_cache(media, variant.bytes)
        if cause:
            raise NotPossible(cause)
    return _fields(variant, spent) | state | media.fields() | {"verify_s": verify_s}


def _fields(variant: Variant, spent: Spent) -> dict[str, Any]:
    return {
        "bytes": variant.bytes,
        "bytes_per_second": variant.bytes / spent.times["seconds"],
        "took": spent.took,
        "cpu_user_s": spent.cpu_user_s,
        "cpu_system_s": spent.cpu_system_s,
        **spent.times,
    }


def _touched(run: Run, variant: Variant, seed: int) -> Buffer:
    """New memory whose pages the CPU or the GPU touched first, with the pattern in it that is to be written, or with
    poison."""
    context = run.context
    _need_touch(run, variant)
    far = run.memory(variant.bytes)
    if variant.direction == "write":
        context.stamp(far, 0, seed)
    else:
        poison(context, far)
    memory = context.allocate(variant.bytes, variant.buffer, first_touch=variant.first_touch)
    if variant.first_touch == "cpu":
        _fill_by_cpu(run, memory, far)
    elif variant.buffer == "system":
        context.copy_to_host(memory, far)
    elif variant.direction == "write":
        context.stamp(memory, 0, seed)
    else:
        context.fill(memory, POISON)
    return memory


def _fill_by_cpu(run: Run, memory: Buffer, far: Buffer) -> None:
    """By the CPU itself, so that managed pages stay where its first touch put them: what comes from the device comes
    through a small piece of host memory."""
    import numpy as np

    near = np.frombuffer(memory, np.uint8)
    piece = np.empty(min(CPU_COPY_BYTES, memory.bytes), np.uint8)
    for at in range(0, memory.bytes, len(piece)):
        part = piece[: min(len(piece), memory.bytes - at)]
        run.context.copy_to_host(part, far.slice(at, len(part)))
        near[at : at + len(part)] = part


def _need_touch(run: Run, variant: Variant) -> None:
    if variant.buffer == "device" and variant.first_touch == "cpu":
        raise NotPossible("the CPU cannot touch device memory first")
    if variant.buffer == "system" and variant.first_touch == "gpu" and not run.context.device["coherent_with_host"]:
        raise NotPossible("this device cannot touch ordinary host memory first")


def _source(run: Run, variant: Variant) -> Path:
    """The file to read. Raw ones are parts of one file; others are of one size each, made when one is first needed."""
    if variant.format == "raw":
        return run.workspace.source
    path = run.workspace.directory / f"source-{variant.particles}.{particle_files.SUFFIXES[variant.format]}"
    if not path.exists():
        _make(run, path, variant.particles, variant.format)
    return path


def _make(run: Run, path: Path, particles: int, format: str) -> None:
    whole = Variant(particles, "buffered", "write", format)
    memory = run.memory(whole.bytes)
    run.context.stamp(memory, 0, FILE_SEED)
    particle_files.write(run.context, path, whole, memory)


def _in_state(run: Run, source: Path, variant: Variant) -> float:
    with run.context.open(source) as file:
        bytes = variant.bytes if variant.format == "raw" else file.size_bytes
        return make_hot(file, bytes) if variant.cache == "hot" else make_cold(file, bytes)


def _verified(run: Run, variant: Variant, moved: tuple[Path, Buffer], seed: int) -> float:
    """On the device: what a read brought, or what a buffered read brings of what was written. Seconds of that."""
    (path, memory), context = moved, run.context
    checked = run.memory(variant.bytes)
    if variant.direction == "write":
        poison(context, checked)
        particle_files.read(context, path, Variant(variant.particles, "buffered", format=variant.format), checked)
    elif variant.buffer in ("device", "managed"):
        checked = memory
    else:
        context.copy_to_device(checked, memory)
    return check(context, path, checked, seed, f" after {variant.name}")
