"""Pieces of the page as HTML: tables (also those made for the terminal), statements with their rows, figures as SVG.

Wide tables scroll in themselves, long ones are folded; on paper they are whole.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock_bench.engine.sources import FEW, Statement, names_of, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

LONG = 40  # lines of a table that is folded
FEW_IN_CELL = 3  # names of rows, or spans of them, in a cell of a table
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.55 "Source Sans 3", "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1a1c1f;
  background: #fff; max-width: 54rem; margin: 0 auto; padding: 2.2rem 1.1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.18rem; margin: 2.6rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { margin: .4rem 0 .8rem; }
p.verdict { font-size: 1.12rem; margin: .4rem 0 .6rem; }
p.lead, p.note { color: #555b64; }
p.note { font-size: .92rem; }
figure { margin: 1.6rem 0; break-inside: avoid; }
figure svg { width: 100%; max-width: 41rem; height: auto; display: block; }
.drawn { overflow-x: auto; }
figcaption { color: #555b64; font-size: .92rem; margin-top: .5rem; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th { text-align: left; font-weight: 600; border-bottom: 1.5px solid #1a1c1f; padding: .3rem .9rem .3rem 0;
  vertical-align: bottom; }
td { border-bottom: 1px solid #e3e6ea; padding: .3rem .9rem .3rem 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td.n, th.n { text-align: right; white-space: nowrap; }
td:first-child { min-width: 9rem; } td:nth-child(2) { white-space: nowrap; }
td:first-child.n, table.plain td:first-child { min-width: 0; }
table.rules td:first-child { min-width: 11rem; } table.rules td:nth-child(2) { font-weight: 600; }
table.prose td:first-child { min-width: 11rem; width: 55%; }
table.prose td:nth-child(2) { white-space: normal; min-width: 11rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.1rem; font-size: .92rem; margin: 0; }
dt { color: #555b64; } dd { margin: 0; overflow-wrap: anywhere; }
summary { cursor: pointer; color: #1f3a5f; }
.rows { color: #6b7179; font-size: .78rem; }
.rows summary { color: inherit; display: inline; white-space: nowrap; }
details.rows { display: inline; }
code { font-size: .88em; overflow-wrap: anywhere; }
@media (max-width: 30rem) {
  body { padding-top: 1.2rem; } h1 { font-size: 1.4rem; }
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; }
  figure svg { min-width: 33rem; } td:first-child, table.rules td:first-child { min-width: 8rem; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; } h2, h3 { break-after: avoid; }
  table { font-size: 7.5pt; } td, th { padding-right: .5rem; } td.n, th.n { white-space: normal; }
  td:first-child, td:nth-child(2) { min-width: 0 !important; white-space: normal; }
  .wide { overflow: visible; }
  .rows { font-size: 6pt; } table.rules td:first-child { min-width: 4.5cm !important; }
  tr { break-inside: avoid; } thead { display: table-header-group; }
  details::details-content { content-visibility: visible; block-size: auto; }
  figcaption details::details-content { content-visibility: hidden; block-size: 0; } }
"""


def page(title: str, body: Iterable[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )


def text(words: str) -> str:
    return html.escape(words)


def rows(of: Iterable[dict[str, Any]], few: int = FEW) -> str:
    """The names of rows, small; folded when there are more than a few."""
    return named(names_of(of), few)


def named(names: Sequence[str], few: int = FEW) -> str:
    """As `rows`, of names."""
    if not names:
        return ""
    shown = spans(names)
    if len(shown) <= few:
        return f'<span class="rows">{", ".join(shown)}</span>'
    return f'<details class="rows"><summary>{len(names)} rows</summary> {", ".join(shown)}</details>'


def statement(one: Statement) -> str:
    return f'<p class="verdict">{text(one.text)} {rows(one.rows)}</p>'


def table(names: Sequence[str], lines: Sequence[Sequence[str]], numbers: Iterable[int] = (), look: str = "") -> str:
    """Cells are HTML already. `numbers` are columns that are aligned at the right; `look` is a class of the style.
    Empty text without lines."""
    if not lines:
        return ""
    right = set(numbers)

    def row(cells: Sequence[str], tag: str) -> str:
        marks = [' class="n"' if turn in right else "" for turn in range(len(cells))]
        return (
            "<tr>" + "".join(f"<{tag}{mark}>{cell}</{tag}>" for cell, mark in zip(cells, marks, strict=True)) + "</tr>"
        )

    return (
        f'<div class="wide"><table class="{look}"><thead>{row(names, "th")}</thead><tbody>'
        + "".join(row(line, "td") for line in lines)
        + "</tbody></table></div>"
    )


def from_terminal(made: Table, what: str) -> str:
    """A table that was made for the terminal: the same title and cells. Folded under `what` when it is long."""
    from rich.text import Text

    columns = [[Text.from_markup(str(cell)).plain for cell in column.cells] for column in made.columns]
    names = [text(str(column.header)) for column in made.columns]
    numbers = [turn for turn, column in enumerate(made.columns) if column.justify == "right"]
    small = names.index("rows") if "rows" in names else -1
    lines = [[_cell(cell, turn == small) for turn, cell in enumerate(line)] for line in zip(*columns, strict=True)]
    whole = table(names, lines, numbers)
    if made.caption:
        whole += f'<p class="note">{text(str(made.caption))}</p>'
    head = f"<h3>{text(str(made.title))}</h3>" if made.title else ""
    if len(lines) <= LONG:
        return head + whole
    return f"{head}<details><summary>{text(what)}: {len(lines)} lines</summary>{whole}</details>"


def _cell(words: str, names_rows: bool) -> str:
    return named(words.split(), FEW_IN_CELL) if names_rows else text(words)


def facts(entries: Iterable[tuple[str, ...]]) -> str:
    """Names and what they are, and what is folded below; those without a text are left out."""
    found = "".join(
        f"<dt>{text(name)}</dt><dd>{text(words)}{''.join(map(_folded, more))}</dd>"
        for name, words, *more in entries
        if words
    )
    return f"<dl>{found}</dl>" if found else ""


def _folded(words: str) -> str:
    return f"<details><summary>settings</summary>{text(words)}</details>" if words else ""


def picture(figure: Figure, name: str) -> str:
    """The figure as an <svg> element that can stand beside others in one page: ids are made distinct."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    drawn = stream.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawn).replace("xlink:href", "href")
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", drawn)
