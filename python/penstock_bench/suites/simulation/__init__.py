"""The suite `simulation`: a model that writes its fields while it runs."""

from __future__ import annotations

from penstock_bench.engine.suite import NUMBER, Suite
from penstock_bench.suites.simulation import figures, judge, measure, packing_figure, page, table, words
from penstock_bench.suites.simulation.ranks import figures as ranks_figures

SUITE = Suite(
    "simulation",
    measure.run_suite,
    "simulation",
    {"name": str, "bytes": int, "seconds": NUMBER, "steps": int, "step_bytes": int},
    "A model that writes while it runs",
    table=table.tables,
    judge=judge.checks,
    figures=(figures.FIGURE, ranks_figures.FIGURE, packing_figure.FIGURE),
    says=words.of_simulation,
    page=page.PAGE,
    file_count=13,
    makes_files=False,
)
