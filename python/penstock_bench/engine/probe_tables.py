"""The table of a suite that has none of its own: medians of its probes, one line each."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from penstock_bench.engine.cells import (
    are_named,
    cpu_text,
    durable_rate,
    gigabytes,
    latency_text,
    media_text,
    rate_cells,
    source_names,
)
from penstock_bench.engine.promises import Medians

Rows = list[dict[str, Any]]


def probe_tables(rows: Rows, kind: str) -> list[Table]:
    """Medians of the probes of one kind."""
    medians = Medians(rows, kind)
    rates = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("probe", "GB/s", "95 %", "fsynced", "CPU s/GB", "media", "n", "p50/p99/p99.9/max us", "took"):
        rates.add_column(name, justify="left" if name in ("probe", "took") else "right", no_wrap=name != "probe")
    if are_named(rows):
        rates.add_column("rows")
    for name, group in sorted(medians.rows.items()):
        rates.add_row(
            name,
            *rate_cells(group),
            gigabytes(durable_rate(group)),
            cpu_text(group),
            media_text(group),
            str(len(group)),
            latency_text(group),
            ", ".join(sorted({row["took"] for row in group if "took" in row})),
            *([source_names(group)] if are_named(rows) else []),
        )
    return [rates]
