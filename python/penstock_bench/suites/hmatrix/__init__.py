"""The suite `hmatrix`: a solver whose matrix is larger than its memory."""

from __future__ import annotations

from penstock_bench.engine.suite import NUMBER, Suite
from penstock_bench.suites.hmatrix import figures, judge, measure, page, table, words

SUITE = Suite(
    "hmatrix",
    measure.run_suite,
    "hmatrix",
    {"name": str, "bytes": int, "bytes_per_second": NUMBER, "subject": str, "seconds": NUMBER},
    "A solver larger than its memory",
    table=table.tables,
    judge=judge.checks,
    figures=(figures.TIME, figures.BEST),
    says=words.of_hmatrix,
    page=page.PAGE,
    file_count=1,
    makes_files=False,
)
