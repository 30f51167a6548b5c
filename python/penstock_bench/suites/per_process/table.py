"""The tables of the suite `per-process`: a line a size, a number of processes and a buffer, a column a way."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from rich.table import Table

from penstock._text import bytes_text
from penstock_bench.engine.cells import are_named, source_names
from penstock_bench.engine.table_parts import grouped, new_table
from penstock_bench.suites.per_process.cases import WAYS
from penstock_bench.suites.per_process.peers import PEERS

Rows = list[dict[str, Any]]
LABELS = ("file_bytes", "processes", "buffer_bytes", "cache")


def tables(rows: Rows, kind: str) -> list[Table]:
    mine = [row for row in rows if row["kind"] == kind]
    writes, reads = ([row for row in mine if row["direction"] == one] for one in ("write", "read"))
    durable = [row for row in writes if "fsync_s" in row]
    made = [
        _table("Read", reads, of_transfer),
        _table("Write and flush", writes, of_transfer),
        _table("Write, flush and fsync", durable, lambda row: row["bytes"] / (row["seconds"] + row["fsync_s"])),
    ]
    found = [table for table in made if table is not None]
    if found:
        found[-1].caption = "GB/s of all processes: median of the rounds, and in brackets bytes by the mean time"
    return found


def of_transfer(row: dict[str, Any]) -> float:
    return float(row["bytes_per_second"])


def _table(title: str, rows: Rows, rate: Callable[[dict[str, Any]], float]) -> Table | None:
    if not rows:
        return None
    ways = [way for way in (*WAYS, *PEERS.values()) if any(row["way"] == way for row in rows)]
    table = new_table((), ("file", "processes", "buffer", "page cache", *ways, "n"), ["rows"] * are_named(rows))
    table.title = title
    for (size, processes, buffer, cache), group in grouped(rows, *LABELS).items():
        cells = [_rates([row for row in group if row["way"] == way], rate) for way in ways]
        most = max(sum(row["way"] == way for row in group) for way in ways)
        labels = [bytes_text(size), str(processes), bytes_text(buffer) if buffer else "-", cache]
        table.add_row(*labels, *cells, str(most), *([source_names(group)] if are_named(rows) else []))
    return table


def _rates(rows: Rows, rate: Callable[[dict[str, Any]], float]) -> str:
    """The study's result is bytes by the mean of all times, which differs from the median where times are far apart."""
    if not rows:
        return "-"
    rates = [rate(row) for row in rows]
    mean = len(rates) / sum(1 / one for one in rates)
    return f"{statistics.median(rates) / 1e9:.3g} ({mean / 1e9:.3g})"
