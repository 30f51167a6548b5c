"""The suite `core`: the rates Penstock promises, beside their baselines and peers, interleaved in one run.

The checks in targets.py compare medians. Every read is verified on the device; every state (hot, cold) is proved
before it is timed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import _core, parse_bytes
from penstock._api import Buffer, File
from penstock.calibration.media import from_another_cache
from penstock.calibration.poison import poison
from penstock.calibration.stage import wrong_bytes
from penstock.calibration.workspace import FILE_SEED, NotPossible, Workspace, make_cold, make_hot, make_resident
from penstock.cli.show import Step
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.results import Results, Stopwatch, latency_fields, seconds_of
from penstock_bench.engine.rounds import Probe, Rounds, Sample, run_rounds
from penstock_bench.engine.stamped import check
from penstock_bench.suites.core import peers
from penstock_bench.suites.core.bench import CoreBench

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

BLOCK_BYTES = 4096
MIN_TMPFS_BYTES = 64 << 20
PINNED_COPY_BYTES = 1 << 30
Reads = Callable[[], tuple[list[int], list[float]]]  # reads blocks; returns their offsets in the file, and seconds


def run_suite(run_of: Run) -> None:
    """Both files stay open; the buffers are made and touched once."""
    context, place, definition = run_of.context, run_of.workspace, run_of.definition
    source, target = (
        run_of.stack.enter_context(context.open(path, write=True)) for path in (place.source, place.target)
    )
    device = context.allocate(definition.file_bytes, first_touch="gpu")
    pinned = context.allocate(min(PINNED_COPY_BYTES, definition.file_bytes), "pinned", first_touch="cpu")
    settings = definition.settings["core"]
    bench = CoreBench(context, place, run_of.results, settings, source, target, device, pinned, run_of.peers)
    run(bench, definition, run_of.step)


def run(bench: CoreBench, definition: Definition, step: Step) -> None:
    """All probes, `definition.repeats` times, interleaved; then the probes that run once."""
    best = {way: fastest_host_loop(bench, way, step) for way in ("read", "write")}
    probes = _probes(bench, best) + peers.probes(bench)
    run_rounds(bench.results, "core", probes, Rounds(definition.repeats, definition.seconds), step)
    step(1, 1, "memory")
    if not bench.results.has("memory"):
        peers.measure_memory(bench)


def _probes(bench: CoreBench, best: dict[str, dict[str, Any]]) -> list[Probe]:
    probes = [
        Probe("copy to device", lambda _: _copy(bench, True)),
        Probe("copy to host", lambda _: _copy(bench, False)),
        Probe("engine read", lambda _: _engine(bench, "read")),
        Probe("engine write", lambda _: _engine(bench, "write")),
        Probe("hot read", lambda _: read(bench, "auto", "hot")),
        Probe("second read", lambda _: read(bench, "auto", "second")),
        Probe("cold read", lambda _: read(bench, "auto", "cold")),
        Probe("direct read", lambda _: read(bench, "direct", "cold")),
        Probe("hot write", lambda _: write(bench, "auto", "hot")),
        Probe("cold write", lambda _: write(bench, "auto", "cold")),
        Probe("direct write", lambda _: write(bench, "direct", "cold")),
        Probe("host threads read", lambda _: _host_loop(bench, best["read"])),
        Probe("host threads write", lambda _: _host_loop(bench, best["write"])),
        Probe("4 KiB one at a time", lambda turn: _one_at_a_time(bench, turn)),
        Probe("4 KiB one at a time, Python", lambda turn: _one_at_a_time_in_python(bench, turn)),
        Probe("4 KiB queued", lambda turn: _queued(bench, turn)),
    ]
    if bench.emulated:
        probes.append(Probe("pread and memcpy", lambda _: _plain_loop(bench)))
    probes += [
        Probe(f"tmpfs {what}", lambda turn, what=what: _tmpfs(bench, what, turn))
        for what in ("first read", "later read", "write")
    ]
    return probes


def _copy(bench: CoreBench, up: bool) -> Sample:
    bytes = bench.pinned.bytes
    device = bench.device.slice(0, bytes)
    return _native(bytes, lambda: _core.copy_seconds(bench.context._raw, up, device, bench.pinned))


def _native(bytes: int, loop: Callable[[], float]) -> Sample:
    """A sample of a compiled loop that measures its own seconds."""
    with Stopwatch() as watch:
        seconds = loop()
    return {"bytes": bytes, "seconds": seconds, **watch.cpu()}


def _make_loaded(file: File, bytes: int) -> float:
    """In the page cache and not touched since it came there: what the second reader of a file finds."""
    make_cold(file, bytes)
    return make_resident(file, bytes)


STATES = {"hot": make_hot, "second": _make_loaded, "cold": make_cold}


def read(bench: CoreBench, path: str, cache: str) -> Sample:
    """One read of the whole file, by default settings but for the path; of a hot file after one that is not timed."""
    resident = STATES[cache](bench.source, bench.bytes)
    if cache == "hot":
        bench.source.read(bench.device, path=path)
    poison(bench.context, bench.device)
    with bench.workspace.media.watch() as media:
        sample = _timed(bench.source.start_read, bench.device, path) | {"resident_before": resident}
    verify_s = check(bench.context, bench.source.name, bench.device, FILE_SEED)
    cause = from_another_cache(media, bench.bytes) if cache == "cold" else ""
    if cause:
        raise NotPossible(cause)
    return sample | media.fields() | {"verify_s": verify_s}


def write(bench: CoreBench, path: str, cache: str) -> Sample:
    """One write of the whole target file, read back through the page cache and verified."""
    seed = next(bench.seeds)
    bench.context.stamp(bench.device, 0, seed)
    STATES[cache](bench.target, bench.bytes)
    with bench.workspace.media.watch() as media:
        sample = _timed(bench.target.start_write, bench.device, path)
        fsync_s = seconds_of(bench.target.sync)
    poison(bench.context, bench.device)
    bench.target.read(bench.device, path="buffered")
    verify_s = check(bench.context, bench.target.name, bench.device, seed)
    return sample | media.fields() | {"fsync_s": fsync_s, "verify_s": verify_s}


def _engine(bench: CoreBench, direction: str) -> Sample:
    """What the engine does when storage moves nothing: the ceiling of whatever it does with storage."""
    start = bench.source.start_read if direction == "read" else bench.target.start_write
    return _timed(start, bench.device, "null")


def _timed(start: Callable[..., Any], memory: Buffer, path: str) -> Sample:
    with Stopwatch() as watch:
        outcome = start(memory, 0, path=path).result()
    return {
        "bytes": outcome.bytes,
        "seconds": outcome.seconds,
        "took": outcome.path,
        **watch.cpu(),
    }


def fastest_host_loop(bench: CoreBench, direction: str, step: Step) -> dict[str, Any]:
    """The best of a grid of threads x chunk sizes of O_DIRECT host I/O without any device. Best of two tries each."""
    if not bench.source.facts["direct"]:
        return {}
    rates: dict[tuple[int, int], float] = {}
    for threads in bench.settings["host_threads"]:
        for chunk in bench.settings["host_chunk_bytes"]:
            loop = _loop(bench, direction, threads, parse_bytes(str(chunk)))
            known = _known(bench.results, loop)
            if known is not None:
                rates[threads, loop["chunk_bytes"]] = known
                continue
            step(0, 0, f"host threads {direction} {threads} x {chunk}")
            seconds = min(_core.host_threads(**loop) for _ in range(2))
            rates[threads, loop["chunk_bytes"]] = bench.bytes / seconds
            bench.results.add(
                "host_grid", **loop | {"file": ""}, seconds=seconds, bytes_per_second=bench.bytes / seconds
            )
    threads, chunk = max(rates, key=lambda key: rates[key])
    return _loop(bench, direction, threads, chunk)


def _known(results: Results, loop: dict[str, Any]) -> float | None:
    """The rate of a loop that an earlier part of this run measured."""
    for row in results.rows:
        if row["kind"] == "host_grid" and all(row[name] == loop[name] for name in loop if name != "file"):
            return float(row["bytes_per_second"])
    return None


def _loop(bench: CoreBench, direction: str, threads: int, chunk_bytes: int) -> dict[str, Any]:
    file = bench.source if direction == "read" else bench.target
    return {
        "file": file.name,
        "direction": direction,
        "direct": True,
        "threads": threads,
        "chunk_bytes": chunk_bytes,
        "bytes": bench.bytes,
    }


def _host_loop(bench: CoreBench, loop: dict[str, Any]) -> Sample:
    if not loop:
        raise NotPossible("this file system has no O_DIRECT")
    make_cold(bench.source if loop["direction"] == "read" else bench.target, bench.bytes)
    shape = {"threads": loop["threads"], "chunk_bytes": loop["chunk_bytes"]}
    return _native(bench.bytes, lambda: _core.host_threads(**loop)) | shape


def _plain_loop(bench: CoreBench) -> Sample:
    make_hot(bench.source, bench.bytes)
    raw, name = bench.context._raw, bench.source.name
    _core.pread_memcpy(raw, name, bench.device, 1 << 20)
    poison(bench.context, bench.device)
    sample = _native(bench.bytes, lambda: _core.pread_memcpy(raw, name, bench.device, 1 << 20))
    check(bench.context, name, bench.device, FILE_SEED)
    return sample


def _one_at_a_time(bench: CoreBench, turn: int) -> Sample:
    raw = bench.source._raw
    return _latencies(bench, 1, lambda memory: lambda: _core.read_latencies(raw, memory, BLOCK_BYTES, turn + 1))


def _one_at_a_time_in_python(bench: CoreBench, turn: int) -> Sample:
    places = random.Random(turn)

    def reader(memory: Buffer) -> Reads:
        blocks = [memory.slice(at, BLOCK_BYTES) for at in range(0, memory.bytes, BLOCK_BYTES)]
        offsets = [places.randrange(bench.bytes // BLOCK_BYTES) * BLOCK_BYTES for _ in blocks]

        def reads() -> tuple[list[int], list[float]]:
            each = []
            for block, offset in zip(blocks, offsets, strict=True):
                start = time.perf_counter()
                bench.source.read(block, offset)
                each.append(time.perf_counter() - start)
            return offsets, each

        return reads

    return _latencies(bench, 4, reader)


def _latencies(bench: CoreBench, part: int, reader: Callable[[Buffer], Reads]) -> Sample:
    """One block at a time from anywhere in the file, each into memory of its own, so that all are checked once the last
    has come."""
    count = min(int(bench.settings["latency_reads"]) // part, bench.bytes // BLOCK_BYTES)
    memory = bench.device.slice(0, count * BLOCK_BYTES)
    make_hot(bench.source, bench.bytes)
    poison(bench.context, memory)
    reads = reader(memory)
    with Stopwatch() as watch:
        offsets, each = reads()
    for number, offset in enumerate(offsets):
        bad, first = bench.context.verify_stamp(memory.slice(number * BLOCK_BYTES, BLOCK_BYTES), offset, FILE_SEED)
        if bad:
            raise wrong_bytes(bench.source.name, first, bad)
    return {"bytes": memory.bytes, "seconds": sum(each)} | watch.cpu() | latency_fields(each)


def _queued(bench: CoreBench, turn: int) -> Sample:
    """As many 4 KiB reads as asked for, up to the size of the file, in random order, in one submission."""
    bytes = min(bench.bytes, int(bench.settings["queued_reads"]) * BLOCK_BYTES)
    memory = bench.device.slice(0, bytes)
    poison(bench.context, memory)
    make_hot(bench.source, bench.bytes)
    blocks = {"direction": "read", "block_bytes": BLOCK_BYTES, "seed": turn + 1}
    with Stopwatch() as watch:
        outcome = _core.start_blocks(bench.source._raw, memory, blocks).result()
    outcome.or_throw()
    check(bench.context, bench.source.name, memory, FILE_SEED)
    count = bytes // BLOCK_BYTES
    return {
        "bytes": bytes,
        "seconds": outcome.seconds,
        "requests": count,
        **watch.cpu(),
        "took": outcome.path,
        "requests_per_second": count / outcome.seconds,
    }


def _tmpfs(bench: CoreBench, what: str, turn: int) -> Sample:
    """In memory-backed files: the first read of a file, one after its mapping was registered, and a write."""
    shm = Path("/dev/shm")
    if not shm.is_dir():
        raise NotPossible("there is no /dev/shm")
    bytes = min(bench.bytes, int(0.4 * _free_bytes(shm))) >> 20 << 20
    if bytes < MIN_TMPFS_BYTES:
        small = bench.bytes < MIN_TMPFS_BYTES
        raise NotPossible("the files are too small for it" if small else "there is too little room in /dev/shm")
    memory = bench.device.slice(0, bytes)
    with Workspace(bench.context, shm, bytes, files=1) as place:
        # From memory that stays: just after 4 GiB of a GPU's memory were freed, a read takes 7 ms longer (H200).
        bench.context.stamp(memory, 0, FILE_SEED)
        with bench.context.create(place.source, bytes) as file:
            file.write(memory)
        if what == "write":
            return _tmpfs_write(bench, place.source, memory, 100 + turn)
        return _tmpfs_read(bench, place.source, memory, registered=what == "later read")


def _tmpfs_write(bench: CoreBench, name: Path, memory: Buffer, seed: int) -> Sample:
    bench.context.stamp(memory, 0, seed)
    with bench.context.open(name, write=True) as file:
        sample = _timed(file.start_write, memory, "auto")
        poison(bench.context, memory)
        file.read(memory, path="buffered")
    check(bench.context, str(name), memory, seed)
    return sample


def _tmpfs_read(bench: CoreBench, name: Path, memory: Buffer, registered: bool) -> Sample:
    with bench.context.open(name) as file:
        registered = registered and file.register_mapping()[0]
        poison(bench.context, memory)
        sample = _timed(file.start_read, memory, "auto") | {"registered_before": registered}
    check(bench.context, str(name), memory, FILE_SEED)
    return sample


def _free_bytes(place: Path) -> int:
    import shutil

    return shutil.disk_usage(place).free - (2 << 30)
