"""The figures of the suites `io-size` and `multiplicity`: small panels of lines, each labelled where it ends.

Each function takes rows of a results file and returns a matplotlib Figure, or None when the rows do not hold what it
shows. Points are medians. The layout is fixed by hand, so that the place of a label is known when it is set.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock_bench.engine import style
from penstock_bench.engine.suite_tables import differ, grouped as _grouped
from penstock_bench.report.figures import size_label

Rows = list[dict[str, Any]]
Points = list[tuple[float, float]]
PATHS = {name: style.PATHS[name] for name in ("auto", "direct", "uring", "gds", "gds-compat", "plain")}
# Ways of reading by their name without ", callback": label and mark.
CPU_WAYS = {
    "CPU sync": ("threads", style.MARKS[6]),
    "CPU aio": ("aio", style.MARKS[5]),
    "CPU uring": ("uring", style.PATHS["uring"]),
    "CPU uring-buffered": ("uring, hot", style.MARKS[1]),
}
GPU_WAYS = {
    "GPU sync plain": ("plain", style.PATHS["plain"]),
    "GPU sync auto": ("auto", style.PATHS["auto"]),
    "GPU sync gds": ("gds", style.PATHS["gds"]),
    "GPU sync gds-compat": ("gds-compat", style.PATHS["gds-compat"]),
    "GPU batch auto": ("auto, batch", style.PATHS["direct"]),
    "GPU batch gds-batch": ("gds-batch", style.PATHS["buffered"]),
    "GPU stream gds-stream": ("gds-stream", style.PATHS["uring"]),
}
CALLBACK = ", callback"
SAME = {"GPU async auto, callback": "GPU batch auto"}  # drawn as the callback variant of
COPIES = {
    "sync by threads": ("threads", style.MARKS[6]),
    "streams, each waited for": ("streams, each", style.MARKS[0]),
    "streams, waited for at the end": ("streams, at end", style.MARKS[1]),
}
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


def io_size_figure(rows: Rows) -> Figure | None:
    """A row of panels for each number of workers: GiB/s, and the share of all cores. The remote place is dashed."""
    cells = [row for row in rows if row["kind"] == "io-size"]
    if len({row["request_bytes"] for row in cells}) < 2:
        return None
    both = "; dashed: remote" if any(row["place"] == "remote" for row in cells) else ""
    grid = []
    for workers in sorted({row["workers"] for row in cells}):
        mine = [row for row in cells if row["workers"] == workers]
        rate = _io_lines(mine, lambda row: row["bytes_per_second"] / 2**30)
        cost = _io_lines(mine, lambda row: row["cpu_user_percent"] + row["cpu_system_percent"])
        grid.append(
            [
                Panel(f"{workers} workers{both}", rate, size_label, "bytes of one request", "GiB/s"),
                Panel("CPU, all cores", cost, size_label, "bytes of one request", "%", log=False),
            ]
        )
    return _drawn(grid)


def _io_lines(rows: Rows, value: Callable[[dict[str, Any]], float]) -> list[Line]:
    lines = []
    for (path, place), group in _grouped(rows, "path", "place").items():
        local = place == "local"
        points = _medians(group, "request_bytes", value)
        lines.append(Line(points, PATHS.get(path, style.Mark(style.INK, "|")), path if local else "", dashed=not local))
    return lines


def multiplicity_figure(rows: Rows) -> Figure | None:
    """Reads of files: panels by size and by who reads, sequential beside random. Callback variants are dashed."""
    reads = [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "read"]
    if len({row["multiplicity"] for row in reads}) < 2:
        return None
    orders = sorted({row["order"] for row in reads}, reverse=True)
    grid = []
    for size in sorted({row["request_bytes"] for row in reads}):
        for who, ways in (("CPU", CPU_WAYS), ("GPU", GPU_WAYS)):
            panels = []
            for order in orders:
                mine = [row for row in reads if (row["request_bytes"], row["order"]) == (size, order)]
                lines = _ways(mine, ways, lambda row: row["operations_per_second"])
                panels.append(
                    Panel(f"{who}, {size_label(size)}, {order}", lines, _count, "requests at once", "requests/s")
                )
            if any(panel.lines for panel in panels):
                grid.append(panels)
    return _drawn(grid)


def _ways(rows: Rows, ways: dict[str, tuple[str, style.Mark]], value: Callable[[dict[str, Any]], float]) -> list[Line]:
    lines = []
    for (name,), group in _grouped(rows, "way").items():
        called_back = name.endswith(CALLBACK)
        known = ways.get(SAME.get(name, name.removesuffix(CALLBACK)))
        if known is not None:
            label, mark = known
            points = _medians(group, "multiplicity", value)
            lines.append(Line(points, mark, "" if called_back else label, called_back, _apart(group, value)))
    return lines


def copies_figure(rows: Rows) -> Figure | None:
    """Copies: panels by size, one direction beside the other. Pageable memory is dashed."""
    copies = [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "copy"]
    if len({row["multiplicity"] for row in copies}) < 2:
        return None
    grid = []
    for size in sorted({row["request_bytes"] for row in copies}):
        panels = []
        for direction in ("host to device", "device to host"):
            mine = [row for row in copies if (row["request_bytes"], row["order"]) == (size, direction)]
            lines = [
                Line(
                    _medians(group, "multiplicity", _gigabytes),
                    COPIES[way][1],
                    COPIES[way][0] if memory == "page-locked" else "",
                    memory != "page-locked",
                    _apart(group, _gigabytes),
                )
                for (way, memory), group in _grouped(mine, "way", "buffer").items()
            ]
            panels.append(Panel(f"{direction}, {size_label(size)}", lines, _count, "copies at once", "GB/s"))
        grid.append(panels)
    return _drawn(grid)


def _gigabytes(row: dict[str, Any]) -> float:
    return float(row["bytes_per_second"]) / 1e9


def _apart(rows: Rows, value: Callable[[dict[str, Any]], float]) -> frozenset[float]:
    return frozenset(x for (x,), group in _grouped(rows, "multiplicity").items() if differ(map(value, group)))


def _medians(rows: Rows, axis: str, value: Callable[[dict[str, Any]], float]) -> Points:
    return [(x, statistics.median(value(row) for row in group)) for (x,), group in _grouped(rows, axis).items()]


def _count(value: float) -> str:
    return f"{value:g}"


def _drawn(grid: list[list[Panel]]) -> Figure:
    """Panels of one size in a fixed place each, with room for labels at the right of each. Panels of a row share what
    their y axis spans when they share its unit."""
    columns = max(len(row) for row in grid)
    width = columns * (LEFT_IN + PANEL_IN[0] + LABELS_IN)
    height = len(grid) * (PANEL_IN[1] + BETWEEN_IN) + TOP_IN + BOTTOM_IN - BETWEEN_IN
    figure = Figure(figsize=(width, height))
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
        axes.yaxis.set_major_locator(LogLocator(subs=marks))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    else:
        axes.set_ylim(0, span[1] * 1.12)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
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
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: panel.ticks(value)))
    axes.xaxis.set_minor_locator(NullLocator())
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
