"""Runs gdsio's jobs: the files, the memory, the threads of the load generator, and gdsio's result line.

What must stay true: bytes take the way that -x names, or the run fails with the cause (transfers are strict); the path
in the line is counted from their evidence; a file that was made by a run that failed is removed, and none is made that
the disk has no room for.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import Context, Error
from penstock._api import File
from penstock.formats import registry
from penstock_bench import _measure
from penstock_bench.gdsio.job import BATCHED, XFER_TYPES, Job, refusal

STAMP_SEED = 7
_SPARE_BYTES = 64 << 20
_BUDGET_BYTES = 256 << 20
_STAGED_BYTES = 2 << 20  # the least that a worker of the engine holds
_LANES_BYTES = 20 << 20  # what a context keeps for small requests, at most
_SLOTS = 4  # of -x 3: while one is filled from storage, another is copied to the GPU
_PATHS = {"1": "direct", "2": "direct", "3": "direct", "4": "buffered", "5": "gds-stream", "auto": "auto"}
_PATHS |= dict.fromkeys(BATCHED, "gds-batch")
_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class GdsioReport:
    """What a job did; `load` as of _measure.run_load."""

    job: Job
    load: dict[str, Any]
    emulated: bool
    data_bytes: int  # of one pass over all files
    why_not_native: str = ""  # of -x 0 in cuFile's compatibility mode

    @property
    def path(self) -> str:
        """The paths that bytes took, the most used first."""
        shares: dict[str, int] = self.load["path_bytes"]
        return "+".join(sorted(shares, key=lambda name: -shares[name])) or "none"

    @property
    def mean_us(self) -> float:
        found = [one for one in (self.load["reads"], self.load["writes"]) if one]
        count = sum(one["count"] for one in found)
        return sum(one["mean_us"] * one["count"] for one in found) / count if count else 0.0

    def line(self) -> str:
        """As gdsio prints it; what gdsio does not say is at the end."""
        job, load = self.job, self.load
        sizes = job.io[:1] if job.io[0] == job.io[1] else job.io
        depth = f" IoDepth: {job.depth}" if job.transfer in BATCHED else ""
        rate = load["bytes"] / load["seconds"] / (1 << 30) if load["seconds"] > 0 else 0.0
        return (
            f"IoType: {job.io_type} XferType: {XFER_TYPES[job.transfer]} Threads: {job.threads}{depth} "
            f"DataSetSize: {load['bytes'] >> 10}/{self.data_bytes >> 10}(KiB) "
            f"IOSize: {'-'.join(f'{size / 1024:g}' for size in sizes)}(KiB) "
            f"Throughput: {rate:.6f} GiB/sec, Avg_Latency: {self.mean_us:.6f} usecs ops: {load['operations']} "
            f"total_time {load['seconds']:.6f} secs Path: {self.path}" + (" Device: emulated" if self.emulated else "")
        )


def run(job: Job) -> Iterator[GdsioReport]:
    """The job, and after a verified write the reading that checks it, where all of the files was written."""
    if job.node is not None:
        bind(job.node)
    with ExitStack() as stack:
        largest = job.io[1] * job.depth * job.threads
        budget = max(_BUDGET_BYTES, 2 * largest, job.threads * _STAGED_BYTES + _LANES_BYTES)
        context = stack.enter_context(Context(job.device, budget_bytes=budget, strict=False))
        made = stack.enter_context(_removed_on_error())
        if job.writes or job.read_percent is not None:
            reserve(job, made)
        files = [stack.enter_context(_opened(context, job, path)) for path in job.files]
        done = _report_of(context, job, files)
        made.clear()  # from here on the files are the user's
        yield done
        if job.verify and job.writes and not job.random and job.seconds is None and job.read_percent is None:
            yield _report_of(context, replace(job, writes=False), files)


def bind(node: int) -> None:
    """Runs this process, with all threads it will make, on the processors of a NUMA node."""
    place = _NODES / f"node{node}" / "cpulist"
    try:
        cpus = _numbers(place.read_text().strip())
    except OSError:
        known = ", ".join(sorted(path.name[4:] for path in _NODES.glob("node[0-9]*"))) or "none"
        raise refusal("-n", f"there is no NUMA node {node}", f"nodes here: {known}", "unsupported") from None
    allowed = cpus & os.sched_getaffinity(0)
    if not allowed:
        raise refusal("-n", f"this process may use no processor of node {node}", "see taskset -p", "unsupported")
    os.sched_setaffinity(0, allowed)


def _numbers(text: str) -> set[int]:
    """Of "0-3,8"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def reserve(job: Job, made: list[Path]) -> None:
    """Makes the files as large as the job needs them. Those that were not there before are in `made` as soon as they
    may be there."""
    end = job.start + job.size
    needed = sum(max(0, end - (path.stat().st_blocks * 512 if path.exists() else 0)) for path in job.files)
    place = job.files[0].parent
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        raise Error.of(error, "gdsio", str(place), "name a directory that exists") from None
    if needed + _SPARE_BYTES > free:
        cause = f"{free} bytes are free, {needed} and 64 MiB to spare are needed"
        raise Error(code="no_space", operation="gdsio", file=str(place), cause=cause, advice="use a smaller -s")
    for path in job.files:
        if not path.exists():
            made.append(path)
        elif not path.is_file():
            raise Error(operation="gdsio", file=str(path), cause="not a regular file", advice="name another with -f")
        known = registry.content_of(str(path))
        if known is not None:
            cause = f"it holds data of a known format ({known}), which the job would write over"
            raise Error(operation="gdsio", file=str(path), cause=cause, advice="name another with -f, or remove it")
        _allocate(path, end)


