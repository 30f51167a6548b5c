"""The suite `multiplicity`: how many requests at once a way of moving bytes needs."""

from __future__ import annotations

from penstock_bench.engine.suite import LOAD, NAMED, Suite
from penstock_bench.suites.multiplicity import figures, measure, page, table, words

SUITE = Suite(
    "multiplicity",
    measure.run_suite,
    "multiplicity",
    NAMED | LOAD | {"subject": str, "way": str, "request_bytes": int, "multiplicity": int, "order": str},
    "Requests at once",
    table=table.tables,
    figures=(figures.READS, figures.COPIED),
    says=words.of_multiplicity,
    page=page.PAGE,
    file_count=2,
    makes_files=False,
)
