"""What is kept of a suite that was measured: tables of medians, and which cells, labels and numbers its page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from penstock._text import bytes_text

Cell = dict[str, Any]  # of a table: its labels and its quantities, each with its bounds
GIGA, MEGA = 1e9, 1e6


@dataclass(frozen=True)
class Shown:
    """A quantity: its column in the table, and the unit it is shown in."""

    header: str
    column: str
    unit: float = 1.0

    def text(self, cell: Cell) -> str:
        """Median and interval."""
        if not isinstance(cell.get(self.column), (int, float)):
            return ""
        middle = number(cell[self.column] / self.unit)
        if not cell.get(self.column + " low"):
            return middle
        low, high = (number(cell[self.column + end] / self.unit) for end in (" low", " high"))
        return f"{middle} ({low}–{high})"


@dataclass(frozen=True)
class Listing:
    """Cells of one kind as a table of a page: a line for each combination of `labels`. With `across`, the values of
    that label are columns, which hold medians of the only quantity."""

    title: str
    kind: str
    labels: tuple[str, ...]
    shown: tuple[Shown, ...]
    across: str = ""
    only: dict[str, Any] = field(default_factory=dict)
    samples: bool = True  # how many there are is a column

    def markdown(self, cells: list[Cell]) -> str:
        """Empty where there is no such cell."""
        mine = [cell for cell in cells if self.only.items() <= cell.items()]
        if self.across:
            mine = [cell for cell in mine if self.shown[0].column in cell]
        if not mine:
            return ""
        lines = self._across(mine) if self.across else self._down(mine)
        return f"**{self.title}**\n\n" + markdown_table(lines)

    def _down(self, cells: list[Cell]) -> list[list[str]]:
        shown = [one for one in self.shown if any(one.column in cell for cell in cells)]
        labels = [label for label in self.labels if any(label in cell for cell in cells)]
        head = [*(HEADERS.get(label, label) for label in labels), *(one.header for one in shown)]
        lines = [
            [*(text_of(label, cell.get(label)) for label in labels), *(s.text(cell) for s in shown)] for cell in cells
        ]
        counts = [["n"], *([str(cell["n"])] for cell in cells)] if self.samples else [[]] * (len(cells) + 1)
        return [line + count for line, count in zip([head, *lines], counts, strict=True)]

    def _across(self, cells: list[Cell]) -> list[list[str]]:
        places = list(dict.fromkeys(cell[self.across] for cell in cells))
        places = sorted(places) if isinstance(places[0], int) else places
        labels = [label for label in self.labels if any(label in cell for cell in cells)]
        found: dict[tuple[Any, ...], dict[Any, str]] = {}
        for cell in cells:
            values = found.setdefault(tuple(cell.get(label) for label in labels), {})
            values.setdefault(cell[self.across], number(cell[self.shown[0].column] / self.shown[0].unit))
        head = [HEADERS.get(label, label) for label in labels] + [text_of(self.across, place) for place in places]
        return [head] + [
            [
                *(text_of(label, value) for label, value in zip(labels, key, strict=True)),
                *map(values.get, places, [""] * len(places)),
            ]
            for key, values in found.items()
        ]


@dataclass(frozen=True)
class SuitePage:
    """What is kept of a suite: the cells of its tables, and the page that is made of them."""

    about: str = ""  # in a sentence; more is in docs/bench.md
    listings: tuple[Listing, ...] = ()
    name: str = ""  # of the page; the suite's own where it is empty
    told: tuple[str, ...] = ()  # labels that tell all of a sample's name, which is left out then
    kept: frozenset[str] = frozenset()  # fields of samples that other suites' cells go without
    left_out: frozenset[str] = frozenset()  # fields of samples that its cells go without


_SIZES = {" KiB": 1 << 10, " MiB": 1 << 20, " GiB": 1 << 30}
_SIZED = re.compile(r"(\d+(?:\.\d+)?)( [KMG]iB)?")
HEADERS = {
    "name": "",
    "inner_iterations": "inner iterations",
    "request_bytes": "request",
    "first_touch": "touched first by",
    "chunk_bytes": "chunk",
    "file_bytes": "file",
    "buffer_bytes": "buffer",
}


def text_of(label: str, value: Any) -> str:
    if value is None or value == "" or isinstance(value, bool):
        return "yes" if value is True else ""
    if label.endswith("_bytes") and isinstance(value, int):
        return bytes_text(value) if value else "none" if label == "buffer_bytes" else "whole"
    if label == "particles":
        return next(f"{value >> shift} {unit}" for shift, unit in ((20, "Mi"), (10, "Ki"), (0, "")) if value >> shift)
    return f"{value:,}" if isinstance(value, int) else str(value)


def in_order(cell: Cell) -> list[tuple[int, float, str]]:
    """A key by which 4 KiB come before 16 KiB, and blocks of 32 before those of 128."""
    words = [str(cell.get("name", ""))] + [str(value) for name, value in cell.items() if name != "name"]
    parts = _SIZED.split(" ".join(words))
    return [
        (1, float(part) * _SIZES.get(parts[turn + 1] or "", 1), "") if turn % 3 == 1 else (0, 0.0, part)
        for turn, part in enumerate(parts)
        if turn % 3 != 2
    ]


def number(value: float) -> str:
    """Three figures, and no more than are before the point of larger ones."""
    size = abs(value)
    if not value:
        return "0"
    if size >= 1000:
        return f"{value:,.0f}"
    if size < 0.001:
        return f"{value:.1e}".replace("e-0", "e-")
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{digits}f}"


def markdown_table(lines: list[list[str]]) -> str:
    head, *body = lines
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *body])


RATE, CPU = Shown("GB/s", "bytes_per_second", GIGA), Shown("CPU s/GB", "cpu_s_per_gb")
DURABLE = Shown("GB/s", "durable_bytes_per_second", GIGA)
ONE, P99 = Shown("us", "median_us"), Shown("p99 us", "p99_us")
EACH = Shown("M/s", "operations_per_second", MEGA)
SECONDS = Shown("s", "seconds")
