"""The suite `per-process`: each process reads and writes a file of its own, by the I/O of C and Fortran."""

from __future__ import annotations

from penstock_bench.engine.suite import NUMBER, Suite
from penstock_bench.suites.per_process import measure, page, peers, table, words

SUITE = Suite(
    "per-process",
    measure.run_suite,
    "per-process",
    {"name": str, "way": str, "direction": str, "bytes": int, "bytes_per_second": NUMBER, "seconds": NUMBER}
    | {"file_bytes": int, "processes": int, "buffer_bytes": int, "cache": str},
    "A file for each process",
    table=table.tables,
    says=words.of_per_process,
    page=page.PAGE,
    peers=tuple(peers.PEERS),
    file_count=1,
    makes_files=False,
)
