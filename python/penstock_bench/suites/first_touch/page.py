"""What is kept of runs of the suite `first-touch`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import DURABLE, RATE, Listing, SuitePage

TOUCHED = ("format", "path", "buffer", "first_touch", "cache", "chunk_bytes", "workers")

PAGE = SuitePage(
    "Particles of 36 bytes by path and format, into memory that the GPU or the CPU touched first.",
    (
        Listing("Reads, GB/s", "first-touch", TOUCHED, (RATE,), "particles", {"direction": "read"}),
        Listing("Writes and fsync, GB/s", "first-touch", TOUCHED, (DURABLE,), "particles", {"direction": "write"}),
        Listing("The engine alone, when storage moves nothing, GB/s", "engine", ("direction",), (RATE,), "particles"),
    ),
    told=("direction", "particles", "format", "path", "cache", "buffer", "first_touch"),
)
