"""What is kept of runs of the suite `per-process`: the cells of its table, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import DURABLE, RATE, Listing, Shown, SuitePage

LABELS = ("direction", "file_bytes", "processes", "buffer_bytes", "way", "cache")

PAGE = SuitePage(
    "A file for each process, by the I/O of C and Fortran, the same under `penstock run`, and Penstock's C interface.",
    (Listing("Cells", "per-process", LABELS, (RATE, Shown("with fsync GB/s", DURABLE.column, DURABLE.unit))),),
    told=LABELS[:5],
    left_out=frozenset({"slowest_s", "fastest_s", "started_by", "early_bytes", "why", "took"}),
)
