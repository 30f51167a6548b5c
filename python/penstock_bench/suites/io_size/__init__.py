"""The suite `io-size`: sequential reads by many workers, by the size of a request."""

from __future__ import annotations

from penstock_bench.engine.suite import LOAD, NAMED, Suite
from penstock_bench.suites.io_size import figures, measure, page, table, words

SUITE = Suite(
    "io-size",
    measure.run_suite,
    "io-size",
    NAMED | LOAD | {"path": str, "request_bytes": int, "workers": int, "place": str, "cache": str, "took": str},
    "Request sizes, many workers",
    table=table.tables,
    figures=(figures.FIGURE,),
    says=words.of_io_size,
    cells=words.cells,
    page=page.PAGE,
    file_count=1,
    makes_files=False,
    takes_remote=True,
)
