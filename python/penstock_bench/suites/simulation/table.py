"""The table of the suite `simulation`: a line a way."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from rich.table import Table

from penstock_bench.engine.cells import are_named, source_names
from penstock_bench.engine.numbers import three_figures
from penstock_bench.engine.promises import Medians
from penstock_bench.engine.table_parts import median_text, new_table
from penstock_bench.suites.simulation.judge import added_seconds, slower_percent
from penstock_bench.suites.simulation.measure import ENGINE
from penstock_bench.suites.simulation.ways import WAYS

Rows = list[dict[str, Any]]
OF_STEPS = ("ms a step", "compute ms", "slower %", "stall ms", "first ms", "wait ms")
COLUMNS = (*OF_STEPS, "close s", "total s", "added s", "GB/s", "n")


def tables(rows: Rows, kind: str) -> list[Table]:
    medians = Medians(rows, kind)
    table = new_table(("way",), COLUMNS, ["rows"] * are_named(rows))
    mine = [row for row in rows if row["kind"] == kind]
    for way in (*WAYS, ENGINE):
        group = [row for row in mine if row["name"] == way]
        if not group:
            continue
        slower, added = (three_figures(value) if value is not None else "-" for value in _beside(medians, way))
        times = [median_text([row for row in group if field in row], itemgetter(field)) for field in TIMES]
        rate = median_text([row for row in group if row["bytes"]], lambda row: row["bytes_per_second"] / 1e9)
        step = median_text(group, lambda row: row["seconds"] * 1e3 / row["steps"])
        total = median_text(group, itemgetter("seconds"))
        cells = [step, times[0], slower, *times[1:], total, added, rate, str(len(group))]
        table.add_row(way, *cells, *([source_names(group)] if are_named(rows) else []))
    if mine:
        one = next((row for row in mine if "substeps" in row), mine[0])
        table.caption = f"{one['steps']} steps of {one['step_bytes'] / 2**20:.3g} MiB, each {one.get('substeps', 0)} "
        table.caption += "time steps of the model; medians"
    return [table]


TIMES = ("compute_ms", "stall_ms", "first_stall_ms", "wait_ms", "close_s")


def _beside(medians: Medians, way: str) -> tuple[float | None, float | None]:
    """Nothing of the engine, which computes nothing."""
    return (None, None) if way == ENGINE else (slower_percent(medians, way), added_seconds(medians, way))
