"""Tables of the suite `gpu-io` for the terminal and the page: one for each subject, one line a cell."""

from __future__ import annotations

import statistics
from typing import Any

from rich import box
from rich.table import Table

from penstock_bench.engine.cells import are_named, cpu_text, gigabytes, source_names
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.numbers import thousands, three_figures

Rows = list[dict[str, Any]]
SUBJECTS = {
    "memory": "A file in memory",
    "channels": "A mailbox and NVMe entries, random 4 KiB of a file in memory",
    "blocks": "Threads a block, random 4 KiB of a file in memory",
    "rings": "Places where warps begin to look for a slot, random 4 KiB of a file in memory",
    "blocks besides": "Threads a block, other requests of a file in memory",
    "cached file": "A file of the disk that the page cache holds, into device memory",
    "disk": "The disk, nothing cached",
    "write": "Writes of full pages",
    "cache": "The page cache in device memory",
    "rows": "Random rows of 512 bytes",
    "sizes": "Files of several sizes",
}
LATENCIES = ("p50", "p99", "p999")


def tables(rows: Rows, kind: str) -> list[Table]:
    mine = [row for row in rows if row["kind"] == kind]
    made = []
    for subject, title in SUBJECTS.items():
        cells: dict[str, Rows] = {}
        for row in mine:
            if row["subject"] == subject:
                cells.setdefault(row["name"], []).append(row)
        if cells:
            made.append(_table(title, cells, are_named(rows)))
    return made


def _table(title: str, cells: dict[str, Rows], named: bool) -> Table:
    timed = any("p50_us" in row for group in cells.values() for row in group)
    hits = any("misses" in row for group in cells.values() for row in group)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", caption_justify="left")
    table.add_column("cell", overflow="fold")
    right = ["/s", "95 %", "GB/s", *["p50/p99/p99.9 us", "cycles"] * timed, *["hit rate"] * hits, "CPU s/GB", "n"]
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in ["took", *["rows"] * named]:
        table.add_column(name, overflow="fold")
    for name, group in sorted(cells.items(), key=lambda pair: _order(pair[0])):
        table.add_row(
            name,
            *_rates(group),
            *([_latency(group, "us"), _latency(group, "cycles")] if timed else []),
            *([_hit_rate(group)] if hits else []),
            cpu_text(group),
            str(len(group)),
            ", ".join(sorted({row["took"] for row in group})),
            *([source_names(group)] if named else []),
        )
    return table


def _order(name: str) -> tuple[Any, ...]:
    """Names as they are read: numbers by their value."""
    return tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in name.replace(",", " ,").split())


def _rates(group: Rows) -> tuple[str, str, str]:
    found = estimate([row["operations_per_second"] for row in group])
    low, high = found.low, found.high
    interval = "" if low is None or high is None else f"{thousands(low)}–{thousands(high)}"
    return thousands(found.median), interval, gigabytes(statistics.median(row["bytes_per_second"] for row in group))


def _latency(group: Rows, unit: str) -> str:
    if not all(f"p50_{unit}" in row for row in group):
        return ""
    values = (statistics.median(row.get(f"{name}_{unit}", 0) for row in group) for name in LATENCIES)
    return "/".join((thousands if unit == "cycles" else three_figures)(value) for value in values)


def _hit_rate(group: Rows) -> str:
    """Of visits to pages where the suite counts those, else of what the cache calls hits, misses and joined."""
    if not all("misses" in row for row in group):
        return ""
    shares = [row.get("hit_rate", _share(row)) for row in group]
    return f"{statistics.median(shares):.3f}"


def _share(row: dict[str, Any]) -> float:
    return row["hits"] / (row["hits"] + row["misses"] + row["joined"] or 1)
