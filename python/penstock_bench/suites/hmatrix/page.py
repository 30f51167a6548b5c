"""What is kept of runs of the suite `hmatrix`: the cells of its tables, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import GIGA, RATE, SECONDS, Listing, Shown, SuitePage

PAGE = SuitePage(
    "Solving with a matrix that is larger than memory and is read on every sweep.",
    (
        Listing(
            "Cells",
            "hmatrix",
            ("name", "sweeps"),
            (
                SECONDS,
                Shown("read s", "read_s"),
                Shown("other s", "other_s"),
                RATE,
                Shown("hit rate", "hit_rate"),
                Shown("GB from storage", "bytes_read", GIGA),
                Shown("matrices read", "matrices_read"),
                Shown("assembly s", "assemble_s"),
                Shown("product s", "product_s"),
                Shown("solve s", "solve_s"),
            ),
        ),
        Listing(
            "Commands",
            "command",
            ("name", "sweeps", "inner_iterations"),
            (
                Shown("MiB of doubles", "bytes_fp64", 1 << 20),
                Shown("MiB stored", "bytes_stored", 1 << 20),
                Shown("MiB read", "bytes_read", 1 << 20),
                Shown("error, sampled", "sampled_error"),
                Shown("residual", "relative_residual"),
                Shown("assembly s", "assemble_s"),
                Shown("writing s", "write_s"),
                Shown("total s", "total_s"),
            ),
        ),
    ),
)
