"""Tables of the suites `io-size` and `multiplicity` for the terminal: medians, latencies, CPU, power."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from rich import box
from rich.table import Table

from penstock.bench.cells import are_named, source_names
from penstock.cli.show import bytes_text

Rows = list[dict[str, Any]]
PLACES = ("local", "remote")


def io_size_tables(rows: Rows, kind: str) -> list[Table]:
    """One line a cell; what two places measured stands side by side."""
    groups: dict[tuple[str, int, int], dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["kind"] == kind:
            groups[row["path"], row["workers"], row["request_bytes"]][row["place"]].append(row)
    places = [place for place in PLACES if any(place in group for group in groups.values())]
    table = _table(("path", "workers", "request"), _io_columns(places) + ["GPU W", "CPU W", "n"], _last(rows))
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
            _took(every),
            *([source_names(every)] if are_named(rows) else []),
        )
    table.caption = power_note([row for row in rows if row["kind"] == kind])
    return [table]


def _io_columns(places: list[str]) -> list[str]:
    names = ("GiB/s", "user %", "sys %", "p50 ms", "p99 ms")
    return [name if len(places) == 1 else f"{place} {name}" for place in places for name in names]


def _io_cells(group: Rows) -> list[str]:
    return [
        _median(group, lambda row: row["bytes_per_second"] / 2**30),
        _median(group, lambda row: row["cpu_user_percent"]),
        _median(group, lambda row: row["cpu_system_percent"]),
        _median(group, lambda row: row["p50_us"] / 1e3),
        _median(group, lambda row: row["p99_us"] / 1e3),
    ]


def multiplicity_tables(rows: Rows, kind: str) -> list[Table]:
    """Reads of files, then copies; one line a variant, operations per second by multiplicity."""
    found = [row for row in rows if row["kind"] == kind]
    tables = []
    for subject, title in (("read", "reads of a file"), ("copy", "copies between host and device")):
        chosen = [row for row in found if row["subject"] == subject]
        if chosen:
            tables.append(_multiplicity_table(chosen, title))
    return tables


def _multiplicity_table(rows: Rows, title: str) -> Table:
    counts = sorted({row["multiplicity"] for row in rows})
    groups: dict[tuple[str, int, str], dict[int, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["way"], row["request_bytes"], row["order"]][row["multiplicity"]].append(row)
    most = counts[-1]
    names = [f"x {count}" for count in counts] + ["p50 us", "p99 us", "CPU %", "GB/s"]
    table = _table(("way", "bytes", "order"), names, _last(rows))
    table.title = f"{title}: operations per second by multiplicity, then what x {most} took"
    for (way, size, order), by_count in sorted(groups.items()):
        last = by_count.get(most, [])
        every = [row for group in by_count.values() for row in group]
        timed = [row for row in last if "p50_us" in row]
        table.add_row(
            way,
            bytes_text(size),
            order,
            *(_median(by_count.get(count, []), lambda row: row["operations_per_second"]) for count in counts),
            _median(timed, lambda row: row["p50_us"]),
            _median(timed, lambda row: row["p99_us"]),
            _median(last, lambda row: row["cpu_user_percent"] + row["cpu_system_percent"]),
            _median(last, lambda row: row["bytes_per_second"] / 1e9),
            _took(every),
            *([source_names(every)] if are_named(rows) else []),
        )
    return table


def _last(rows: Rows) -> tuple[str, ...]:
    """Rows have names when a page is made of them: it says which ones a line is of."""
    return ("took", "rows") if are_named(rows) else ("took",)


def _table(left: Iterable[str], right: Iterable[str], last: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    for name in last:
        table.add_column(name)
    return table


def _median(rows: Rows, value: Callable[[dict[str, Any]], float]) -> str:
    return number(statistics.median(value(row) for row in rows)) if rows else "-"


def number(value: float) -> str:
    """Three figures without an exponent: 0.0123, 4.56, 789, 12300."""
    if value >= 1000:
        digits = len(str(int(value))) - 3
        return str(round(value / 10**digits) * 10**digits)
    return f"{value:.3g}"


def watts(rows: Rows, who: str) -> str:
    """Median power of the rows that know it; "-" where none does."""
    known = [row["power"][who]["watts"] for row in rows if "source" in row["power"][who]]
    return number(statistics.median(known)) if known else "-"


def power_note(rows: Rows) -> str | None:
    """Why power is not available, where it is not; None when it always is."""
    causes = {
        f"{name} power not available: {row['power'][who]['cause']}": None
        for who, name in (("gpu", "GPU"), ("cpu", "CPU"))
        for row in rows
        if "cause" in row["power"][who]
    }
    return "; ".join(causes) or None


def _took(rows: Rows) -> str:
    return ", ".join(sorted({row["took"] for row in rows}))
