"""Figures of small panels of lines, each labelled where it ends.

Points are medians. The layout is fixed by hand, so that the place of a label is known when it is set.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.table_parts import differ, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Points = list[tuple[float, float]]
LABEL_PT = 8.0
LINE_PT = 9.6  # from one label to the next
PANEL_IN = (1.95, 1.55)
LABELS_IN = 0.98  # right of each panel
LEFT_IN, TOP_IN, BOTTOM_IN, BETWEEN_IN = 0.55, 0.34, 0.46, 0.5


LEADER: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
# Which multiples of powers of ten are marked, by how many decades an axis spans.
TICKS = ((0.7, (1, 1.5, 2, 3, 5, 7)), (1.2, (1, 2, 5)), (2.5, (1, 3)), (math.inf, (1,)))


@dataclass(frozen=True)
class Line:
    """What is drawn in a panel. Without a label it is known by another line of its mark."""

    points: Points
    mark: style.Mark
    label: str
    dashed: bool = False
    apart: frozenset[float] = frozenset()  # where samples are so far apart that the median says little


@dataclass(frozen=True)
class Panel:
    """One panel: its lines and what its axes mean."""

    title: str
    lines: list[Line]
    ticks: Callable[[float], str]
    xlabel: str = ""
    ylabel: str = ""
    log: bool = True


def apart(rows: Rows, value: Callable[[dict[str, Any]], float]) -> frozenset[float]:
    return frozenset(x for (x,), group in grouped(rows, "multiplicity").items() if differ(map(value, group)))


def medians(rows: Rows, axis: str, value: Callable[[dict[str, Any]], float]) -> Points:
    return [(x, statistics.median(value(row) for row in group)) for (x,), group in grouped(rows, axis).items()]


def count_text(value: float) -> str:
    return f"{value:g}"


def drawn(grid: list[list[Panel]]) -> Figure:
    """Panels of one size in a fixed place each, with room for labels at the right of each. Panels of a row share what
    their y axis spans when they share its unit."""
    columns = max(len(row) for row in grid)
    width = columns * (LEFT_IN + PANEL_IN[0] + LABELS_IN)
    height = len(grid) * (PANEL_IN[1] + BETWEEN_IN) + TOP_IN + BOTTOM_IN - BETWEEN_IN
    figure = style.new_figure(width, height, placed_by_hand=True)
    for turn, row in enumerate(grid):
        bottom = height - TOP_IN - PANEL_IN[1] - turn * (PANEL_IN[1] + BETWEEN_IN)
        shared = len({panel.ylabel for panel in row}) == 1
        spans = [_span([line for panel in row for line in panel.lines])] * len(row) if shared else [None] * len(row)
        for place, (panel, span) in enumerate(zip(row, spans, strict=True)):
            left = place * (LEFT_IN + PANEL_IN[0] + LABELS_IN) + LEFT_IN
            box = (left / width, bottom / height, PANEL_IN[0] / width, PANEL_IN[1] / height)
            axes = figure.add_axes(box)
            _fill(axes, panel, span or _span(panel.lines))
            if turn + 1 == len(grid):
                axes.set_xlabel(panel.xlabel, fontsize=8.5)
    return figure


def _span(lines: list[Line]) -> tuple[float, float]:
    values = [y for line in lines for _, y in line.points if y > 0]
    return (min(values), max(values)) if values else (1.0, 1.0)


def _fill(axes: Axes, panel: Panel, span: tuple[float, float]) -> None:
    axes.set_title(panel.title, fontsize=9, pad=5)
    axes.set_ylabel(panel.ylabel, fontsize=8.5, labelpad=2)
    axes.tick_params(labelsize=8, pad=2)
    axes.set_xscale("log", base=2)
    if panel.log:
        axes.set_yscale("log")
        axes.set_ylim(span[0] / 1.35, span[1] * 1.35)
        decades = math.log10(span[1] / span[0])
        marks = next(marks for most, marks in TICKS if decades <= most)
        style.log_ticks(axes.yaxis, marks)
        axes.yaxis.set_major_formatter(lambda value, _: _short(value))
    else:
        axes.set_ylim(0, span[1] * 1.12)
        style.few_ticks(axes.yaxis, 5, whole=True)
    if not panel.lines:
        axes.text(0.5, 0.5, "not measured here", transform=axes.transAxes, ha="center", color=style.FAINT, fontsize=9)
        return
    for line in panel.lines:
        drawn: dict[str, Any] = {"color": line.mark.colour, "marker": line.mark.marker, "linewidth": 1.3}
        drawn |= {"linestyle": (0, (3.5, 2)) if line.dashed else "-", "markersize": 3.6}
        axes.plot(*zip(*line.points, strict=True), **drawn)
        hollow = [point for point in line.points if point[0] in line.apart]
        if hollow:
            xs, ys = zip(*hollow, strict=True)
            hole = {"color": "white", "edgecolors": line.mark.colour, "marker": line.mark.marker}
            axes.scatter(xs, ys, s=22, linewidths=1, zorder=3, **hole)
    places = sorted({x for line in panel.lines for x, _ in line.points})
    axes.set_xticks(places[:: math.ceil(len(places) / 4)])
    axes.xaxis.set_major_formatter(lambda value, _: panel.ticks(value))
    style.no_minor_ticks(axes.xaxis)
    _label_ends(axes, [line for line in panel.lines if line.label])


def _short(value: float) -> str:
    """Axis labels: 0.2, 50, 10 k, 2 M."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g}"


def _label_ends(axes: Axes, lines: list[Line]) -> None:
    """Each label at the height of its line's end, or as near as its neighbours let it be; a thin line leads there."""
    height_pt = PANEL_IN[1] * 72
    scale = axes.transData + axes.transAxes.inverted()
    ends = sorted(((scale.transform(line.points[-1])[1], line) for line in lines), key=lambda pair: pair[0])
    heights = _spread([end * height_pt for end, _ in ends], height_pt)
    for (_, line), height in zip(ends, heights, strict=True):
        axes.annotate(
            line.label,
            line.points[-1],
            xytext=(1.07, height / height_pt),
            textcoords="axes fraction",
            va="center",
            fontsize=LABEL_PT,
            color=style.INK,
            arrowprops={
                "arrowstyle": "-",
                "color": line.mark.colour,
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def _spread(heights: list[float], room: float) -> list[float]:
    """Ascending heights moved apart to LINE_PT as little as possible: groups that touch are spread about their mean."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _low(groups[-1]) < _high(groups[-2]) + LINE_PT:
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = [_low(group) + turn * LINE_PT for group in groups for turn in range(len(group))]
    over = max(0.0, placed[-1] - room) if placed else 0.0
    return [height - over for height in placed]


def _low(group: list[float]) -> float:
    return statistics.mean(group) - (len(group) - 1) * LINE_PT / 2


def _high(group: list[float]) -> float:
    return statistics.mean(group) + (len(group) - 1) * LINE_PT / 2
