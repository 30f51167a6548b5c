"""Tables of the suite `io-size`: medians, latencies, CPU and power, a line a cell; two places side by side."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

from rich.table import Table

from penstock._text import bytes_text
from penstock_bench.engine.cells import are_named, source_names
from penstock_bench.engine.numbers import three_figures
from penstock_bench.engine.table_parts import last_columns, median_text, new_table, took_text

Rows = list[dict[str, Any]]
PLACES = ("local", "remote")


def tables(rows: Rows, kind: str) -> list[Table]:
    """One line a cell; what two places measured stands side by side."""
    groups: dict[tuple[str, int, int], dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["kind"] == kind:
            groups[row["path"], row["workers"], row["request_bytes"]][row["place"]].append(row)
    places = [place for place in PLACES if any(place in group for group in groups.values())]
    table = new_table(("path", "workers", "request"), _io_columns(places) + ["GPU W", "CPU W", "n"], last_columns(rows))
    for (path, workers, size), by_place in sorted(groups.items()):
        every = [row for group in by_place.values() for row in group]
        cells = [text for place in places for text in _io_cells(by_place.get(place, []))]
        table.add_row(
            path,
            str(workers),
            bytes_text(size),
            *cells,
            watts(every, "gpu"),
            watts(every, "cpu"),
            str(len(every)),
            took_text(every),
            *([source_names(every)] if are_named(rows) else []),
        )
    table.caption = power_note([row for row in rows if row["kind"] == kind])
    return [table]


def _io_columns(places: list[str]) -> list[str]:
    names = ("GiB/s", "user %", "sys %", "p50 ms", "p99 ms")
    return [name if len(places) == 1 else f"{place} {name}" for place in places for name in names]


def _io_cells(group: Rows) -> list[str]:
    return [
        median_text(group, lambda row: row["bytes_per_second"] / 2**30),
        median_text(group, lambda row: row["cpu_user_percent"]),
        median_text(group, lambda row: row["cpu_system_percent"]),
        median_text(group, lambda row: row["p50_us"] / 1e3),
        median_text(group, lambda row: row["p99_us"] / 1e3),
    ]


def watts(rows: Rows, who: str) -> str:
    """Median power of the rows that know it; "-" where none does."""
    known = [row["power"][who]["watts"] for row in rows if "source" in row["power"][who]]
    return three_figures(statistics.median(known)) if known else "-"


def power_note(rows: Rows) -> str | None:
    """Why power is not available, where it is not; None when it always is."""
    causes = {
        f"{name} power not available: {row['power'][who]['cause']}": None
        for who, name in (("gpu", "GPU"), ("cpu", "CPU"))
        for row in rows
        if "cause" in row["power"][who]
    }
    return "; ".join(causes) or None
