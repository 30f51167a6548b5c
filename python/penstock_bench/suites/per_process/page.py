"""What is kept of runs of the suite `per-process`: the cells of its table, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import DURABLE, RATE, Listing, SuitePage

LABELS = ("direction", "file_bytes", "processes", "buffer_bytes", "way", "cache")
SIZES = ("file_bytes", "processes", "buffer_bytes", "cache")

PAGE = SuitePage(
    "A file for each process, by the I/O of C and Fortran, the same under `penstock run`, and Penstock's C interface.",
    (
        Listing("Read, GB/s", "per-process", SIZES, (RATE,), across="way", only={"direction": "read"}),
        Listing("Write and flush, GB/s", "per-process", SIZES, (RATE,), across="way", only={"direction": "write"}),
        Listing("Write, flush and fsync, GB/s", "per-process", SIZES, (DURABLE,), across="way"),
    ),
    told=LABELS[:5],
    left_out=frozenset({"slowest_s", "fastest_s", "started_by", "early_bytes", "why", "took"}),
)
