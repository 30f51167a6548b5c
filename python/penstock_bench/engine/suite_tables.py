"""Tables of the suites `io-size` and `multiplicity` for the terminal: medians, latencies, CPU, power."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from rich import box
from rich.table import Table

from penstock._text import bytes_text, seconds_text
from penstock_bench.engine.cells import are_named, source_names

Rows = list[dict[str, Any]]
PLACES = ("local", "remote")
APART = 2.0  # fastest sample by slowest: more is told


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


def grouped(rows: Rows, *names: str) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of these fields, ascending."""
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return dict(sorted(groups.items()))


def _axes(rows: Rows) -> tuple[str, ...]:
    """What tells variants apart; reads of one way all go to one kind of memory."""
    return ("way", "buffer") if rows[0]["subject"] == "copy" else ("way",)


def _rates_table(rows: Rows, title: str) -> Table:
    counts = sorted({row["multiplicity"] for row in rows})
    names = ["way", "memory"][: len(_axes(rows))]
    table = _table(names, [f"x {count}" for count in counts], ("rows",) if are_named(rows) else ())
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


def differ(values: Iterable[float]) -> bool:
    """Samples so far apart that their median says little."""
    known = list(values)
    return max(known) > APART * min(known)


def _rate_text(rates: list[float]) -> str:
    return "~" * differ(rates) + thousands(statistics.median(rates)) if rates else "-"


def thousands(value: float) -> str:
    """Three figures: 467, 95.6k, 1.25M, 2.5G."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor * 0.9995:
            return f"{number(value / factor)}{unit}"
    return number(value)


def _costs_table(rows: Rows, title: str) -> Table:
    """The table of the most at once: times of a submission, CPU, rate."""
    most = max(row["multiplicity"] for row in rows)
    axes = [*_axes(rows), "request_bytes", "order"]
    names = {"buffer": "memory", "request_bytes": "bytes"}
    table = _table([names.get(axis, axis) for axis in axes], ("p50", "p99", "CPU %", "GB/s"), _last(rows))
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
            _median(group, lambda row: row["cpu_user_percent"] + row["cpu_system_percent"]),
            _median(group, lambda row: row["bytes_per_second"] / 1e9),
            _took(group),
            *([source_names(group)] if are_named(rows) else []),
        )
    return table


def _time_text(rows: Rows, name: str) -> str:
    return seconds_text(statistics.median(row[name] for row in rows) / 1e6) if rows else "-"


def _last(rows: Rows) -> tuple[str, ...]:
    """Rows have names when a page is made of them: it says which ones a line is of."""
    return ("took", "rows") if are_named(rows) else ("took",)


def _table(left: Iterable[str], right: Iterable[str], last: Iterable[str]) -> Table:
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


def _median(rows: Rows, value: Callable[[dict[str, Any]], float]) -> str:
    return number(statistics.median(value(row) for row in rows)) if rows else "-"


def number(value: float) -> str:
    """Three figures without an exponent: 0.0123, 4.56, 789, 12300."""
    if value >= 999.5:
        digits = len(str(round(value))) - 3
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
