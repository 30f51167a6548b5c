"""The suite `data`: what one small read of an array file costs, beside the library that people use for it today."""

from __future__ import annotations

from penstock_bench.engine.suite import NAMED, NUMBER, Suite
from penstock_bench.suites.data import judge, measure, page, table, words

SUITE = Suite(
    "data",
    measure.run_suite,
    "data",
    NAMED | {"peer": str, "median_us": NUMBER, "peer_us": NUMBER, "times_peer": NUMBER},
    "Small reads",
    table=table.tables,
    judge=judge.checks,
    says=words.of_data,
    page=page.PAGE,
    makes_files=False,
)
