"""The suite `choice`: how near the measured choice of a path comes to the fastest one."""

from __future__ import annotations

from penstock_bench.engine.suite import NAMED, NUMBER, Suite
from penstock_bench.suites.choice import figures, judge, measure, page, table, words

SUITE = Suite(
    "choice",
    measure.run_suite,
    "choice",
    NAMED | {"way": str, "direction": str, "cache": str, "request_bytes": int, "seconds": NUMBER, "took": str},
    "The measured choice",
    table=table.tables,
    judge=judge.checks,
    figures=(figures.FIGURE,),
    says=words.of_choice,
    cells=words.cells,
    summary=judge.summary,
    page=page.PAGE,
    peers=("kvikio",),
)
