"""Tables of the suite `choice`: the ways of choosing beside each other, and what auto and the best did in each cell."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from penstock._text import bytes_text, rate_text
from penstock_bench.suites.choice import judge

Rows = list[dict[str, Any]]


def tables(rows: Rows, _kind: Any = None) -> list[Table]:
    return [ways_table(rows), cells_table(rows)]


def ways_table(rows: Rows) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("way of choosing")
    for name in ("cells", "within 5 % of the best", "worst cell", "mean"):
        table.add_column(name, justify="right")
    for one in judge.qualities(rows):
        table.add_row(one.way, str(len(one.by_cell)), f"{one.share:.0%}", f"{one.worst:.2f}", f"{one.mean:.2f}")
    return table


def cells_table(rows: Rows) -> Table:
    """Each cell: what auto took and reached, and the fastest path asked for by name."""
    took = judge.taken(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("request", "auto took", "reached", "best path", "reached ", "auto / best", "its path / best"):
        table.add_column(name, justify="left" if name in ("request", "auto took", "best path") else "right")
    for cell, ways in judge.medians(rows).items():
        paths = {way: seconds for way, seconds in ways.items() if way not in judge.NOT_PATHS}
        if not paths or judge.TIMED not in ways:
            continue
        best = min(paths, key=lambda path: paths[path])
        direction, cache, size = cell
        table.add_row(
            f"{direction} {cache} {bytes_text(size)}",
            took.get(cell, ""),
            rate_text(size / ways[judge.TIMED]),
            best,
            rate_text(size / paths[best]),
            f"{paths[best] / ways[judge.TIMED]:.2f}",
            "" if took[cell] not in paths else f"{paths[best] / paths[took[cell]]:.2f}",
        )
    return table
