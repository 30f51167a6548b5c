"""`python -m penstock_bench.measured`: makes a table of a results file, and pages and figures of tables.

It is for the tree of a project that keeps what it measured, and is run at its top: tables are in bench/tables, pages in
docs/measured, figures in docs/figures, and what other pages say of the tables is in bench/said.toml.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock import Error
from penstock_bench.measured import making, pages, said

TABLES, PAGES, SAID = Path("bench/tables"), Path("docs/measured"), Path("bench/said.toml")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock_bench.measured", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("table", help="reduce the rows of RESULTS to a table of medians")
    one.add_argument("results", type=Path)
    one.add_argument("--out", type=Path, required=True, help=f"the table: {TABLES}/SUITE/MACHINE.csv")
    one.add_argument("--title", required=True, help="heading of its part of the page, as 'One H200'")
    one.add_argument("--made-by", required=True, help="the command that measured")
    one.add_argument(
        "--revision", default="", help="the revision that was measured, where the rows have none or -dirty"
    )
    one.add_argument("--date", default="", help="when it was measured")
    one.add_argument("--note", default="", help="a sentence for whoever reads the numbers")
    commands.add_parser("pages", help=f"make {PAGES} of {TABLES}, and fill what {SAID} lists")
    commands.add_parser("figures", help="draw docs/figures of the tables")
    options = parser.parse_args(arguments)
    try:
        {"table": _table, "pages": _pages, "figures": _figures}[options.command](options)
    except (Error, OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _table(options: argparse.Namespace) -> None:
    origin = making.Origin(options.title, options.made_by, options.revision, options.date, options.note)
    text = making.table_of(options.results, origin).text
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    sys.stdout.write(f"{options.out}: {len(text)} bytes\n")


def _pages(_options: argparse.Namespace) -> None:
    tables = pages.all_tables(TABLES)
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages.pages(tables).items():
        (PAGES / f"{name}.md").write_text(text)
    for name, listed in said.read(SAID.read_text()).items() if SAID.exists() else ():
        page = Path(name)
        page.write_text(said.filled(page.read_text(), listed["claims"], tables))
    sys.stdout.write(f"{PAGES}: of {len(tables)} tables\n")


def _figures(_options: argparse.Namespace) -> None:
    from penstock_bench.measured import drawing

    for path in drawing.draw_all(pages.all_tables(TABLES), Path("docs/figures")):
        sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    sys.exit(main())
