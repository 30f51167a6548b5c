"""The suite `gpu-io`: requests that the device's own threads make."""

from __future__ import annotations

from penstock_bench.engine.suite import LOAD, NAMED, Suite
from penstock_bench.suites.gpu_io import figures, judge, measure, page, table, words

SUITE = Suite(
    "gpu-io",
    measure.run_suite,
    "gpu-io",
    NAMED | LOAD | {"subject": str, "request_bytes": int, "order": str},
    "Requests that the device makes",
    table=table.tables,
    judge=judge.checks,
    figures=(figures.BLOCKS, figures.LATENCY, figures.RATES),
    says=words.of_gpu_io,
    page=page.PAGE,
    peers=("cufile", "numpy"),
    makes_files=False,
)
