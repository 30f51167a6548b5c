"""The figure of the suite `simulation`: how long a step takes, by way, and what of it is the model's."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.simulation.measure import KIND
from penstock_bench.suites.simulation.ways import WAYS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
PARTS = (("compute", style.GREY, ""), ("stall", style.ORANGE, "//"), ("wait for a slot", style.AMBER, ".."))
REST = ("begin and end of the run", style.SKY, "")
BESIDE = ("written beside the model", style.BLUE, "")


def samples(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == KIND and row["name"] in WAYS]


def figure(rows: Rows) -> Figure | None:
    """A bar a way: medians of milliseconds a step. Below it, from where the step is computed on, what a thread writes
    of it while the model goes on."""
    mine = samples(rows)
    ways = [way for way in WAYS if any(row["name"] == way for row in mine)]
    if len(ways) < 2:
        return None
    made = style.new_figure(7.2, 0.42 * len(ways) + 1.2)
    axes = made.subplots()
    for place, way in enumerate(reversed(ways)):
        group = [row for row in mine if row["name"] == way]
        parts = [_median(group, part) for part in ("compute_ms", "stall_ms", "wait_ms")]
        whole = statistics.median(row["seconds"] * 1e3 / row["steps"] for row in group)
        left = 0.0
        written = [row["write_ms"] for row in group if "write_ms" in row]
        if written:
            name, colour, hatch = BESIDE
            label = None if any(text == name for text in axes.get_legend_handles_labels()[1]) else name
            below = {"left": parts[0], "color": colour, "hatch": hatch, "height": 0.14, "label": label}
            axes.barh(place - 0.41, statistics.median(written), **below)
        shown = zip([*parts, max(0.0, whole - sum(parts))], [*PARTS, REST], strict=True)
        for width, (name, colour, hatch) in shown:
            label = name if place == 0 else None
            axes.barh(place, width, left=left, color=colour, hatch=hatch, edgecolor="white", label=label, height=0.66)
            left += width
        axes.text(left, place, f"  {left:.0f}", va="center", fontsize=9, color=style.INK)
    axes.set_yticks(range(len(ways)), reversed(ways))
    axes.set_xlabel("milliseconds of a step")
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.1)
    made.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)
    return made


def _median(group: Rows, part: str) -> float:
    return float(statistics.median(row[part] for row in group))


FIGURE = Drawing(
    "simulation-step",
    "A flow model that writes its fields each step: milliseconds of a step, by way of writing. Stall is the time that "
    "the model stands still in calls of output. The thin bar is what a thread writes while the next step is computed.",
    figure,
    samples,
)
