"""Grids: every path at each point of axes that a definition names; the suites `report` and `grid`."""

from __future__ import annotations

from penstock_bench.engine.definition import GRID
from penstock_bench.engine.suite import MOVED, Suite
from penstock_bench.suites.grid import figures, measure, page, table, words

TRIAL = dict.fromkeys(("path", "direction", "cache", "buffer", "first_touch", "took"), str) | dict.fromkeys(
    ("request_bytes", "workers", "depth"), int
)
SUITE = Suite(
    GRID,
    measure.run_suite,
    "trial",
    MOVED | TRIAL,
    "Paths",
    table=table.trial_tables,
    figures=(figures.BANDWIDTH, figures.REQUEST_SIZE, figures.CPU),
    says=words.of_grid,
    cells=words.cells,
    page=page.PAGE,
)
