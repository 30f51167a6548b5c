"""The suite `core`: the rates Penstock promises, beside their baselines and peers, interleaved in one run.

judge.py compares medians. Every read is verified on the device; every state (hot, cold) is proved before it is timed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import parse_bytes
from penstock._api import Buffer
from penstock.calibration.media import from_another_cache
from penstock.calibration.poison import poison
from penstock.calibration.stage import wrong_bytes
from penstock.calibration.workspace import FILE_SEED, NotPossible, Workspace, make_cold, make_hot
from penstock_bench import _measure
from penstock_bench.engine.results import Results, Stopwatch, latency_fields, seconds_of
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.engine.stamped import check
from penstock_bench.suites.core import peers
from penstock_bench.suites.core.files import STATES, pinned, source, target

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

BLOCK_BYTES = 4096
MIN_TMPFS_BYTES = 64 << 20
Reads = Callable[[], tuple[list[int], list[float]]]  # reads blocks; returns their offsets in the file, and seconds


def run_suite(run: Run) -> None:
    """All probes in rounds; then the probes that run once. Files are open and memory is there before anything is
    timed."""
    source(run)
    target(run)
    pinned(run)
    run.memory()
    best = {way: fastest_host_loop(run, way) for way in ("read", "write")}
    run_rounds(run, _probes(run, best) + peers.probes(run))
    run.step(1, 1, "memory")
    if not run.results.has("memory"):
        peers.measure_memory(run)


def _probes(run: Run, best: dict[str, dict[str, Any]]) -> list[Probe]:
    probes = [
        Probe("copy to device", lambda _: _copy(run, True)),
        Probe("copy to host", lambda _: _copy(run, False)),
        Probe("engine read", lambda _: _engine(run, "read")),
        Probe("engine write", lambda _: _engine(run, "write")),
        Probe("hot read", lambda _: read(run, "auto", "hot")),
        Probe("second read", lambda _: read(run, "auto", "second")),
        Probe("cold read", lambda _: read(run, "auto", "cold")),
        Probe("direct read", lambda _: read(run, "direct", "cold")),
        Probe("hot write", lambda _: write(run, "auto", "hot")),
        Probe("cold write", lambda _: write(run, "auto", "cold")),
        Probe("direct write", lambda _: write(run, "direct", "cold")),
        Probe("host threads read", lambda _: _host_loop(run, best["read"])),
        Probe("host threads write", lambda _: _host_loop(run, best["write"])),
        Probe("4 KiB one at a time", lambda turn: _one_at_a_time(run, turn)),
        Probe("4 KiB one at a time, Python", lambda turn: _one_at_a_time_in_python(run, turn)),
        Probe("4 KiB queued", lambda turn: _queued(run, turn)),
    ]
    if run.emulated:
        probes.append(Probe("pread and memcpy", lambda _: _plain_loop(run)))
    probes += [
        Probe(f"tmpfs {what}", lambda turn, what=what: _tmpfs(run, what, turn))
        for what in ("first read", "later read", "write")
    ]
    return probes


def _copy(run: Run, up: bool) -> Sample:
    host = pinned(run)
    device = run.device.slice(0, host.bytes)
    return _native(host.bytes, lambda: _measure.copy_seconds(run.context._raw, up, device, host))


def _native(bytes: int, loop: Callable[[], float]) -> Sample:
    """A sample of a compiled loop that measures its own seconds."""
    with Stopwatch() as watch:
        seconds = loop()
    return {"bytes": bytes, "seconds": seconds, **watch.cpu()}


def read(run: Run, path: str, cache: str) -> Sample:
    """One read of the whole file, by default settings but for the path; of a hot file after one that is not timed."""
    resident = STATES[cache](source(run), run.bytes)
    if cache == "hot":
        source(run).read(run.device, path=path)
    poison(run.context, run.device)
    with run.workspace.media.watch() as media:
        sample = _timed(source(run).start_read, run.device, path) | {"resident_before": resident}
    verify_s = check(run.context, source(run).name, run.device, FILE_SEED)
    cause = from_another_cache(media, run.bytes) if cache == "cold" else ""
    if cause:
        raise NotPossible(cause)
    return sample | media.fields() | {"verify_s": verify_s}


def write(run: Run, path: str, cache: str) -> Sample:
    """One write of the whole target file, read back through the page cache and verified."""
    seed = next(run.seeds)
    run.context.stamp(run.device, 0, seed)
    STATES[cache](target(run), run.bytes)
    with run.workspace.media.watch() as media:
        sample = _timed(target(run).start_write, run.device, path)
        fsync_s = seconds_of(target(run).sync)
    poison(run.context, run.device)
    target(run).read(run.device, path="buffered")
    verify_s = check(run.context, target(run).name, run.device, seed)
    return sample | media.fields() | {"fsync_s": fsync_s, "verify_s": verify_s}


def _engine(run: Run, direction: str) -> Sample:
    """What the engine does when storage moves nothing: the ceiling of whatever it does with storage."""
    start = source(run).start_read if direction == "read" else target(run).start_write
    return _timed(start, run.device, "null")


def _timed(start: Callable[..., Any], memory: Buffer, path: str) -> Sample:
    with Stopwatch() as watch:
        outcome = start(memory, 0, path=path).result()
    return {
        "bytes": outcome.bytes,
        "seconds": outcome.seconds,
        "took": outcome.path,
        **watch.cpu(),
    }


def fastest_host_loop(run: Run, direction: str) -> dict[str, Any]:
    """The best of a grid of threads x chunk sizes of O_DIRECT host I/O without any device. Best of two tries each."""
    if not source(run).facts["direct"]:
        return {}
    rates: dict[tuple[int, int], float] = {}
    for threads in run.settings["host_threads"]:
        for chunk in run.settings["host_chunk_bytes"]:
            loop = _loop(run, direction, threads, parse_bytes(str(chunk)))
            known = _known(run.results, loop)
            if known is not None:
                rates[threads, loop["chunk_bytes"]] = known
                continue
            run.step(0, 0, f"host threads {direction} {threads} x {chunk}")
            seconds = min(_measure.host_threads(**loop) for _ in range(2))
            rates[threads, loop["chunk_bytes"]] = run.bytes / seconds
            run.results.add("host_grid", **loop | {"file": ""}, seconds=seconds, bytes_per_second=run.bytes / seconds)
    threads, chunk = max(rates, key=lambda key: rates[key])
    return _loop(run, direction, threads, chunk)


def _known(results: Results, loop: dict[str, Any]) -> float | None:
    """The rate of a loop that an earlier part of this run measured."""
    for row in results.rows:
        if row["kind"] == "host_grid" and all(row[name] == loop[name] for name in loop if name != "file"):
            return float(row["bytes_per_second"])
    return None


def _loop(run: Run, direction: str, threads: int, chunk_bytes: int) -> dict[str, Any]:
    file = source(run) if direction == "read" else target(run)
    return {
        "file": file.name,
        "direction": direction,
        "direct": True,
        "threads": threads,
        "chunk_bytes": chunk_bytes,
        "bytes": run.bytes,
    }


def _host_loop(run: Run, loop: dict[str, Any]) -> Sample:
    if not loop:
        raise NotPossible("this file system has no O_DIRECT")
    make_cold(source(run) if loop["direction"] == "read" else target(run), run.bytes)
    shape = {"threads": loop["threads"], "chunk_bytes": loop["chunk_bytes"]}
    return _native(run.bytes, lambda: _measure.host_threads(**loop)) | shape


def _plain_loop(run: Run) -> Sample:
    make_hot(source(run), run.bytes)
    raw, name, memory = run.context._raw, source(run).name, run.device
    _measure.pread_memcpy(raw, name, memory, 1 << 20)
    poison(run.context, memory)
    sample = _native(run.bytes, lambda: _measure.pread_memcpy(raw, name, memory, 1 << 20))
    check(run.context, name, memory, FILE_SEED)
    return sample


def _one_at_a_time(run: Run, turn: int) -> Sample:
    raw = source(run)._raw
    return _latencies(run, 1, lambda memory: lambda: _measure.read_latencies(raw, memory, BLOCK_BYTES, turn + 1))


def _one_at_a_time_in_python(run: Run, turn: int) -> Sample:
    places, file = random.Random(turn), source(run)

    def reader(memory: Buffer) -> Reads:
        blocks = [memory.slice(at, BLOCK_BYTES) for at in range(0, memory.bytes, BLOCK_BYTES)]
        offsets = [places.randrange(run.bytes // BLOCK_BYTES) * BLOCK_BYTES for _ in blocks]

        def reads() -> tuple[list[int], list[float]]:
            each = []
            for block, offset in zip(blocks, offsets, strict=True):
                start = time.perf_counter()
                file.read(block, offset)
                each.append(time.perf_counter() - start)
            return offsets, each

        return reads

    return _latencies(run, 4, reader)


def _latencies(run: Run, part: int, reader: Callable[[Buffer], Reads]) -> Sample:
    """One block at a time from anywhere in the file, each into memory of its own, so that all are checked once the last
    has come."""
    count = min(int(run.settings["latency_reads"]) // part, run.bytes // BLOCK_BYTES)
    memory = run.device.slice(0, count * BLOCK_BYTES)
    make_hot(source(run), run.bytes)
    poison(run.context, memory)
    reads = reader(memory)
    with Stopwatch() as watch:
        offsets, each = reads()
    for number, offset in enumerate(offsets):
        bad, first = run.context.verify_stamp(memory.slice(number * BLOCK_BYTES, BLOCK_BYTES), offset, FILE_SEED)
        if bad:
            raise wrong_bytes(source(run).name, first, bad)
    return {"bytes": memory.bytes, "seconds": sum(each)} | watch.cpu() | latency_fields(each)


def _queued(run: Run, turn: int) -> Sample:
    """As many 4 KiB reads as asked for, up to the size of the file, in random order, in one submission."""
    bytes = min(run.bytes, int(run.settings["queued_reads"]) * BLOCK_BYTES)
    memory = run.device.slice(0, bytes)
    poison(run.context, memory)
    file = source(run)
    make_hot(file, run.bytes)
    blocks = {"direction": "read", "block_bytes": BLOCK_BYTES, "seed": turn + 1}
    with Stopwatch() as watch:
        outcome = _measure.start_blocks(file._raw, memory, blocks).result()
    outcome.or_throw()
    check(run.context, file.name, memory, FILE_SEED)
    count = bytes // BLOCK_BYTES
    return {
        "bytes": bytes,
        "seconds": outcome.seconds,
        "requests": count,
        **watch.cpu(),
        "took": outcome.path,
        "requests_per_second": count / outcome.seconds,
    }


def _tmpfs(run: Run, what: str, turn: int) -> Sample:
    """In memory-backed files: the first read of a file, one after its mapping was registered, and a write."""
    shm = Path("/dev/shm")
    if not shm.is_dir():
        raise NotPossible("there is no /dev/shm")
    bytes = min(run.bytes, int(0.4 * _free_bytes(shm))) >> 20 << 20
    if bytes < MIN_TMPFS_BYTES:
        small = run.bytes < MIN_TMPFS_BYTES
        raise NotPossible("the files are too small for it" if small else "there is too little room in /dev/shm")
    memory = run.device.slice(0, bytes)
    with Workspace(run.context, shm, bytes, files=1) as place:
        # From memory that stays: just after 4 GiB of a GPU's memory were freed, a read takes 7 ms longer (H200).
        run.context.stamp(memory, 0, FILE_SEED)
        with run.context.create(place.source, bytes) as file:
            file.write(memory)
        if what == "write":
            return _tmpfs_write(run, place.source, memory, 100 + turn)
        return _tmpfs_read(run, place.source, memory, registered=what == "later read")


def _tmpfs_write(run: Run, name: Path, memory: Buffer, seed: int) -> Sample:
    run.context.stamp(memory, 0, seed)
    with run.context.open(name, write=True) as file:
        sample = _timed(file.start_write, memory, "auto")
        poison(run.context, memory)
        file.read(memory, path="buffered")
    check(run.context, str(name), memory, seed)
    return sample


def _tmpfs_read(run: Run, name: Path, memory: Buffer, registered: bool) -> Sample:
    with run.context.open(name) as file:
        registered = registered and file.register_mapping()[0]
        poison(run.context, memory)
        sample = _timed(file.start_read, memory, "auto") | {"registered_before": registered}
    check(run.context, str(name), memory, FILE_SEED)
    return sample


def _free_bytes(place: Path) -> int:
    import shutil

    return shutil.disk_usage(place).free - (2 << 30)
