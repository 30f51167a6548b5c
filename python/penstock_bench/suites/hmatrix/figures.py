"""The figures of the suite `hmatrix`: seconds by path and by pinned batches, and best mode beside parity mode.

Each function takes rows of a results file and returns a matplotlib Figure, or None when the rows do not hold what it
shows. Medians; bars are split into reading (starting it and waiting for it) and all else.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.hmatrix.matrices import power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
READ, OTHER = style.DIRECT, "#b8c4d4"
SOURCES = (("cold", "Disk"), ("hot", "Page cache"))


def of_time(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "hmatrix" and row["subject"] in ("path", "pins")]


def of_best(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "hmatrix" and row["subject"] == "best"]


def time_figure(rows: Rows) -> Figure | None:
    """From the disk above, from the page cache below: a panel for each share of memory, one bar a path; and one for
    pinned batches."""
    found = of_time(rows)
    lines = [line for line in (_panels(found, state, source) for state, source in SOURCES) if line]
    if not lines:
        return None
    across = max(len(line) for line in lines)
    heights = [0.27 * max(len(bars) for _, bars in line) + 0.85 for line in lines]
    figure = style.new_figure(3.4 * across + 1.4, sum(heights) + 0.4)
    grid = figure.subplots(len(lines), across, squeeze=False, gridspec_kw={"height_ratios": heights})
    for line, places in zip(lines, grid, strict=True):
        for axes, (title, bars) in zip(places, line, strict=False):
            _draw(axes, bars)
            axes.set_title(title, fontsize=10, pad=5)
            axes.set_xlabel("seconds")
        for axes in places[len(line) :]:
            axes.set_axis_off()
    handles = [style.patch(READ, "reading"), style.patch(OTHER, "all else")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _panels(found: Rows, state: str, source: str) -> list[tuple[str, list[tuple[str, float, float]]]]:
    """(title, bars) of what came from there."""
    mine = [row for row in found if row["cache"] == state]
    panels = []
    for ratio in sorted({row["ratio"] for row in mine if row["subject"] == "path"}):
        paths = [row for row in mine if row["subject"] == "path" and row["ratio"] == ratio]
        bars = _bars(paths, lambda row: row["way"].replace(f", {state}", ""))
        panels.append((f"{source}, memory for {ratio:.0%}", bars))
    pins = [row for row in mine if row["subject"] == "pins"]
    if pins:
        panels.append((f"{source}, gpu, batches pinned", _bars(pins, lambda row: str(row["pinned_batches"]))))
    return panels


def read_figure(rows: Rows) -> Figure | None:
    """Left what is read, in matrices of doubles; right seconds. One pair of bars a tolerance."""
    found = of_best(rows)
    if not found:
        return None
    figure = style.new_figure(7.2, 2.6)
    read, time = figure.subplots(1, 2)
    for axes, field, what in ((read, "matrices_read", "matrices read, as doubles"), (time, "seconds", "seconds")):
        labels, values, colours = [], [], []
        for tolerance in sorted({row["tolerance"] for row in found}):
            for mode, colour in (("parity", READ), ("best", style.HOT)):
                group = [row[field] for row in found if row["tolerance"] == tolerance and row["mode"] == mode]
                if group:
                    labels.append(f"to {power(tolerance)}, {mode}")
                    values.append(statistics.median(group))
                    colours.append(colour)
        places = range(len(values))
        axes.barh(places, values, color=colours, height=0.62)
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.set_xlabel(what)
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, max(values) * 1.18)
        for place, value in zip(places, values, strict=True):
            axes.annotate(f"{value:.3g}", (value, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    return figure


def _bars(rows: Rows, label: Any) -> list[tuple[str, float, float]]:
    """(label, seconds of reading, seconds of all else), by way and by pinned batches."""
    groups: dict[str, Rows] = {}
    for row in sorted(rows, key=lambda row: (row.get("way", ""), row["pinned_batches"])):
        groups.setdefault(label(row), []).append(row)
    return [
        (name, statistics.median(row["read_s"] for row in group), statistics.median(row["other_s"] for row in group))
        for name, group in groups.items()
    ]


def _draw(axes: Axes, bars: list[tuple[str, float, float]]) -> None:
    places = range(len(bars))
    reads, others = [bar[1] for bar in bars], [bar[2] for bar in bars]
    axes.barh(places, reads, color=READ, height=0.66)
    axes.barh(places, others, left=reads, color=OTHER, height=0.66)
    axes.set_xlim(0, 1.2 * max(read + other for _, read, other in bars))
    for place, (_, read, other) in zip(places, bars, strict=True):
        total = read + other
        axes.annotate(f"{total:.2g}", (total, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, [bar[0] for bar in bars])
    axes.invert_yaxis()
    style.few_ticks(axes.xaxis, 4)
    axes.grid(axis="y", visible=False)


TIME = Drawing(
    "hmatrix-time",
    "Seconds of a solver whose matrix is larger than its memory, by how its batches come, and what of it is "
    "reading. Above from the disk, below from the page cache: left by path, in each share of memory; right by "
    "batches that stay in memory.",
    time_figure,
    of_time,
)
BEST = Drawing(
    "hmatrix-read",
    "What a solve reads from storage and how long it takes, from cold files in the same memory: BiCGSTAB on "
    "doubles, as published codes run it, and the default of penstock.hmatrix.",
    read_figure,
    of_best,
)
