"""What the host alone does with the same files, and others' ways to the device, as samples of the suite `gpu-io`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock import Error
from penstock._api import Buffer, File
from penstock.calibration.media import from_another_cache
from penstock.calibration.stage import wrong_bytes
from penstock.calibration.workspace import FILE_SEED, NotPossible, make_cold, make_resident
from penstock_bench import _measure
from penstock_bench.engine import loads
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Sample
from penstock_bench.engine.run import Run
from penstock_bench.suites.gpu_io.own import ROW_BYTES, GpuIo, row_numbers, rows_of

BATCH = 64  # requests of one submission of io_uring
URING_THREADS = 4
Options = dict[str, Any]


def threads(count: int) -> Callable[[File], Options]:
    """As many threads, each in pread or pwrite, past the page cache where the file system lets them."""
    return lambda file: {"threads": count, "plain": True, "plain_direct": bool(file.facts["direct"])}


def uring(_: File) -> Options:
    """Some threads, each of which submits many at once."""
    count = min(URING_THREADS, len(os.sched_getaffinity(0)))
    return {"threads": count, "batch": BATCH, "path": "uring", "strict": True, "workers": count, "depth": BATCH}


def cold(run: Run, own: GpuIo, request: tuple[int, bool], way: Callable[[File], Options], turn: int) -> Sample:
    """Reads into the host's memory from a file that is not in the page cache; `request` is bytes, and whether they are
    in sequence."""
    own.storms.rest()
    with run.context.open(run.workspace.source) as file:
        options = _options(own, request, turn) | {"seconds": own.disk_seconds} | way(file)
        memory = _memory(run, "system", options)
        loads.warm_up(run.context, file, memory, **options)
        resident = make_cold(file, run.bytes)
        with run.workspace.media.watch() as media:
            report = loads.run_load(run.context, file, memory, **options)
        state = loads.proved(file, run.bytes, "cold", resident)
    cached = from_another_cache(media, report["bytes"])
    if cached:
        raise NotPossible(cached)
    return _sample(report, request) | state | media.fields()


def write(run: Run, own: GpuIo, request: tuple[int, bool], way: Callable[[File], Options], turn: int) -> Sample:
    """As many bytes as the device writes, from the host's memory."""
    own.storms.rest()
    with run.context.open(run.workspace.target, write=True) as file:
        chosen = way(file)
        each = own.write_bytes[request[0]] // request[0] // (chosen["threads"] * chosen.get("batch", 1))
        options = _options(own, request, turn) | {"direction": "write", "seconds": None, "stamp_seed": None} | chosen
        options |= {"check_last": False, "requests_per_thread": max(1, each) * chosen.get("batch", 1)}
        memory = _memory(run, "system", options)
        make_cold(file, run.bytes)
        report = loads.run_load(run.context, file, memory, **options)
    return _sample(report, request)


def to_device(run: Run, own: GpuIo, way: Callable[[File], Options], request_bytes: int, turn: int) -> Sample:
    """Random reads of a file in the page cache into the device's memory, by threads of the host."""
    own.storms.rest()
    with run.context.open(rows_of(run)) as file:
        make_resident(file, run.bytes)
        request = (request_bytes, False)
        options = _options(own, request, turn) | way(file)
        memory = _memory(run, "device", options)
        loads.warm_up(run.context, file, memory, **options)
        report = loads.run_load(run.context, file, memory, **options)
    return _sample(report, request) | {"cache": "hot"}


def pread_and_copy(_: File) -> Options:
    """Threads that each pread what the page cache holds, copy it to the device and wait."""
    return {"threads": len(os.sched_getaffinity(0)), "plain": True, "plain_direct": False}


def cufile(_: File) -> Options:
    """cuFile without its kernel module: threads that wait for one request after the other."""
    return {"threads": len(os.sched_getaffinity(0)), "path": "gds-compat", "strict": True}


def memmap_and_copy(run: Run, own: GpuIo, turn: int) -> Sample:
    """Rows as one does it with NumPy: rows picked out of a memmap, then one copy to the device."""
    import numpy as np

    own.storms.rest()
    numbers = row_numbers(run, own.peer_rows, turn)
    with run.context.open(rows_of(run)) as file:
        make_resident(file, run.bytes)
    mapped = np.memmap(rows_of(run), np.uint64, "r").reshape(-1, ROW_BYTES // 8)
    memory = run.context.allocate(numbers.size * ROW_BYTES, first_touch="gpu")
    mapped[row_numbers(run, own.peer_rows, turn + 1000)].sum()  # pages are mapped then, as those of ours are
    with Stopwatch() as watch:
        start = time.perf_counter()
        picked = mapped[numbers]
        run.context.copy_to_device(memory, picked.reshape(-1).view(np.uint8))
        seconds = time.perf_counter() - start
    check_rows(run, numbers, memory, rows_of(run))
    return rows_sample(numbers.size, seconds, watch) | {"took": "memmap", "cache": "hot"}


def rows_sample(count: int, seconds: float, watch: Stopwatch, row_bytes: int = ROW_BYTES) -> Sample:
    return {
        "bytes": count * row_bytes,
        "seconds": seconds,
        "operations": count,
        "operations_per_second": count / seconds,
        "request_bytes": row_bytes,
        "order": "random",
        **watch.cpu(),
    }


def check_rows(run: Run, numbers: Any, memory: Buffer | Any, file: Path) -> None:
    """Raises Error unless the device's memory holds exactly these rows of a stamped file."""
    placed = run.context.allocate(numbers.nbytes)
    run.context.copy_to_device(placed, numbers.view("u1"))
    bad = _measure.wrong_words(run.context._raw, placed, memory, FILE_SEED)
    if bad:
        raise wrong_bytes(file, 0, 8 * bad, " of the rows that were gathered")


def _options(own: GpuIo, request: tuple[int, bool], turn: int) -> Options:
    size, sequential = request
    return {
        "request_bytes": size,
        "order": "sequential" if sequential else "random",
        "seed": turn + 1,
        "alignment": size,
        "whole_span": not sequential,
        "repeat": True,
        "seconds": own.cell_seconds,
        "stamp_seed": FILE_SEED,
        "check_last": True,
    }


def _memory(run: Run, kind: str, options: Options) -> Buffer:
    bytes = max(1, _measure.load_memory_bytes(run.bytes, **options))
    return run.context.allocate(bytes, kind, first_touch="gpu" if kind == "device" else "cpu")


def _sample(report: dict[str, Any], request: tuple[int, bool]) -> Sample:
    if not report["operations"]:
        raise Error(code="io_error", operation="bench", cause="the host's loop moved nothing")
    order = "sequential" if request[1] else "random"
    verified = {"verified_bytes": report["verified_bytes"]}
    return loads.sample_of(report) | verified | {"request_bytes": request[0], "order": order}
