"""What is kept of runs of the suite `simulation`: the cells of its table, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import RATE, SECONDS, Listing, Shown, SuitePage

PAGE = SuitePage(
    "A flow model that writes 18 fields while it runs, by way of writing.",
    (
        Listing(
            "Cells",
            "simulation",
            ("name", "steps", "substeps", "step_bytes"),
            (
                SECONDS,
                Shown("compute ms", "compute_ms"),
                Shown("stall ms", "stall_ms"),
                Shown("first ms", "first_stall_ms"),
                Shown("wait ms", "wait_ms"),
                Shown("close s", "close_s"),
                Shown("write of a step ms", "step_write_ms"),
                RATE,
            ),
        ),
    ),
)
