"""`penstock export`: the rows of a results file as a table for spreadsheets, pandas, DuckDB and friends."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penstock.cli import options
from penstock_bench.cli.bench import DEFAULT_RESULTS


def export(
    results: Annotated[str, typer.Argument(help="A results file of `penstock bench`.")] = DEFAULT_RESULTS,
    out: Annotated[str, typer.Option("--out", help="The table: .csv, .jsonl or .parquet.")] = "penstock-results.csv",
) -> int:
    """Write all rows of RESULTS to one table: a column for each field, and the machine's facts in each row.

    Example: penstock export results.jsonl --out results.csv
    """
    from penstock_bench.runs import stored, tables

    source = options.place("export", "RESULTS", results)
    target = options.target("export", out, [source])
    with options.usage():
        tables.encoder(target, "export")
    rows = tables.of_results(stored.read(source))
    tables.save(target, rows, "export")
    sys.stdout.write(f"{len(rows)} rows: {target}\n")
    return 0
