"""What is kept of runs of the suite `grid`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import CPU, GIGA, RATE, Listing, Shown, SuitePage

PATHS = ("direction", "path", "cache", "request_bytes")

PAGE = SuitePage(
    "Every path, both directions, in each state of the page cache.",
    (
        Listing("Cells", "trial", PATHS, (RATE, CPU, Shown("GB/s with fsync", "durable_bytes_per_second", GIGA))),
        Listing("A pinned copy", "ceiling", ("direction",), (RATE,)),
        Listing("The engine alone, when storage moves nothing", "engine", ("direction", "request_bytes"), (RATE,)),
    ),
    name="report",
)
