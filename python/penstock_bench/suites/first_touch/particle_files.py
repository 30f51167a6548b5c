"""Particles written to and read from files of several formats, with each part of the time apart.

Raw files are one transfer of all fields, one after the other; in the others each field is a dataset, and all are under
way at once, through the Python API. `seconds` are of the transfer alone, by the clock on the wall for all formats.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import penstock
from penstock import Context
from penstock._api import Buffer
from penstock_bench.engine.results import Stopwatch, seconds_of
from penstock_bench.suites.first_touch.cases import Variant, arrays

SUFFIXES = {"raw": "bin", "hdf5": "h5", "netcdf4": "nc", "netcdf3": "nc3"}


@dataclass
class Spent:
    """Seconds by name (open_s or create_s, seconds, close_s, fsync_s), CPU seconds of the transfer, the paths taken."""

    times: dict[str, float] = field(default_factory=dict)
    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    took: str = ""

    def moved(self, watch: Stopwatch, paths: set[str]) -> None:
        self.times["seconds"] = watch.seconds
        self.cpu_user_s, self.cpu_system_s = watch.cpu_user_s, watch.cpu_system_s
        self.took = ", ".join(sorted(paths))


def read(context: Context, path: Path, variant: Variant, memory: Buffer) -> Spent:
    """Fills the memory from the start of a raw file, or from the datasets of another."""
    spent, start = Spent(), time.perf_counter()
    options = _options(variant)
    if variant.format == "raw":
        with context.open(path) as file:
            spent.times["open_s"] = time.perf_counter() - start
            with Stopwatch() as watch:
                outcome = file.read(memory, **options)
        spent.moved(watch, {outcome.path})
        return spent
    with penstock.open(path, context=context, format=variant.format) as whole:
        found = {name: whole[name] for name in arrays(memory, variant.particles)}
        spent.times["open_s"] = time.perf_counter() - start
        with Stopwatch() as watch:
            pending = [
                found[name].start_read(out=part, **options) for name, part in arrays(memory, variant.particles).items()
            ]
            for one in pending:
                one.result()
        spent.moved(watch, {one.outcome.path for one in pending})
    return spent


def write(context: Context, path: Path, variant: Variant, memory: Buffer) -> Spent:
    """A new file of the memory, on stable storage when this returns."""
    spent, start = Spent(), time.perf_counter()
    options = _options(variant)
    if variant.format == "raw":
        with context.create(path, variant.bytes) as file:
            spent.times["create_s"] = time.perf_counter() - start
            with Stopwatch() as watch:
                outcome = file.write(memory, **options)
            spent.times |= {"fsync_s": seconds_of(file.sync), "close_s": seconds_of(file.close)}
        spent.moved(watch, {outcome.path})
        return spent
    with penstock.create(path, context=context, format=variant.format) as whole:
        fields = arrays(memory, variant.particles)
        made = whole.create_datasets({name: (part.shape, part.dtype) for name, part in fields.items()})
        spent.times["create_s"] = time.perf_counter() - start
        with Stopwatch() as watch:
            pending = [made[name].start_write(part, **options) for name, part in fields.items()]
            for one in pending:
                one.result()
        spent.moved(watch, {one.outcome.path for one in pending})
        spent.times["close_s"] = seconds_of(whole.close)
    spent.times["fsync_s"] = seconds_of(lambda: _sync(path))
    return spent


def _options(variant: Variant) -> dict[str, Any]:
    options: dict[str, Any] = {"path": variant.path, "strict": variant.path != "auto"}
    if variant.chunk_bytes:
        options["chunk_bytes"] = variant.chunk_bytes
    if variant.workers:
        options["workers"] = variant.workers
    return options


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