def _allocate(path: Path, end: int) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        try:
            os.posix_fallocate(descriptor, 0, end)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Error.of(error, "gdsio", str(path), "name a file that you can write") from None


@contextmanager
def _removed_on_error() -> Iterator[list[Path]]:
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise


def _opened(context: Context, job: Job, path: Path) -> File:
    try:
        return context.open(path, write=job.writes or job.read_percent is not None)
    except Error as error:
        if error.code != "not_found":
            raise
        advice = f"write it first, with -I 1 -s SIZE{' and the same -D and -w' if len(job.files) > 1 else ''}"
        cause = "a read needs it, and it is not there"
        raise Error(code=error.code, operation="gdsio", file=str(path), cause=cause, advice=advice) from None


def _report_of(context: Context, job: Job, files: list[File]) -> GdsioReport:
    span = job.size or max(0, min(file.size_bytes for file in files) - job.start)
    options = _options(job, span)
    chosen, why = _prime(context, job, files[0])
    options["path"] = chosen
    memory = _memory(context, job, _measure.load_memory_bytes(span, **options))
    found = _measure.run_load(context._raw, [file._raw for file in files], memory, **options)
    return GdsioReport(job, found, context.device["emulated"], span * len(files), why)


def _options(job: Job, span: int) -> dict[str, Any]:
    """Options of the load generator."""
    options: dict[str, Any] = {
        "read_percent": 0 if job.writes else 100,
        "request_bytes": job.io[0],
        "request_bytes_max": job.io[1],
        "request_bytes_step": job.io[2],
        "threads": job.threads,
        "batch": job.depth,
        "order": "random" if job.random else "sequential",
        "seed": job.seed,
        "alignment": job.alignment,
        "unaligned": job.unaligned,
        "offset": job.start,
        "bytes": span,
        "strict": job.transfer != "auto" and not job.unaligned,  # edges of an unaligned write cannot be direct
    }
    if job.read_percent is not None:
        options["read_percent"] = job.read_percent
    if job.seconds is not None:
        options |= {"seconds": job.seconds, "repeat": True}
    if job.verify or job.refill:
        options["stamp_seed"] = STAMP_SEED  # the data of a write depend on their place only
    if job.transfer in ("1", "2", "3", "4"):
        slots = _SLOTS if job.transfer == "3" else 1
        options |= {"workers": 1, "depth": slots, "chunk_bytes": _chunk(job.io[1], slots)}
    elif job.transfer != "auto":
        options |= {"workers": 1, "depth": max(1, job.depth), "chunk_bytes": _chunk(job.io[1], 1)}
    return options


def _chunk(request: int, slots: int) -> int:
    """Bytes of a chunk of a request that goes through so many slots; whole pages."""
    return max(4096, -(-request // slots // 4096) * 4096)


def _prime(context: Context, job: Job, file: File) -> tuple[str, str]:
    """The path that -x means here, and why -x 0 is not native where it is not. Reads a little by it, with as many
    workers as there will be threads: the engine makes its workers when they are first wanted."""
    wanted = ["gds", "gds-compat"] if job.transfer == "0" else [_PATHS[job.transfer]]
    if job.transfer in ("1", "2", "3") and not job.direct:
        wanted = ["buffered"]
    causes: list[str] = []
    for path in wanted:
        try:
            _read_a_little(context, job, file, path)
            return path, "".join(causes)
        except Error as error:
            if error.code not in ("unsupported", "fallback_refused"):
                raise
            causes.append(error.cause)
    advice = "use another -x; penstock doctor shows what this machine has"
    raise refusal(f"-x {job.transfer}", f"{wanted[-1]} is not possible here: {causes[-1]}", advice, "unsupported")


def _read_a_little(context: Context, job: Job, file: File, path: str) -> None:
    size = min(job.threads * 4096, file.size_bytes)
    if size == 0:
        return
    memory = _allocate_memory(context, job, size)
    shape = {} if path == "auto" else {"workers": job.threads, "depth": 1, "chunk_bytes": 4096}
    file.start_read(memory, 0, path=path, strict=path != "auto" and size % 4096 == 0, **shape).result()


def _memory(context: Context, job: Job, size: int) -> Any:
    """Memory of the requests: touched, and filled as it was asked for."""
    memory = _allocate_memory(context, job, max(1, size))
    if not job.random_fill:
        return memory
    if job.memory == "mmap":
        memory[:] = os.urandom(len(memory))
    elif job.memory == "device":
        context.stamp(memory, 0, job.seed)
    else:
        source = context.allocate(memory.bytes, first_touch="gpu")
        context.stamp(source, 0, job.seed)
        context.copy_to_host(memory, source)
    return memory


def _allocate_memory(context: Context, job: Job, size: int) -> Any:
    if job.memory == "mmap":
        mapped = mmap.mmap(-1, size)
        mapped[:: mmap.PAGESIZE] = bytes(len(range(0, size, mmap.PAGESIZE)))
        return mapped
    return context.allocate(size, job.memory, first_touch="gpu" if job.memory == "device" else "cpu")
