"""Pieces of the page as HTML: tables (also those made for the terminal), statements with their rows, figures as SVG.

Wide tables scroll in themselves, long ones are folded; on paper they are whole. What must stay true: a paragraph holds
words and marks only, no table and nothing that folds, so that a browser closes it where it ends.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.statement import Statement
from penstock_bench.report.sheet import SHEET
from penstock_bench.report.sources import FEW, names_of, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

LONG = 40  # lines of a table that is folded
FEW_IN_CELL = 3  # names of rows, or spans of them, in a cell of a table


def page(title: str, body: Iterable[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{SHEET}</style></head><body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def text(words: str) -> str:
    return html.escape(words)


class Notes:
    """The rows behind sentences, listed once at the end of the page. In a sentence stands a small number, a link that
    shows its entry of the list over the text."""

    def __init__(self) -> None:
        self._entries: list[str] = []

    def mark(self, of: Iterable[dict[str, Any]], what: str = "") -> str:
        """The number of these rows; `what` is told before them in the list. Empty of rows without a name."""
        names = names_of(of)
        if not names:
            return ""
        self._entries.append(text(f"{what}: " * bool(what) + ", ".join(spans(names))))
        turn = len(self._entries)
        label = f"{len(names)} row{'s' * (len(names) > 1)} behind this, note {turn}"
        link = f'<a id="from-{turn}" href="#rows-{turn}" title="{label}" aria-label="{label}">{turn}</a>'
        return f'<sup class="rows">{link}</sup>'

    def listed(self) -> str:
        """Every entry, with a link back to its sentence."""
        back = '<a class="back" href="#from-{0}" aria-label="back to the text">↩ back</a>'
        entries = [
            f'<li id="rows-{turn}">{entry} {back.format(turn)}</li>' for turn, entry in enumerate(self._entries, 1)
        ]
        return f'<ol class="notes">{"".join(entries)}</ol>' if entries else ""


def rows(of: Iterable[dict[str, Any]], few: int = FEW) -> str:
    """The names of rows, small; folded when there are more than a few. For cells of tables: sentences have `Notes`."""
    return named(names_of(of), few)


def named(names: Sequence[str], few: int = FEW) -> str:
    """As `rows`, of names."""
    if not names:
        return ""
    shown = spans(names)
    if len(shown) <= few:
        return f'<span class="rows">{", ".join(shown)}</span>'
    return f'<details class="rows"><summary>{len(names)} rows</summary> {", ".join(shown)}</details>'


def statement(one: Statement, notes: Notes) -> str:
    return f'<p class="verdict">{text(one.text)}{notes.mark(one.rows)}</p>'


@dataclass(frozen=True)
class Look:
    """How a table is shown: what a reader that speaks calls it, its class in the style sheet, and which of its columns
    are aligned at the right."""

    label: str
    kind: str = ""
    numbers: tuple[int, ...] = ()


def table(names: Sequence[str], lines: Sequence[Sequence[str]], look: Look) -> str:
    """Cells are HTML already. Empty text without lines."""
    if not lines:
        return ""

    def row(cells: Sequence[str], tag: str, scope: str = "") -> str:
        marks = [' class="n"' if turn in look.numbers else "" for turn in range(len(cells))]
        made = (f"<{tag}{scope}{mark}>{cell}</{tag}>" for cell, mark in zip(cells, marks, strict=True))
        return "<tr>" + "".join(made) + "</tr>"

    head, kind = row(names, "th", ' scope="col"'), f' class="{look.kind}"' if look.kind else ""
    whole = f"<table{kind}><thead>{head}</thead><tbody>{''.join(row(line, 'td') for line in lines)}</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="{text(look.label)}">{whole}</div>'


def from_terminal(made: Table, what: str, kind: str = "") -> str:
    """A table that was made for the terminal: the same title and cells. Folded under `what` when it is long."""
    from rich.text import Text

    columns = [[Text.from_markup(str(cell)).plain for cell in column.cells] for column in made.columns]
    names = [text(str(column.header)) for column in made.columns]
    numbers = tuple(turn for turn, column in enumerate(made.columns) if column.justify == "right")
    small = names.index("rows") if "rows" in names else -1
    lines = [[_cell(cell, turn == small) for turn, cell in enumerate(line)] for line in zip(*columns, strict=True)]
    whole = table(names, lines, Look(str(made.title or what), kind, numbers))
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


def picture(figure: Figure, name: str, caption: str) -> str:
    """The figure as an <svg> element that can stand beside others in one page: ids are made distinct. It lets through
    what is behind it, which has to be white, and tells the style sheet its width in points."""
    drawn = style.svg(figure, caption, transparent=True)
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r'width="([\d.]+)pt" height="[\d.]+pt"', r'style="--points: \1"', drawn, count=1)
    drawn = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawn).replace("xlink:href", "href")
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", drawn)
