"""What is kept of runs of the suite `gpu-io`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import EACH, P99, RATE, Listing, Shown, SuitePage

PAGE = SuitePage(
    "Requests that a GPU makes by itself, through host threads, a page cache in its memory, or a mapping.",
    (
        Listing(
            "Cells",
            "gpu-io",
            ("name",),
            (RATE, EACH, Shown("us", "p50_us"), P99, Shown("mean us", "mean_us"), Shown("hit rate", "hit_rate")),
        ),
    ),
)
