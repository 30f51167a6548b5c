"""Random 4 KiB requests of files of several sizes, for the suite `gpu-io`: does the rate depend on the size?

Files that the disk at hand has no room for, or would take too long to write, are missing with that cause.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import parse_bytes
from penstock._text import bytes_text
from penstock.calibration.media import from_another_cache
from penstock.calibration.workspace import NotPossible, Workspace, make_cold, make_resident
from penstock_bench.engine import loads
from penstock_bench.engine.rounds import Probe, Sample
from penstock_bench.suites.gpu_io.storms import Setup, Shape, sampled

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run
    from penstock_bench.suites.gpu_io.own import GpuIo

PAGE = 4096
DISK = Shape(1024, 32, 1)
MEMORY = Shape(512, 32, 8)
FREE_TIMES = 2.0  # of a file's bytes that must be free before
MAKE_SECONDS = 20.0  # at most, by how long the suite's own files took
MEMORY_SHARE = 0.4  # of the machine's memory, for a file in the page cache


@dataclass(frozen=True)
class Data:
    """A file of a size, or why there is none."""

    bytes: int
    file: Path | None
    cause: str = ""


def made(run: Run, rate: float) -> list[Data]:
    """The files, in a folder each that goes with the suite. `rate` is of writing the suite's own, in bytes a second."""
    return [_made(run, parse_bytes(str(size)), rate) for size in run.settings["data_bytes"]]


def _made(run: Run, bytes: int, rate: float) -> Data:
    parent = run.workspace.directory.parent
    free = shutil.disk_usage(parent).free
    if free < FREE_TIMES * bytes:
        return Data(bytes, None, f"{bytes_text(free)} are free on the disk, twice the file is asked for")
    if bytes / rate > MAKE_SECONDS:
        return Data(bytes, None, f"to write it would take {bytes / rate:.0f} s, at most {MAKE_SECONDS:.0f} are taken")
    run.step(0, 0, f"making a file of {bytes_text(bytes)}")
    named = ("bench", "another --dir")
    place = run.stack.enter_context(Workspace(run.context, parent, bytes, files=1, named=named))
    return Data(bytes, place.make(place.source))


def timed(make: Callable[[], object]) -> float:
    """How long it took, in seconds."""
    began = time.perf_counter()
    make()
    return time.perf_counter() - began


def probes(run: Run, own: GpuIo, sizes: list[Data]) -> list[Probe]:
    found = []
    for data in sizes:
        what = f"random 4 KiB of {bytes_text(data.bytes)}"
        for name, measure in (("disk", _cold), ("page cache", _hot)):
            found.append(Probe(f"{what}, {name}", partial(_measured, run, own, data, measure), what))
    return found


def _measured(run: Run, own: GpuIo, data: Data, measure: Callable[[Run, GpuIo, Data], Sample], _turn: int) -> Sample:
    if data.file is None:
        raise NotPossible(data.cause)
    return measure(run, own, data) | {"subject": "sizes", "data_bytes": data.bytes}


def _cold(run: Run, own: GpuIo, data: Data) -> Sample:
    assert data.file is not None
    setup = Setup(data.file, service_threads=min(4, own.cores), slots=4096)
    return cold_storm(run, own, setup, DISK, data.bytes)


def cold_storm(run: Run, own: GpuIo, setup: Setup, shape: Shape, bytes: int) -> Sample:
    """A storm on a file of so many bytes that is not in the page cache. No service lives that maps it, for what is
    mapped stays; the new one looks what is cached ten times a second: the file is cold before it comes into being, and
    again before the clock starts."""
    own.storms.rest()
    with run.context.open(setup.file) as file:
        make_cold(file, bytes)
        storm = own.storms.get(setup)
        storm.run(requests=1, seconds=1.0, checked=False, **shape.options())
        resident = make_cold(file, bytes)
        with run.workspace.media.watch() as media:
            sample = sampled(storm, setup, shape, seconds=own.disk_seconds)
        state = loads.proved(file, bytes, "cold", resident)
    other = from_another_cache(media, sample["bytes"])
    if other:
        raise NotPossible(other)
    return sample | state | media.fields()


def _hot(run: Run, own: GpuIo, data: Data) -> Sample:
    assert data.file is not None
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if data.bytes > MEMORY_SHARE * memory:
        raise NotPossible(f"the machine has {bytes_text(memory)} of memory")
    setup = Setup(data.file, service_threads=own.most_threads, slots=own.cache_slots, warm=True)
    with run.context.open(data.file) as file:
        make_resident(file, data.bytes)
        storm = own.storms.get(setup)
        sample = sampled(storm, setup, MEMORY, seconds=own.cell_seconds)
    return sample | {"cache": "hot", "memory": "page cache"}
