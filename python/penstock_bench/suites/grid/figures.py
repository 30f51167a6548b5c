"""The figures: bandwidth by path, bandwidth against request size, CPU seconds per GB. Medians; whiskers are their
95 % intervals.

Each function takes rows of a results file and returns a matplotlib Figure, or None when the rows do not hold what it
shows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.numbers import padded_figures, size_label
from penstock_bench.engine.results import median_cpu, median_rate
from penstock_bench.engine.suite import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Key = tuple[str, str, str]  # direction, cache, path
WIDTH_IN = 5.6  # narrow, so that letters stay legible on a phone
STATES = ("hot", "cold", "direct")
STATE_WORDS = {"hot": "in page cache", "cold": "not in page cache", "direct": "page cache bypassed"}


def bandwidth_by_path(rows: Rows) -> Figure | None:
    groups = whole_file(rows)
    if not groups:
        return None
    ceilings = {
        way: median_rate(row for row in rows if row["kind"] == "ceiling" and row["direction"] == way)
        for way in ("read", "write")
    }
    figure, panels = _panels(groups)
    top = max(
        [row["bytes_per_second"] for group in groups.values() for row in group] + [c or 0.0 for c in ceilings.values()]
    )
    for axes, way in panels:
        keys = ordered(groups, way)
        values = [(median_rate(groups[key]) or 0.0) / 1e9 for key in keys]
        spans = [[row["bytes_per_second"] / 1e9 for row in groups[key]] for key in keys]
        _bars(axes, keys, values, spans)
        if ceilings[way]:
            _ceiling(axes, ceilings[way] / 1e9, "pinned copy")
        axes.set_xlim(0, top / 1e9 * 1.12 or 1.0)
        axes.set_title("File to device" if way == "read" else "Device to file")
    last = panels[-1][0]
    last.set_xlabel("\n".join(filter(None, (last.get_xlabel(), "GB/s (median; whiskers: its 95 % interval)"))))
    _state_legend(figure, groups)
    return figure


def cpu_by_path(rows: Rows) -> Figure | None:
    groups = whole_file(rows)
    if not groups:
        return None
    figure, panels = _panels(groups)
    costs = {key: [c for row in group if (c := median_cpu([row])) is not None] for key, group in groups.items()}
    top = max((cost for group in costs.values() for cost in group), default=0.0)
    for axes, way in panels:
        keys = ordered(groups, way)
        _bars(axes, keys, [median_cpu(groups[key]) or 0.0 for key in keys], [costs[key] for key in keys])
        axes.set_xlim(0, top * 1.12 or 1.0)
        axes.set_title("File to device" if way == "read" else "Device to file")
    panels[-1][0].set_xlabel("CPU seconds per GB, user and system (median; less is better)")
    _state_legend(figure, groups)
    return figure


def bandwidth_by_size(rows: Rows) -> Figure | None:
    series = by_request(rows)
    if not series:
        return None
    figure = style.new_figure(WIDTH_IN, 3.9)
    axes = figure.add_subplot()
    for turn, (key, sizes) in enumerate(
        sorted(series.items(), key=lambda pair: (STATES.index(pair[0][1]), pair[0][0]))
    ):
        points = [(size, (median_rate(group) or 0.0) / 1e9) for size, group in sorted(sizes.items())]
        mark = style.PATHS.get(key[0], style.MARKS[turn % 7])
        axes.plot(
            *zip(*points, strict=True),
            color=mark.colour,
            marker=mark.marker,
            markersize=4.5,
            linewidth=1.6,
            linestyle="-" if key[1] == "hot" else "--",
            label=f"{key[0]}, {STATE_WORDS[key[1]]}",
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted({size for sizes in series.values() for size in sizes}))
    axes.xaxis.set_major_formatter(lambda value, _: size_label(value))
    style.no_minor_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis, (1, 2, 5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title("File to device, many requests queued, in random order")
    axes.set_xlabel("bytes of one request")
    axes.set_ylabel("GB/s (median)")
    axes.legend(loc="lower right")
    return figure


def by_request(rows: Rows) -> dict[tuple[str, str], dict[int, Rows]]:
    """Queued reads by path and state, then by size, of those that have several sizes."""
    series: dict[tuple[str, str], dict[int, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["kind"] == "trial" and row["request_bytes"] and row["direction"] == "read" and _plain(row):
            series[row["path"], row["cache"]][row["request_bytes"]].append(row)
    return {key: sizes for key, sizes in series.items() if len(sizes) > 1}


def whole_file(rows: Rows) -> dict[Key, Rows]:
    """Trials of one request for the whole file at the policy's own shape, by direction, state and path."""
    groups: dict[Key, Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "trial" and not row["request_bytes"] and _plain(row):
            groups[row["direction"], row["cache"], row["path"]].append(row)
    return dict(groups)


def _plain(row: dict[str, Any]) -> bool:
    return not row["workers"] and not row["depth"] and row["buffer"] == "device" and row["first_touch"] == "gpu"


def ordered(groups: dict[Key, Rows], way: str) -> list[Key]:
    """The default first, then by state and rate; drawn from the bottom up, hence reversed."""
    keys = [key for key in groups if key[0] == way]
    keys.sort(key=lambda key: (STATES.index(key[1]), key[2] != "auto", -(median_rate(groups[key]) or 0.0)))
    return keys[::-1]


def _panels(groups: dict[Key, Rows]) -> tuple[Figure, list[tuple[Axes, str]]]:
    """One panel a direction, as high as its bars need."""
    ways = [way for way in ("read", "write") if any(key[0] == way for key in groups)]
    counts = [sum(key[0] == way for key in groups) for way in ways]
    figure = style.new_figure(WIDTH_IN, 0.27 * sum(counts) + 0.95 * len(ways) + 0.3)
    panels = figure.subplots(len(ways), 1, squeeze=False, height_ratios=counts)
    return figure, list(zip(panels[:, 0], ways, strict=True))


def _bars(axes: Axes, keys: list[Key], values: list[float], spans: list[list[float]]) -> None:
    places = range(len(keys))
    axes.barh(places, values, height=0.66, color=[style.STATE_COLOURS[key[1]] for key in keys])
    for place, value, span in zip(places, values, spans, strict=True):
        found = estimate(span or [value])
        style.bar_end(axes, place, found, padded_figures(value))
    axes.set_yticks(places, ["auto (default)" if key[2] == "auto" else key[2] for key in keys])
    axes.grid(axis="y", visible=False)
    axes.set_ylim(-0.6, len(keys) - 0.4)


def _ceiling(axes: Axes, value: float, word: str) -> None:
    axes.axvline(value, color=style.INK, linewidth=1.1, linestyle=(0, (4, 3)))
    axes.set_xlabel(f"dashed: {word} {padded_figures(value)}", fontsize=8.5)


def _state_legend(figure: Figure, groups: dict[Key, Rows]) -> None:
    present = [state for state in STATES if any(key[1] == state for key in groups)]
    handles = [style.patch(style.STATE_COLOURS[state], STATE_WORDS[state]) for state in present]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), columnspacing=1.2, handlelength=1.4)


def of_whole_file(rows: Rows) -> Rows:
    return [row for group in whole_file(rows).values() for row in group]


def of_bandwidth(rows: Rows) -> Rows:
    return of_whole_file(rows) + [row for row in rows if row["kind"] == "ceiling"]


def of_request_size(rows: Rows) -> Rows:
    return [row for sizes in by_request(rows).values() for group in sizes.values() for row in group]


BANDWIDTH = Drawing(
    "bandwidth",
    "Bandwidth of every path, one request for the whole file, at the settings Penstock chooses by itself.",
    bandwidth_by_path,
    of_bandwidth,
)
REQUEST_SIZE = Drawing(
    "request-size",
    "Bandwidth against request size: where the lines bend is the smallest request worth making.",
    bandwidth_by_size,
    of_request_size,
)
CPU = Drawing(
    "cpu",
    "What a gigabyte costs in CPU time, every thread of the process counted.",
    cpu_by_path,
    of_whole_file,
)
