"""Tables of the suite `multiplicity`: rates by how many are at once, and what the most at once cost."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from rich.table import Table

from penstock._text import bytes_text, seconds_text
from penstock_bench.engine.cells import are_named, source_names
from penstock_bench.engine.numbers import thousands
from penstock_bench.engine.table_parts import APART, differ, grouped, last_columns, median_text, new_table, took_text

Rows = list[dict[str, Any]]


def tables(rows: Rows, kind: str) -> list[Table]:
    """Reads of files, then copies: rates by multiplicity, a table for each size and order, then what the most at once
    cost."""
    found = [row for row in rows if row["kind"] == kind]
    tables = []
    for subject, title in (("read", "Reads"), ("copy", "Copies")):
        chosen = [row for row in found if row["subject"] == subject]
        for (size, order), group in grouped(chosen, "request_bytes", "order").items():
            tables.append(_rates_table(group, f"{title} of {bytes_text(size)}, {order}"))
        if chosen:
            tables.append(_costs_table(chosen, title))
    return tables


def _axes(rows: Rows) -> tuple[str, ...]:
    """What tells variants apart; reads of one way all go to one kind of memory."""
    return ("way", "buffer") if rows[0]["subject"] == "copy" else ("way",)


def _rates_table(rows: Rows, title: str) -> Table:
    counts = sorted({row["multiplicity"] for row in rows})
    names = ["way", "memory"][: len(_axes(rows))]
    table = new_table(names, [f"x {count}" for count in counts], ("rows",) if are_named(rows) else ())
    samples = sorted({len(group) for group in _cells(rows)})
    many = " to ".join(str(one) for one in dict.fromkeys((samples[0], samples[-1])))
    table.title = f"{title}: how many a second, by how many are at once"
    table.caption = f"Medians of {many} samples."
    for key, group in grouped(rows, *_axes(rows)).items():
        by_count = grouped(group, "multiplicity")
        cells = [[row["operations_per_second"] for row in by_count.get((count,), [])] for count in counts]
        table.add_row(
            *key,
            *map(_rate_text, cells),
            *([source_names(group)] if are_named(rows) else []),
        )
    if any(differ(row["operations_per_second"] for row in group) for group in _cells(rows)):
        table.caption += f" ~: they differ by more than a factor of {APART:g}."
    return table


def _cells(rows: Rows) -> Iterable[Rows]:
    return grouped(rows, *_axes(rows), "multiplicity").values()


def _rate_text(rates: list[float]) -> str:
    return "~" * differ(rates) + thousands(statistics.median(rates)) if rates else "-"


def _costs_table(rows: Rows, title: str) -> Table:
    """The table of the most at once: times of a submission, CPU, rate."""
    most = max(row["multiplicity"] for row in rows)
    axes = [*_axes(rows), "request_bytes", "order"]
    names = {"buffer": "memory", "request_bytes": "bytes"}
    table = new_table([names.get(axis, axis) for axis in axes], ("p50", "p99", "CPU %", "GB/s"), last_columns(rows))
    table.title = f"{title}, {most} at once: time of a submission, share of all cores, rate"
    last = [row for row in rows if row["multiplicity"] == most]
    for (*key, size, order), group in grouped(last, *axes).items():
        timed = [row for row in group if "p50_us" in row]
        table.add_row(
            *key,
            bytes_text(size),
            order,
            _time_text(timed, "p50_us"),
            _time_text(timed, "p99_us"),
            median_text(group, lambda row: row["cpu_user_percent"] + row["cpu_system_percent"]),
            median_text(group, lambda row: row["bytes_per_second"] / 1e9),
            took_text(group),
            *([source_names(group)] if are_named(rows) else []),
        )
    return table


def _time_text(rows: Rows, name: str) -> str:
    return seconds_text(statistics.median(row[name] for row in rows) / 1e6) if rows else "-"
