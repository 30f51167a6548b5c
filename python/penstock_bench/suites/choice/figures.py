"""The figure of the suite `choice`: how near each way of choosing comes to the fastest path, over the request size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.choice import judge

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
SHOWN = {  # way -> (label, colour, marker, width)
    judge.CHOSEN: ("measured choice", style.HOT, "o", 2.4),
    "direct from 16 KiB on": ("direct from 16 KiB on", style.SKY, "s", 1.4),
    "direct from 1 MiB on": ("direct from 1 MiB on", style.BLUE, "^", 1.4),
    "always buffered": ("always buffered", style.GREY, "D", 1.2),
    "KvikIO default": ("KvikIO default", style.GREEN, "v", 1.4),
}
PANELS = (("read", "hot"), ("read", "cold"), ("write", "hot"), ("write", "cold"))
STATE = {"hot": "in the page cache", "cold": "not in the page cache"}


def choice_figure(rows: Rows) -> Figure | None:
    """Four panels, read and write over hot and cold files; None without rows of the suite."""
    found = [one for one in judge.qualities(rows) if one.way in SHOWN]
    if not found:
        return None
    figure = style.new_figure(7.2, 6.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).flatten()
    for axes, (direction, cache) in zip(panels, PANELS, strict=True):
        for one in reversed(found):  # the measured choice on top
            points = {cell[2]: value for cell, value in one.by_cell.items() if cell[:2] == (direction, cache)}
            _line(axes, one.way, points)
        axes.set_title(f"{direction.capitalize()}, {STATE[cache]}", fontsize=10)
        _scales(axes)
    for axes in panels[2:]:
        axes.set_xlabel("bytes of the request")
    for axes in panels[::2]:
        axes.set_ylabel("speed / fastest path")
    handles, labels = panels[0].get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda turn: [entry[0] for entry in SHOWN.values()].index(labels[turn]))
    figure.legend([handles[i] for i in order], [labels[i] for i in order], loc="outside lower center", ncols=3)
    return figure


def _line(axes: Axes, way: str, points: dict[int, float]) -> None:
    label, colour, marker, width = SHOWN[way]
    sizes = sorted(points)
    values = [min(points[size], 1.0) for size in sizes]
    axes.plot(sizes, values, color=colour, marker=marker, markersize=4, linewidth=width, label=label)


def _scales(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.06)
    axes.axhline(1.0, color=style.FAINT, linewidth=0.8)
    axes.axhline(judge.WITHIN, color=style.FAINT, linewidth=0.8, linestyle=(0, (3, 3)))
    axes.set_xticks([1 << power for power in range(12, 33, 4)])
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    style.no_minor_ticks(axes.xaxis)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])


def _short(value: float) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def samples(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "choice"]


FIGURE = Drawing(
    "choice",
    "How near each way of choosing comes to the fastest path, by request size. 1 is the fastest measured. "
    "Writes end when the call returns, without fsync.",
    choice_figure,
    samples,
)
