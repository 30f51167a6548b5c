"""Tables of results for the terminal."""

from __future__ import annotations

import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock._text import bytes_text
from penstock.cli.show import WIDTH
from penstock_bench.engine import kinds
from penstock_bench.engine.cells import (
    are_named,
    cpu_text,
    durable_rate,
    gigabytes,
    interval_text,
    latency_text,
    media_text,
    rate_cells,
    share_text,
    source_names,
)
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.promises import PROMISED_FOR, Check, Medians
from penstock_bench.engine.results import median_cpu

Rows = list[dict[str, Any]]
WIDEST = 1000  # columns that a table may have in a file
NAMES_MAX = 16  # of one cause, in a table


def trial_tables(rows: Rows, _kind: str) -> list[Table]:
    return [grid_table(rows), *ceiling_tables(rows)]


def ceiling_tables(rows: Rows) -> list[Table]:
    """What nothing here can exceed: one copy over the link, and the engine when storage moves nothing."""
    groups: dict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "ceiling":
            groups["pinned copy", row["direction"], ""].append(row)
        elif row["kind"] == "engine" and "particles" not in row:
            groups["engine alone", row["direction"], _size(row["request_bytes"])].append(row)
    if not groups:
        return []
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("ceiling", "direction", "request", "GB/s", "95 %", "n"):
        table.add_column(name, justify="right" if name in ("GB/s", "95 %", "n") else "left")
    if are_named(rows):
        table.add_column("rows")
    for key, group in groups.items():
        found = estimate([row["bytes_per_second"] for row in group])
        names = [source_names(group)] if are_named(rows) else []
        table.add_row(*key, gigabytes(found.median), interval_text(found), str(found.samples), *names)
    return [table]


def grid_table(rows: Rows) -> Table:
    """Medians of the trials, one line a variant."""
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "trial":
            groups[_variant(row)].append(row)
    engine = _engine_rates(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("path", "direction", "cache", "request", "shape"):
        table.add_column(name, no_wrap=True)
    for name in ("GB/s", "95 %", "fsynced", "of engine", "CPU s/GB", "media", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("took")
    if are_named(rows):
        table.add_column("rows")
    for variant, group in sorted(groups.items()):
        path, direction, cache, request, *shape = variant
        found = estimate([row["bytes_per_second"] for row in group])
        table.add_row(
            path,
            direction,
            cache,
            _size(request),
            " ".join(_shape(shape)),
            gigabytes(found.median),
            interval_text(found),
            gigabytes(durable_rate(group)),
            share_text(found.median, engine.get((direction, request))),
            f"{median_cpu(group) or 0:.3f}",
            media_text(group),
            str(len(group)),
            ", ".join(sorted({row["took"] for row in group})),
            *([source_names(group)] if are_named(rows) else []),
        )
    return table


def _engine_rates(rows: Rows) -> dict[tuple[str, int], float]:
    """What the engine does when storage moves nothing, by direction and size of request."""
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "engine":
            groups[row["direction"], row["request_bytes"]].append(row["bytes_per_second"])
    return {key: statistics.median(rates) for key, rates in groups.items()}


def _variant(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        row[name]
        for name in ("path", "direction", "cache", "request_bytes", "workers", "depth", "buffer", "first_touch")
    )


def _shape(values: list[Any]) -> list[str]:
    workers, depth, buffer, touch = values
    words = [f"workers {workers}"] * bool(workers) + [f"depth {depth}"] * bool(depth)
    return words + [buffer] * (buffer != "device") + [f"touch {touch}"] * (touch != "gpu")


def _size(request_bytes: int) -> str:
    return "file" if request_bytes == 0 else bytes_text(request_bytes)


def missing_name(row: dict[str, Any]) -> str:
    """Short: of what is missing at every size or multiplicity, those are not told."""
    name = str(row.get("what") or row.get("name") or f"{row['path']} {row['direction']} {row['cache']}")
    return re.sub(r" x \d+$", "", name)


def missing_table(rows: Rows) -> Table | None:
    """What could not be measured, and why; None when all was."""
    causes: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "missing":
            causes[row["cause"]].append(missing_name(row))
    if not causes:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("not measured")
    table.add_column("because")
    for cause, names in causes.items():
        table.add_row(escape(names_text(dict.fromkeys(names))), escape(cause))
    return table


def names_text(names: Collection[str]) -> str:
    """The names, sorted; of many the first few, and how many more: every one is a row of the results."""
    shown = sorted(names)
    if len(shown) > NAMES_MAX:
        shown = [*shown[: NAMES_MAX - 2], f"and {len(names) - NAMES_MAX + 2} more"]
    return ", ".join(shown)


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


def check_tables(judged: Sequence[tuple[str, Check]]) -> list[Table]:
    """The promises with their verdicts, each with its suite unless that is empty; then, under one heading, what was
    measured of those that are made for another kind of machine."""
    here = [(suite, check) for suite, check in judged if check.here]
    elsewhere = [(suite, check) for suite, check in judged if not check.here]
    tables = [_checks(here, ("measured", "bound", "verdict"))] if here else []
    if elsewhere:
        tables.append(_checks(elsewhere, ("measured",)))
        tables[-1].title = "Not promised here"
        kinds = dict.fromkeys(PROMISED_FOR[check.only] for _, check in elsewhere)
        tables[-1].caption = f"{len(elsewhere)} that hold for {' or '.join(kinds)}, measured all the same."
    return tables


def _checks(judged: Sequence[tuple[str, Check]], names: Sequence[str]) -> Table:
    suites = any(suite for suite, _ in judged)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", caption_justify="left")
    for name in ["suite"] * suites + ["promise", *names]:
        table.add_column(name, justify="right" if name in ("measured", "bound") else "left")
    for suite, check in judged:
        table.add_row(*[escape(suite)] * suites, escape(check.what), *_verdict(check)[: len(names)])
    return table


def _verdict(check: Check) -> tuple[str, str, str]:
    value = "-" if check.value is None else f"{check.value:.3g} {check.unit}".strip()
    word = {True: "[green]pass[/green]", False: "[red]fail[/red]", None: "not measured"}[check.passed]
    return value, f"{'≥' if check.at_least else '≤'} {check.bound:.3g} {check.unit}".strip(), word


def _print_whole(out: Console, table: Table) -> None:
    """In a file a line may be long; a number that is cut says nothing."""
    width = out.width
    if not out.is_terminal:
        out.width = max(width, out.measure(table, options=out.options.update(width=WIDEST)).maximum)
    out.print(table)
    out.width = width


def print_results(rows: Rows, console: Console | None = None) -> None:
    """Everything a results file holds, as tables."""
    out = console or Console(width=None if sys.stdout.isatty() else WIDTH)
    for kind in kinds.present(rows):
        for table in kinds.resolve(kind.tables)(kinds.own(rows, kind), kind.row):
            _print_whole(out, table)
        for table in check_tables([("", check) for check in kinds.checks(rows, kind)]):
            out.print(table)
    absent = missing_table(rows)
    if absent is not None:
        out.print(absent)
    for row in rows:
        if row["kind"] == "stopped":
            out.print(escape(f"ended at its {row['cause']}, after {row['done']} of {row['planned']} cells"))
