"""The figure of files of all ranks: how fast they are written, by the number of ranks and by what writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.simulation.ranks.cases import HISTORY, SNAPSHOT, WAYS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
COLOURS = dict(
    zip(WAYS, ((style.BLUE, ""), (style.SKY, "\\\\"), (style.ORANGE, "//"), (style.AMBER, "..")), strict=True)
)
BROAD = 0.8  # of all bars of a number of ranks


def samples(rows: Rows) -> Rows:
    return [row for row in rows if row.get("file_kind") in (HISTORY, SNAPSHOT)]


def figure(rows: Rows) -> Figure | None:
    """A panel a file, a group of bars a number of ranks."""
    mine = samples(rows)
    kinds = [kind for kind in (HISTORY, SNAPSHOT) if any(row["file_kind"] == kind for row in mine)]
    counts = sorted({row["ranks"] for row in mine})
    if not kinds or len({row["by"] for row in mine}) < 2:
        return None
    made = style.new_figure(7.2, 3.0)
    panels = made.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        for turn, way in enumerate(WAYS):
            colour, hatch = COLOURS[way]
            for place, ranks in enumerate(counts):
                here = {"file_kind": kind, "ranks": ranks, "by": way}
                rate = median_rate([row for row in mine if here.items() <= row.items()])
                if rate is None:
                    continue
                label = way if way not in axes.get_legend_handles_labels()[1] else None
                left = place + (turn - (len(WAYS) - 1) / 2) * BROAD / len(WAYS)
                bar = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": label}
                axes.bar(left, rate / 1e9, BROAD / len(WAYS), **bar)
                axes.text(left, rate / 1e9, f"{rate / 1e9:.1f}", ha="center", va="bottom", fontsize=8.5)
        axes.set_title(f"one {kind} file")
        axes.set_xticks(range(len(counts)), [f"{count} rank{'s' * (count > 1)}" for count in counts])
        axes.grid(axis="x", visible=False)
    panels[0].set_ylabel("GB/s of all ranks")
    made.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return made


FIGURE = Drawing(
    "simulation-ranks",
    "One file that all ranks of an MPI program write, in the page cache: GB/s of all ranks together, by the number of "
    "ranks, beside parallel HDF5 with the same layout.",
    figure,
    samples,
)
