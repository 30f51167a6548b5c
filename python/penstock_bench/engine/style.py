"""How figures look: one typeface, few colours that hold in print and for colour-blind eyes, no ornament."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from penstock_bench.engine.intervals import Estimate

mpl.use("Agg")

INK = "#1a1c1f"
FAINT = "#8a9099"
GRID = "#e3e6ea"
HOT, COLD, DIRECT = "#c2571a", "#4a7fb5", "#1f3a5f"
STATE_COLOURS = {"hot": HOT, "cold": COLD, "direct": DIRECT}
# Okabe and Ito's palette, darkest first, for lines that cross.
LINE_COLOURS = ("#1f3a5f", "#c2571a", "#2a8a6a", "#9b4f96", "#b8860b", "#4a7fb5", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

BEHIND_TEXT = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # under a number that may lie on a bar or a line

RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Source Sans 3", "Helvetica Neue", "DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.12,
    "svg.hashsalt": "penstock",
    "svg.fonttype": "none",  # text that can be searched, and a tenth of the bytes
}


def whisker(axes: Axes, place: float, found: Estimate) -> None:
    """The interval of a median on its horizontal bar; nothing where too few samples have none."""
    if found.low is None or found.high is None:
        return
    for colour, width in (("white", 3.5), (INK, 0.9)):
        axes.plot([found.low, found.high], [place, place], color=colour, linewidth=width)
