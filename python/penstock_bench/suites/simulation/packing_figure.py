"""The figure of compressed histories: what a core packs in a second, and how large the file is."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.simulation.packing import WAYS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
OURS, THEIRS = style.Mark(style.BLUE, "o"), style.Mark(style.ORANGE, "s")


def samples(rows: Rows) -> Rows:
    return [row for row in rows if "codec" in row]


def figure(rows: Rows) -> Figure | None:
    """A panel for each kind of values, a point a codec and level."""
    mine = samples(rows)
    kinds = list(dict.fromkeys(row["values"] for row in mine))
    if not kinds:
        return None
    made = style.new_figure(7.2, 3.2)
    panels = made.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        _panel(axes, [row for row in mine if row["values"] == kind])
        axes.set_title(f"values {kind}")
        axes.set_xlabel("MB that a core packs in a second")
    panels[0].set_ylabel("file / bytes in memory")
    made.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return made


def _panel(axes: Axes, rows: Rows) -> None:
    for way in WAYS:
        group = [row for row in rows if row["codec"] == way]
        if not group:
            continue
        is_ours = way.startswith("history")
        mark, name = (OURS, "history") if is_ours else (THEIRS, "netCDF4-python")
        rate = statistics.median(row["core_bytes_per_second"] for row in group) / 1e6
        share = statistics.median(row["file_share"] for row in group)
        label = name if name not in axes.get_legend_handles_labels()[1] else None
        axes.plot(rate, share, mark.marker, color=mark.colour, markersize=6, label=label)
        place = {"xytext": (6, 4), "textcoords": "offset points", "fontsize": 8.5}
        axes.annotate(way.partition(", ")[2], (rate, share), **place)
    axes.set_xscale("log")
    axes.margins(x=0.25, y=0.18)


FIGURE = Drawing(
    "simulation-packing",
    "Compressed histories beside netCDF4-python: MB of float32 that a core packs in a second, and bytes of the file "
    "for each byte. Further right is faster, further down is smaller.",
    figure,
    samples,
)
