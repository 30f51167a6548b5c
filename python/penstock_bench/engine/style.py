"""How figures look: one typeface, few colours that hold in print and for colour-blind eyes, no ornament.

What must stay true: no line is told from another by its colour alone, and a figure says in words what it shows, to who
searches for it or has it read aloud. matplotlib is loaded here, when something is drawn, and by no module that draws.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from penstock_bench.engine.intervals import Estimate

INK = "#1a1c1f"
FAINT = "#8a9099"
GRID = "#e3e6ea"
# The palette of Okabe and Ito, that eyes without red or green tell apart as well; its yellow is too light for a line.
BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY = "#0072b2", "#d55e00", "#009e73", "#b85f92", "#d08c00", "#56b4e9"
GREY = "#5f6670"
HOT, COLD, DIRECT = ORANGE, SKY, BLUE
STATE_COLOURS = {"hot": HOT, "cold": COLD, "direct": DIRECT}


@dataclass(frozen=True)
class Mark:
    """How a line is known: by its colour and, as surely, by the shape of its points."""

    colour: str
    marker: str


# For lines that cross, those that are told apart best first.
MARKS = tuple(Mark(*pair) for pair in zip((BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, GREY), "os^DvPX", strict=True))
# A path has one mark in all figures.
PATHS = {
    "auto": Mark(ORANGE, "o"),
    "buffered": Mark(SKY, "s"),
    "direct": Mark(BLUE, "^"),
    "uring": Mark(AMBER, "D"),
    "gds": Mark(PURPLE, "v"),
    "gds-compat": Mark(GREEN, "P"),
    "mmap": Mark(GREEN, "<"),
    "uring-buffered": Mark(PURPLE, ">"),
    "aio": Mark(GREY, "h"),
    "plain": Mark(GREY, "X"),
}

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


def in_use() -> AbstractContextManager[None]:
    """A context in which figures look like this."""
    import matplotlib as mpl

    mpl.use("Agg")
    return mpl.rc_context(RC)


def new_figure(width_in: float, height_in: float, placed_by_hand: bool = False) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), layout=None if placed_by_hand else "constrained")


def log_ticks(axis: Axis, multiples: Sequence[float] = (1.0,), base: float = 10.0) -> None:
    """Marks at these multiples of the powers of a base, and no smaller ones."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=base, subs=multiples))
    axis.set_minor_locator(NullLocator())


def no_minor_ticks(axis: Axis) -> None:
    from matplotlib.ticker import NullLocator

    axis.set_minor_locator(NullLocator())


def few_ticks(axis: Axis, most: int, whole: bool = False) -> None:
    """At so many places at most; whole: at whole numbers where that can be."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, integer=whole))


def patch(colour: str, label: str) -> Patch:
    """An entry of a legend."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def whisker(axes: Axes, place: float, found: Estimate) -> None:
    """The interval of a median on its horizontal bar; nothing where too few samples have none."""
    if found.low is None or found.high is None:
        return
    for colour, width in (("white", 3.5), (INK, 0.9)):
        axes.plot([found.low, found.high], [place, place], color=colour, linewidth=width)


def bar_end(axes: Axes, place: float, found: Estimate, text: str) -> None:
    """The interval of a median on its horizontal bar, and the number behind it."""
    whisker(axes, place, found)
    axes.annotate(
        text,
        (found.high or found.median, place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        bbox=BEHIND_TEXT,
        zorder=5,
    )


def svg(figure: Figure, title: str, transparent: bool = False) -> str:
    """The figure as an SVG document whose text is text, with a title and, for who cannot see it, a label that names its
    panels, axes and lines; without the date and the version of what drew it."""
    stream = io.StringIO()
    told = {"Date": None, "Creator": None, "Title": title}
    figure.savefig(stream, format="svg", metadata=told, transparent=transparent)
    drawn = re.sub(r"<metadata>.*?</metadata>\s*", "", stream.getvalue(), flags=re.DOTALL)
    label = html.escape(alternative(figure, title))
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def alternative(figure: Figure, title: str) -> str:
    """What the figure shows, in words: its title, then the words of each panel."""
    panels = [", ".join(words) for axes in figure.get_axes() if (words := _words(axes))]
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return " ".join([f"{title.rstrip('.')}.", *(f"{one}." for one in panels), *([", ".join(legends)] * bool(legends))])


def _words(axes: Axes) -> list[str]:
    """Title, then names of the axes, lines and bars."""
    heads = [axes.get_title(loc=place) for place in ("left", "center", "right")]
    axis = [axes.get_xlabel(), axes.get_ylabel()]
    lines = [text.get_text() for text in legend.get_texts()] if (legend := axes.get_legend()) else []
    marks = [text.get_text() for text in axes.get_yticklabels()]
    bars = [word for word in marks if re.search(r"[A-Za-z]{2}", word)]
    return list(dict.fromkeys(re.sub(r"\s+", " ", word) for word in (*heads, *axis, *lines, *bars) if word))
