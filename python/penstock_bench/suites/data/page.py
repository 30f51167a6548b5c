"""What is kept of runs of the suite `data`: the cells of its table, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import ONE, Listing, Shown, SuitePage

PAGE = SuitePage(
    "Opening files and reading little of them: microseconds of the processor, beside the library of each format in the "
    "same run.",
    (Listing("Cells", "data", ("name", "peer"), (ONE, Shown("its us", "peer_us"), Shown("times its", "times_peer"))),),
    left_out=frozenset({"bytes", "bytes_per_second", "seconds", "calls"}),
)
