"""What tables of several suites are made with: rows in groups, and tables with numbers on the right."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from rich import box
from rich.table import Table

from penstock_bench.engine.cells import are_named
from penstock_bench.engine.numbers import three_figures

Rows = list[dict[str, Any]]
APART = 2.0  # fastest sample by slowest: more is told


def grouped(rows: Rows, *names: str) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of these fields, ascending."""
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return dict(sorted(groups.items()))


def differ(values: Iterable[float]) -> bool:
    """Samples so far apart that their median says little."""
    known = list(values)
    return max(known) > APART * min(known)


def new_table(left: Iterable[str], right: Iterable[str], last: Iterable[str]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left", caption_justify="left"
    )
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in last:
        table.add_column(name, overflow="fold")
    return table


def last_columns(rows: Rows) -> tuple[str, ...]:
    """Rows have names when a page is made of them: it says which ones a line is of."""
    return ("took", "rows") if are_named(rows) else ("took",)


def median_text(rows: Rows, value: Callable[[dict[str, Any]], float]) -> str:
    return three_figures(statistics.median(value(row) for row in rows)) if rows else "-"


def took_text(rows: Rows) -> str:
    return ", ".join(sorted({row["took"] for row in rows}))
