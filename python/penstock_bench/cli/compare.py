"""`penstock compare`: two results files beside each other, and whether the second is a step back."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import Error
from penstock.cli import options, show

if TYPE_CHECKING:
    from rich.table import Table

    from penstock_bench.runs.compare import Comparison, ComparisonReport

REGRESSED = 1  # the exit code


def compare(
    first: Annotated[str, typer.Argument(help="Results file to compare with.")],
    second: Annotated[str, typer.Argument(help="Results file to judge.")],
    fail_below: Annotated[
        str | None, typer.Option("--fail-below", help="Exit with 1 if the whole interval of a ratio is below N.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", help="Write the ratios to FILE too: .csv, .jsonl or .parquet.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> int:
    """Print ratios of medians of two results files, with 95 % intervals. Above 1, SECOND is better: faster or cheaper.

    Example: penstock compare before.jsonl after.jsonl --fail-below 0.95
    """
    from penstock_bench.runs import compare as comparing, stored, tables

    bound = _bound(fail_below)
    places = [options.place("compare", name, given) for name, given in _named(first, second)]
    table = None if out is None else options.target("compare", out, places)
    if table is not None:
        with options.usage():
            tables.encoder(table, "compare")
    rows = [stored.read(place) for place in places]
    report = comparing.compare(*rows)
    if not report.comparisons:
        raise Error(
            operation="compare",
            file=second,
            cause=f"nothing was measured in it that was measured in {first} too",
            advice="give results of the same suite",
        )
    worse = [one.name for one in report.comparisons if bound is not None and one.regressed(bound)]
    if table is not None:
        tables.save(table, _rows(report, worse), "compare")
    if json:
        show.json_object(_fields(report, worse))
    else:
        _print(report)
    if worse:
        sys.stderr.write(f"compare {second}: below {bound} of {first}: {', '.join(worse)}\n")
    return REGRESSED if worse else 0


def _named(first: str, second: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("FIRST", first), ("SECOND", second)


def _bound(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not 0 < bound <= 1:
        raise options.refusal(
            "compare", f"--fail-below: '{text}' is not a ratio", "give a number up to 1, such as 0.95"
        )
    return bound


def _fields(report: ComparisonReport, worse: list[str]) -> dict[str, Any]:
    fields = [_of(one) | {"samples": list(one.samples)} for one in report.comparisons]
    return {
        "comparisons": fields,
        "only_first": report.only_first,
        "only_second": report.only_second,
        "differences": report.differences,
        "unlike": report.unlike,
        "regressed": worse,
    }


def _of(one: Comparison) -> dict[str, Any]:
    names = ("name", "unit", "first", "second", "ratio", "low", "high", "changed")
    return {name: getattr(one, name) for name in names}


def _rows(report: ComparisonReport, worse: list[str]) -> list[dict[str, Any]]:
    """One row for each comparison, and one for each thing that was not compared, so that the table hides nothing."""
    rows = [
        {"found": "both"}
        | _of(one)
        | {"samples_first": one.samples[0], "samples_second": one.samples[1], "regressed": one.name in worse}
        for one in report.comparisons
    ]
    others = {"only first": report.only_first, "only second": report.only_second, "unlike": report.unlike}
    others["machines differ"] = report.differences
    return rows + [{"found": found, "name": name} for found, names in others.items() for name in names]


def _print(report: ComparisonReport) -> None:
    from rich.console import Console

    for what in report.differences:
        sys.stdout.write(f"not alike: {what}\n")
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else show.WIDTH)
    console.print(_table(report.comparisons))
    lists = {
        "only in the first": report.only_first,
        "only in the second": report.only_second,
        "in other units, or nothing moved": report.unlike,
    }
    for what, names in lists.items():
        if names:
            sys.stdout.write(f"{what}: {', '.join(names)}\n")


def _table(comparisons: list[Comparison]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measured")
    for name in ("first", "second", "unit", "ratio", "95 %", "n"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    table.add_column("")
    for one in comparisons:
        interval = "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"
        table.add_row(
            escape(one.name),
            f"{one.first:.3g}",
            f"{one.second:.3g}",
            one.unit,
            f"{one.ratio:.3f}",
            interval,
            "{}, {}".format(*one.samples),
            one.changed,
        )
    return table
