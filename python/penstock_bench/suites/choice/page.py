"""What is kept of runs of the suite `choice`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import RATE, Listing, Shown, SuitePage

PAGE = SuitePage(
    "How near each way of choosing a path comes to the fastest path of a request, by size, direction and state of "
    "the page cache.",
    (
        Listing(
            "Ways of choosing, beside the fastest path of each cell",
            "way",
            ("name", "cells"),
            (Shown("within 5 %, %", "share", 0.01), Shown("worst cell", "worst"), Shown("mean", "mean")),
            samples=False,
        ),
        Listing(
            "What the measured choice took, and its speed by that of the fastest path",
            "chosen",
            ("direction", "cache", "request_bytes", "took"),
            (Shown("of the fastest", "of_best"),),
            samples=False,
        ),
        Listing("GB/s of each way", "choice", ("direction", "cache", "request_bytes"), (RATE,), "way"),
    ),
    told=("direction", "cache", "request_bytes", "way"),
)
