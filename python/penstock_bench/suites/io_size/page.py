"""What is kept of runs of the suite `io-size`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import Listing, Shown, SuitePage

PAGE = SuitePage(
    "Sequential reads of a cold file by many workers, by the size of a request.",
    (
        Listing(
            "Cells",
            "io-size",
            ("path", "workers", "request_bytes"),
            (
                Shown("GiB/s", "bytes_per_second", 1 << 30),
                Shown("user %", "cpu_user_percent"),
                Shown("system %", "cpu_system_percent"),
                Shown("p50 ms", "p50_us", 1e3),
                Shown("p99 ms", "p99_us", 1e3),
            ),
        ),
    ),
    told=("path", "request_bytes", "workers"),
    kept=frozenset({"cpu_user_percent", "cpu_system_percent"}),
    left_out=frozenset({"mean_us"}),
)
