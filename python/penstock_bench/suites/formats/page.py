"""What is kept of runs of the suite `formats`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import CPU, RATE, SECONDS, Listing, Shown, SuitePage

PAGE = SuitePage(
    "Arrays of files, with the time of opening them and of reading their metadata.",
    (
        Listing(
            "Cells",
            "formats",
            ("name",),
            (RATE, CPU, Shown("ms", "median_ms"), SECONDS, Shown("chunks/s", "chunks_per_second")),
        ),
    ),
)
