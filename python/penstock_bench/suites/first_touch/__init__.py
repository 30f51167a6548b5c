"""The suite `first-touch`: snapshots of particles by size and by which processor touched the memory first."""

from __future__ import annotations

from penstock_bench.engine.suite import NAMED, Suite
from penstock_bench.suites.first_touch import figures, measure, page, table, words

TOUCHED = dict.fromkeys(("path", "direction", "format", "buffer", "first_touch", "cache", "took"), str) | dict.fromkeys(
    ("particles", "chunk_bytes", "workers"), int
)
SUITE = Suite(
    "first-touch",
    measure.run_suite,
    "first-touch",
    NAMED | TOUCHED,
    "Problem sizes",
    table=table.tables,
    figures=(figures.FIGURE,),
    says=words.of_first_touch,
    cells=words.cells,
    page=page.PAGE,
    file_count=4,
    makes_files=False,
)
