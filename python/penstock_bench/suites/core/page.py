"""What is kept of runs of the suite `core`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import CPU, ONE, P99, RATE, Listing, Shown, SuitePage

PAGE = SuitePage(
    "What Penstock promises at its default settings, beside ceilings and other tools in the same run.",
    (
        Listing("Cells", "core", ("name",), (RATE, CPU, ONE, P99, Shown("requests/s", "requests_per_second"))),
        Listing(
            "Host threads alone, into host memory, GB/s",
            "host_grid",
            ("direction", "direct", "threads"),
            (RATE,),
            "chunk_bytes",
        ),
    ),
)
