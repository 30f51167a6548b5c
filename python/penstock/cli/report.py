"""`penstock report`: tables, figures and one self-contained page from a results file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penstock import Error
from penstock.cli import options
from penstock.cli.bench import DEFAULT_RESULTS


def report(
    results: Annotated[str, typer.Argument(help="Results that `penstock bench` wrote.")] = DEFAULT_RESULTS,
    out: Annotated[str, typer.Option("--out", help="The page; figures go beside it as PNG and SVG.")] = "report.html",
) -> int:
    """Print the tables of RESULTS and make a page with the figures embedded; it needs no network to be read."""
    from penstock.bench import results as stored
    from penstock.bench.show import print_results
    from penstock.report import page

    source, target = options.place("report", "RESULTS", results), options.place("report", "--out", out)
    if not source.is_file():
        raise Error(
            code="not_found",
            operation="report",
            file=results,
            cause="there are no such results",
            advice="make some with `penstock bench`",
        )
    rows = stored.read(source)
    try:
        made = page.make(rows, target)
    except OSError as error:
        raise Error.of(error, "write the report", out, "name a file you can write with --out") from None
    print_results(rows)
    sys.stdout.write("report: " + ", ".join(str(path) for path in made) + "\n")
    return 0
