"""Tables of results for the terminal."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.cli.show import WIDTH
from penstock_bench.engine.promises import PROMISED_FOR, Check
from penstock_bench.runs.suites import checks, own, present

Rows = list[dict[str, Any]]
WIDEST = 1000  # columns that a table may have in a file
NAMES_MAX = 16  # of one cause, in a table


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
        those = "This promise is" if len(elsewhere) == 1 else f"These {len(elsewhere)} promises are"
        tables[-1].caption = f"{those} made for {' or '.join(kinds)}; measured here all the same."
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
    for suite in present(rows):
        for table in suite.table(own(rows, suite), suite.row):
            _print_whole(out, table)
        for table in check_tables([("", check) for check in checks(rows, suite)]):
            out.print(table)
    absent = missing_table(rows)
    if absent is not None:
        out.print(absent)
    for row in rows:
        if row["kind"] == "stopped":
            out.print(escape(f"ended at its {row['cause']}, after {row['done']} of {row['planned']} cells"))
