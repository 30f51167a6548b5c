"""`penstock report`: tables, figures and one self-contained page from results files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock import Error
from penstock.cli import options
from penstock_bench.cli.bench import DEFAULT_RESULTS


def report(
    results: Annotated[
        list[str] | None, typer.Argument(help=f"Results files of `penstock bench`; the default is {DEFAULT_RESULTS}.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", help="File of the page; figures are saved beside it as PNG and SVG.")
    ] = "report.html",
) -> int:
    """Print the tables of RESULTS and write one page with all tables and figures, which needs no network.

    RESULTS are one or several results files of one machine.

    Example: penstock report results.jsonl --out report.html
    """
    places = [_existing(name) for name in results or [DEFAULT_RESULTS]]
    target = options.target("report", out, places)  # before seconds are spent on loading what draws
    from penstock_bench.report import page, sources
    from penstock_bench.report.show import print_results

    found = sources.read(places)
    made = page.make(found, target)
    for source in found:
        print_results([{name: value for name, value in row.items() if name != "source"} for row in source.rows])
    sys.stdout.write("report: " + ", ".join(str(path) for path in made) + "\n")
    return 0


def _existing(name: str) -> Path:
    place = options.place("report", "RESULTS", name)
    if place.is_dir():
        advice = f"name the files in it that `penstock bench` wrote, as by {place / '*.jsonl'}"
        raise Error(code="not_a_regular_file", operation="report", file=name, cause="it is a folder", advice=advice)
    if not place.is_file():
        raise Error(
            code="not_found",
            operation="report",
            file=name,
            cause="there are no such results",
            advice="make some with `penstock bench`",
        )
    return place
