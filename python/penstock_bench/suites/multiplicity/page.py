"""What is kept of runs of the suite `multiplicity`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import RATE, Listing, Shown, SuitePage

PAGE = SuitePage(
    "Reads and copies by how many are under way at once.",
    (
        Listing(
            "Reads, thousand a second",
            "multiplicity",
            ("request_bytes", "order", "way"),
            (Shown("", "operations_per_second", 1e3),),
            "multiplicity",
            {"subject": "read"},
        ),
        Listing(
            "Copies, GB/s",
            "multiplicity",
            ("request_bytes", "order", "buffer", "way"),
            (RATE,),
            "multiplicity",
            {"subject": "copy"},
        ),
    ),
    told=("subject", "way", "request_bytes", "order", "buffer", "multiplicity"),
    left_out=frozenset({"mean_us", "cache"}),
)
