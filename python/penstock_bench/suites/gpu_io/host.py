"""What the host alone does with the same files, and others' ways to the device, as samples of the suite `gpu-io`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock import Error, _core
from penstock._api import Buffer, File
from penstock.calibration.media import from_another_cache
from penstock.calibration.stage import wrong_bytes
from penstock.calibration.workspace import FILE_SEED, NotPossible, make_cold, make_resident
from penstock_bench.engine import loads
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Sample
from penstock_bench.suites.gpu_io.bench import ROW_BYTES, GpuIoBench

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


def cold(bench: GpuIoBench, request: tuple[int, bool], way: Callable[[File], Options], turn: int) -> Sample:
    """Reads into the host's memory from a file that is not in the page cache; `request` is bytes, and whether they are
    in sequence."""
    bench.storms.rest()
    with bench.context.open(bench.source) as file:
        options = _options(bench, request, turn) | {"seconds": bench.disk_seconds} | way(file)
        memory = _memory(bench, "system", options)
        loads.warm_up(bench.context, file, memory, **options)
        resident = make_cold(file, bench.bytes)
        with bench.workspace.media.watch() as media:
            report = loads.run_load(bench.context, file, memory, **options)
        state = loads.proved(file, bench.bytes, "cold", resident)
    cached = from_another_cache(media, report["bytes"])
    if cached:
        raise NotPossible(cached)
    return _sample(report, request) | state | media.fields()


def write(bench: GpuIoBench, request: tuple[int, bool], way: Callable[[File], Options], turn: int) -> Sample:
    """As many bytes as the device writes, from the host's memory."""
    bench.storms.rest()
    with bench.context.open(bench.target, write=True) as file:
        chosen = way(file)
        each = bench.write_bytes[request[0]] // request[0] // (chosen["threads"] * chosen.get("batch", 1))
        options = _options(bench, request, turn) | {"direction": "write", "seconds": None, "stamp_seed": None} | chosen
        options |= {"check_last": False, "requests_per_thread": max(1, each) * chosen.get("batch", 1)}
        memory = _memory(bench, "system", options)
        make_cold(file, bench.bytes)
        report = loads.run_load(bench.context, file, memory, **options)
    return _sample(report, request)


def to_device(bench: GpuIoBench, way: Callable[[File], Options], request_bytes: int, turn: int) -> Sample:
    """Random reads of a file in the page cache into the device's memory, by threads of the host."""
    bench.storms.rest()
    with bench.context.open(bench.rows) as file:
        make_resident(file, bench.bytes)
        request = (request_bytes, False)
        options = _options(bench, request, turn) | way(file)
        memory = _memory(bench, "device", options)
        loads.warm_up(bench.context, file, memory, **options)
        report = loads.run_load(bench.context, file, memory, **options)
    return _sample(report, request) | {"cache": "hot"}


def pread_and_copy(_: File) -> Options:
    """Threads that each pread what the page cache holds, copy it to the device and wait."""
    return {"threads": len(os.sched_getaffinity(0)), "plain": True, "plain_direct": False}


def cufile(_: File) -> Options:
    """cuFile without its kernel module: threads that wait for one request after the other."""
    return {"threads": len(os.sched_getaffinity(0)), "path": "gds-compat", "strict": True}


def memmap_and_copy(bench: GpuIoBench, turn: int) -> Sample:
    """Rows as one does it with NumPy: rows picked out of a memmap, then one copy to the device."""
    import numpy as np

    bench.storms.rest()
    numbers = bench.row_numbers(bench.peer_rows, turn)
    with bench.context.open(bench.rows) as file:
        make_resident(file, bench.bytes)
    mapped = np.memmap(bench.rows, np.uint64, "r").reshape(-1, ROW_BYTES // 8)
    memory = bench.context.allocate(numbers.size * ROW_BYTES, first_touch="gpu")
    mapped[bench.row_numbers(bench.peer_rows, turn + 1000)].sum()  # pages are mapped then, as those of ours are
    with Stopwatch() as watch:
        start = time.perf_counter()
        picked = mapped[numbers]
        bench.context.copy_to_device(memory, picked.reshape(-1).view(np.uint8))
        seconds = time.perf_counter() - start
    check_rows(bench, numbers, memory, bench.rows)
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


def check_rows(bench: GpuIoBench, numbers: Any, memory: Buffer | Any, file: Path) -> None:
    """Raises Error unless the device's memory holds exactly these rows of a stamped file."""
    placed = bench.context.allocate(numbers.nbytes)
    bench.context.copy_to_device(placed, numbers.view("u1"))
    bad = _core.wrong_words(bench.context._raw, placed, memory, FILE_SEED)
    if bad:
        raise wrong_bytes(file, 0, 8 * bad, " of the rows that were gathered")


def _options(bench: GpuIoBench, request: tuple[int, bool], turn: int) -> Options:
    size, sequential = request
    return {
        "request_bytes": size,
        "order": "sequential" if sequential else "random",
        "seed": turn + 1,
        "alignment": size,
        "whole_span": not sequential,
        "repeat": True,
        "seconds": bench.cell_seconds,
        "stamp_seed": FILE_SEED,
        "check_last": True,
    }


def _memory(bench: GpuIoBench, kind: str, options: Options) -> Buffer:
    bytes = max(1, _core.load_memory_bytes(bench.bytes, **options))
    return bench.context.allocate(bytes, kind, first_touch="gpu" if kind == "device" else "cpu")


def _sample(report: dict[str, Any], request: tuple[int, bool]) -> Sample:
    if not report["operations"]:
        raise Error(code="io_error", operation="bench", cause="the host's loop moved nothing")
    order = "sequential" if request[1] else "random"
    verified = {"verified_bytes": report["verified_bytes"]}
    return loads.sample_of(report) | verified | {"request_bytes": request[0], "order": order}
