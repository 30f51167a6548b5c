"""Types of the compiled module that measures: load generators, and what Penstock is compared with."""

from typing import Any

from penstock._core import Context, File, FileName, Transfer

def host_threads(**loop: Any) -> float: ...
def pread_memcpy(context: Context, file: FileName, memory: Any, chunk_bytes: int) -> float: ...
def start_blocks(file: File, memory: Any, blocks: dict[str, Any], **options: Any) -> Transfer: ...
def plan_seconds(file: File, asked: dict[str, Any], count: int) -> float:
    """Mean seconds of planning such a request."""

def copy_seconds(context: Context, to_device: bool, device: Any, pinned: Any) -> float: ...
def read_latencies(file: File, memory: Any, block_bytes: int, seed: int) -> tuple[list[int], list[float]]: ...
def run_load(context: Context, files: list[File], memory: Any, **options: Any) -> dict[str, Any]:
    """Threads that make timed requests. `files`: one for all threads, or one for each. Options, with their defaults:
    direction ("read" or "write") or read_percent, request_bytes, request_bytes_max and request_bytes_step (sizes drawn
    between), threads, in_flight (submissions of a thread), batch (requests of a submission), completion ("wait" or
    "callback"), order ("sequential" or "random"), seed, alignment (of random offsets; 4096), unaligned, offset and
    bytes (the span of each file; bytes 0: to its end), whole_span (threads of one file use all of it, else each its
    part), repeat, requests_per_thread, seconds (time limit or None), warm_requests, mirror (memory holds the span; else
    each request has a slot, see load_memory_bytes), stamp_seed (reads are checked, writes stamped; None: not),
    check_last (with slots: only what each holds at the end is checked), plain
    (pread and copy, nothing of Penstock) and plain_direct, and the options of a transfer (path, chunk_bytes, workers,
    depth, strict).

    Returns bytes, operations, submissions, seconds, cpu_user_s, cpu_system_s, path_bytes, fallbacks, verified_bytes,
    moved (with mirror: (offset, bytes) of what was), reached_limit, and `reads` and `writes`: None, or the latencies of
    submissions as count, min_us, mean_us, p50_us, p99_us, p999_us, max_us and buckets of [low_us, count]."""

def run_copies(context: Context, device: Any, host: Any, **options: Any) -> dict[str, Any]:
    """Timed copies between two memories that hold `multiplicity` copies each; both are overwritten. Options, with their
    defaults: to_device (True), bytes of a copy (4096), multiplicity (1), threads (a thread for each stream, else one
    for all), wait ("each" or "at end"), copies (1000), seconds (1), stamp_seed (1).

    Returns copies, bytes, seconds, cpu_user_s, cpu_system_s and `each`: latencies as of run_load, or None."""

class Storm:
    """Requests that the device's own threads make; see storm()."""

    def run(self, **options: Any) -> dict[str, Any]:
        """Options, with their defaults: blocks (128), threads of a block (32), in_flight of a warp (1), rings (0: one
        for each warp), request_bytes (4096), seconds (0.5), requests of each warp (0: time alone ends it), seed of the
        file's stamps, turn (storms of one turn and shape ask for the same pages; 0: new ones), writes, sequential,
        checked (True: stamps).

        Returns seconds, warps, requests, bad_words, failures, busy, turn, cycles (of all requests together),
        cycles_per_ns, latency: (low, high, count) in cycles, served: {source: (requests, bytes)} by the service, its
        failed_requests and direct_by."""

    def warps(self, **options: Any) -> int:
        """That make requests in a run with these options: on the emulated device, threads."""

    def close(self) -> None: ...

def storm(context: Context, file: FileName, **options: Any) -> Storm:
    """Options, with their defaults: source ("service", "mapping": the device reads the file itself, "memory":
    page-locked memory that a part of the file was read into, "mailbox" and "nvme": the service, asked by the same
    clients through a mailbox or through NVMe queues, one request of a warp under way), slots (4096), slot_bytes (4096),
    service_threads (4), queues of "nvme" that slots are shared out among (0: one for each thread), window_bytes of
    "memory" (256 MiB), writable (False)."""

def time_loads(context: Context, ref: int, plain: Any, items: int, **options: Any) -> tuple[float, float]:
    """Seconds in which the device adds up float32 elements: of the cached array `ref`, or, where that is 0, of `plain`
    memory. Options, with their defaults: blocks (1056), threads (256), rounds (4), tile (1: single elements; more:
    so many at once for a warp), blocked (False)."""

def wrong_words(context: Context, rows: Any, memory: Any, seed: int) -> int:
    """Words of 8 bytes, in rows gathered from a stamped file, that are wrong. `rows`: their 64-bit numbers, on the
    device as the memory is."""

def load_memory_bytes(span_bytes: int, **options: Any) -> int:
    """The memory that run_load needs for these options and files whose spans have this many bytes."""
