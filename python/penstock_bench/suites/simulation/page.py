"""What is kept of runs of the suite `simulation`: the cells of its table, and its page."""

from __future__ import annotations

from penstock_bench.engine.listing import DURABLE, MEGA, RATE, SECONDS, Listing, Shown, SuitePage

KIND = "simulation"
COMPUTE, STALL = Shown("compute ms", "compute_ms"), Shown("stall ms", "stall_ms")
FIRST = Shown("first ms", "first_stall_ms")
OF_FLOW = (
    SECONDS,
    COMPUTE,
    STALL,
    FIRST,
    Shown("wait ms", "wait_ms"),
    Shown("beside the model ms", "write_ms"),
    Shown("close s", "close_s"),
    Shown("writing s", "output_s"),
    Shown("write of a step ms", "step_write_ms"),
    RATE,
)
OF_RANKS = (SECONDS, Shown("begin ms", "layout_ms"), RATE, Shown("with fsync GB/s", DURABLE.column, DURABLE.unit))
OF_PACKING = (Shown("MB/s of a core", "core_bytes_per_second", MEGA), Shown("file", "file_share"))

PAGE = SuitePage(
    "Models that write while they run: a flow model with 18 fields, a star cluster, particles, files of all ranks of "
    "an MPI program, and what compression takes.",
    (
        Listing("The flow model", KIND, ("name", "steps", "substeps", "step_bytes"), OF_FLOW, only={"part": "flow"}),
        Listing(
            "The star cluster",
            KIND,
            ("name", "bodies", "steps", "substeps", "step_bytes"),
            (SECONDS, COMPUTE, STALL, FIRST),
            only={"part": "cluster"},
        ),
        Listing("Particles, with fsync", KIND, ("name", "step_bytes"), (SECONDS, RATE), only={"part": "particles"}),
        Listing("One file of all ranks", KIND, ("file_kind", "ranks", "by", "bytes"), OF_RANKS, only={"part": "ranks"}),
        Listing(
            "Restarts of ranks",
            KIND,
            ("writers", "ranks", "bytes"),
            (Shown("write s", "write_s"), Shown("read s", "seconds")),
            only={"part": "restarts"},
        ),
        Listing("What a core packs", KIND, ("values", "codec"), OF_PACKING, only={"part": "packing"}),
    ),
)
