"""The figures of the docs, drawn of tables: what `penstock report` draws of rows, with a title, in few bytes.

Text stays text and coordinates have two digits, so that a figure is small, can be searched, and differs from an earlier
one only where a number does. What is drawn of single samples no table can give: such a figure is not in the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.measured.table import MeasuredTable
from penstock_bench.suites import beside_peers, choice, first_touch, gpu_io, grid, hmatrix, simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class DocsFigure:
    """A figure of the docs: what draws it of rows, and which table's."""

    table: str
    draw: Callable[[Rows], Figure | None]
    title: str
    beside_table: bool = False  # shown by the page of its table, not by one with more words


DRAWN = {  # by the name of the file
    "bandwidth": DocsFigure("report/two-cores", grid.figures.bandwidth_by_path, "Bandwidth by path, two cores"),
    "h200-core": DocsFigure("core/h200", beside_peers.beside_peers, "Penstock beside ceilings and peers, one H200"),
    "h200-formats": DocsFigure("formats/h200", beside_peers.beside_peers, "Arrays of files to a GPU, one H200"),
    "h200-first-touch": DocsFigure(
        "first-touch/h200",
        first_touch.figures.by_problem_size,
        "Bandwidth against problem size, one H200",
        beside_table=True,
    ),
    "h200-choice": DocsFigure(
        "choice/h200",
        choice.figures.choice_figure,
        "Ways of choosing beside the fastest path, one H200",
        beside_table=True,
    ),
    "h200-gpu-io-blocks": DocsFigure(
        "gpu-io/h200", gpu_io.figures.blocks_figure, "Requests a second by threads a block, one H200", beside_table=True
    ),
    "h100-gpu-io-blocks": DocsFigure(
        "gpu-io/h100", gpu_io.figures.blocks_figure, "Requests a second by threads a block, one H100"
    ),
    "h100-gpu-io-requests": DocsFigure(
        "gpu-io/h100", gpu_io.figures.requests_figure, "Random 4 KiB a second beside other ways, one H100"
    ),
    "h200-hmatrix-time": DocsFigure(
        "hmatrix/h200", hmatrix.figures.time_figure, "Seconds of five sweeps over a matrix, one H200"
    ),
    "h200-hmatrix-read": DocsFigure(
        "hmatrix/h200", hmatrix.figures.read_figure, "Matrices read and seconds to a tolerance, one H200"
    ),
    "h200-simulation-step": DocsFigure(
        "simulation/h200", simulation.figures.figure, "A step of a model by way of writing, one H200"
    ),
}


def draw_all(tables: dict[str, MeasuredTable], folder: Path) -> list[Path]:
    """Writes every figure; ValueError when a table does not hold what its figure shows."""
    written = []
    with style.in_use():
        for name, one in DRAWN.items():
            found = tables[one.table]
            rows = [row for kind in dict.fromkeys(cell["kind"] for cell in found.cells) for row in found.rows(kind)]
            figure = one.draw(rows)
            if figure is None:
                raise ValueError(f"{one.table} does not hold what {name} shows")
            written.append(folder / f"{name}.svg")
            written[-1].write_text(svg(figure, one.title))
    return written


def svg(figure: Figure, title: str) -> str:
    """The figure on white, in few bytes: coordinates have two digits."""
    drawn = style.svg(figure, title)
    drawn = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), drawn)
    return re.sub(r"<!--.*?-->\s*", "", drawn, flags=re.DOTALL)
