"""The figures of the suite `gpu-io`: requests by threads a block, how long they take, and rates beside ceilings.

Each function takes rows of a results file and returns a matplotlib Figure, or None when the rows do not hold what it
shows. Medians.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.numbers import thousands, three_figures
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.gpu_io import judge
from penstock_bench.suites.gpu_io.own import LARGE, SMALL, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
RINGS = {0: ("a ring for each warp", style.HOT, "o"), 1: ("one ring", style.DIRECT, "s")}
CEILINGS = {  # name in the results -> label, colour, dash
    name_of(judge.LOCKED, (SMALL, False)): ("page-locked memory", style.INK, (0, (4, 3))),
    name_of(judge.REGISTERED, (SMALL, False)): ("registered file", style.FAINT, (0, (1, 2))),
}
PEER = "#b8b8b8"
DISK = (
    "Disk, random 4 KiB, a second",
    "Disk, sequential 128 KiB, GB/s",
    "Writes of 4 KiB, GB/s",
    "Writes of 128 KiB, GB/s",
)
ALONE = "one request alone, not checked"
# Panels of rates: title, and bars: name in the results, label, whether the device makes the requests through Penstock.
Bar = tuple[str, str, bool]


def of_blocks(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "gpu-io" and row["subject"] == "blocks"]


def of_rings(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "gpu-io" and row["subject"] == "rings"]


def of_ceilings(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "gpu-io" and row["name"] in CEILINGS]


def of_blocks_figure(rows: Rows) -> Rows:
    return of_blocks(rows) + of_rings(rows) + of_ceilings(rows)


def of_latency(rows: Rows) -> Rows:
    shown = [row for row in of_blocks(rows) if row["rings"] == 0]
    alone = [row for row in rows if row["kind"] == "gpu-io" and row["name"] == ALONE]
    return [row for row in shown + alone if "latency_cycles" in row]


def of_rates(rows: Rows) -> Rows:
    names = {name for _, _, bars in _panels(rows) for name, _, _ in bars}
    return [row for row in rows if row["kind"] == "gpu-io" and row["name"] in names]


def blocks_figure(rows: Rows) -> Figure | None:
    """Left how many a second, then how long one takes, both against threads a block; how many a second by rings."""
    cells, counts = of_blocks(rows), sorted({row["rings"] for row in of_rings(rows)})
    places = sorted({row["threads"] for row in cells})
    if len(places) < 2:
        return None
    figure = style.new_figure(10.2 if counts else 7.2, 3.5)
    rates, times, *more = figure.subplots(1, 3 if counts else 2)
    for axes in more:
        _rings_panel(axes, of_rings(rows), counts)
    for rings, (label, colour, marker) in RINGS.items():
        mine = [row for row in cells if row["rings"] == rings]
        drawn = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.6}
        rates.plot(*_line(mine, places, lambda row: row["operations_per_second"] / 1e6), label=label, **drawn)
        times.plot(*_line(mine, places, lambda row: row["p50_us"]), **drawn)
        times.plot(*_line(mine, places, lambda row: row["p99_us"]), linestyle=(0, (3.5, 2)), **drawn)
    for name, (label, colour, dash) in CEILINGS.items():
        group = [row["operations_per_second"] / 1e6 for row in of_ceilings(rows) if row["name"] == name]
        if group:
            rates.axhline(statistics.median(group), color=colour, linewidth=1.1, linestyle=dash, label=label)
    rates.set_title("Requests, millions a second")
    times.set_title("Time of one request")
    times.set_ylabel("microseconds: median, dashed p99", fontsize=9)
    clock = statistics.median(row["cycles_per_ns"] for row in cells if "cycles_per_ns" in row)
    cycles = times.secondary_yaxis("right", functions=(lambda us: us * clock, lambda kilo: kilo / clock))
    cycles.set_ylabel("thousand cycles", fontsize=9)
    cycles.tick_params(labelsize=9)
    for axes in (rates, times):
        axes.set_ylim(0, None)
        axes.set_xticks(range(len(places)), [str(place) for place in places])
        axes.tick_params(labelsize=9)
        axes.set_xlabel("threads a block")
    handles, labels = rates.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _rings_panel(axes: Axes, rows: Rows, counts: list[int]) -> None:
    """The same warps by the number of places where they begin to look for a slot."""
    rates = [
        statistics.median(row["operations_per_second"] / 1e6 for row in rows if row["rings"] == count)
        for count in counts
    ]
    axes.plot(range(len(counts)), rates, color=style.HOT, marker="o", markersize=4, linewidth=1.6)
    axes.set_title("Requests by rings, millions")
    axes.set_ylim(0, None)
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    axes.tick_params(labelsize=9)
    axes.set_xlabel(f"rings, {rows[0]['threads']} threads a block")


def _line(rows: Rows, places: list[int], value: Callable[[dict[str, Any]], float]) -> tuple[list[int], list[float]]:
    """Medians, at the number that a place has among all."""
    groups: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        groups[places.index(row["threads"])].append(value(row))
    return sorted(groups), [statistics.median(groups[place]) for place in sorted(groups)]


def latency_figure(rows: Rows) -> Figure | None:
    """The share of requests that took no longer, over cycles of the device's clock."""
    found = of_latency(rows)
    if not found:
        return None
    figure = style.new_figure(7.2, 3.7)
    axes = figure.add_subplot()
    groups: dict[str, Rows] = defaultdict(list)
    for row in found:
        groups["one request alone" if row["name"] == ALONE else f"{row['threads']}"].append(row)
    ordered = sorted(groups, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0))
    for turn, name in enumerate(ordered):
        axes.plot(*_shares(groups[name]), label=name, linewidth=1.5, **_look(turn, alone=not name.isdigit()))
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("cycles of the device's clock")
    axes.set_ylabel("share of requests")
    clock = statistics.median(row["cycles_per_ns"] for row in found) * 1e3
    above = axes.secondary_xaxis("top", functions=(lambda cycles: cycles / clock, lambda us: us * clock))
    above.set_xlabel("microseconds")
    above.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    figure.legend(*axes.get_legend_handles_labels(), title="threads a block", loc="outside right")
    return figure


def _look(turn: int, alone: bool) -> dict[str, Any]:
    """Lines that lie on each other: the marks of each begin at another place, and each second line is dashed."""
    if alone:
        return {"color": style.INK, "linestyle": (0, (3, 2))}
    mark = style.MARKS[turn % len(style.MARKS)]
    dash = "-" if turn % 2 == 0 else (0, (6, 2))
    known: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "linestyle": dash}
    return known | {"markersize": 5, "markevery": (0.02 * turn, 0.14)}


def _shares(rows: Rows) -> tuple[list[float], list[float]]:
    counts: dict[float, int] = defaultdict(int)
    for row in rows:
        for low, many in row["latency_cycles"]:
            counts[max(low, 1)] += many
    whole, so_far, shares = sum(counts.values()), 0, []
    for low in sorted(counts):
        so_far += counts[low]
        shares.append(so_far / whole)
    return sorted(counts), shares


def rates_figure(rows: Rows) -> Figure | None:
    """Bars in panels, each with a scale of its own: memory on the left, the disk on the right."""
    panels = _panels(rows)
    if not panels:
        return None
    columns = [[one for one in panels if one[0] in DISK], [one for one in panels if one[0] not in DISK]]
    columns = [column for column in columns[::-1] if column]
    tallest = max(sum(len(bars) + 2.6 for _, _, bars in column) for column in columns)
    figure = style.new_figure(4.9 * len(columns), 0.25 * tallest + 0.3)
    cells = _by_name(rows)
    for part, column in zip(figure.subfigures(1, len(columns), squeeze=False)[0], columns, strict=True):
        counts = [len(bars) + 0.2 for _, _, bars in column]
        axes = part.subplots(len(column), 1, squeeze=False, height_ratios=counts)[:, 0]
        for one, (title, field, bars) in zip(axes, column, strict=True):
            _bars(one, [(label, [row[field] for row in cells[name]], ours) for name, label, ours in bars[::-1]], field)
            one.set_title(title, fontsize=10, pad=5)
    handles = [style.patch(style.HOT, "the device, by Penstock"), style.patch(PEER, "ceilings and others")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, columnspacing=1.2, handlelength=1.4)
    return figure


def requests_figure(rows: Rows) -> Figure | None:
    """One panel, one scale: random 4 KiB a second that the device asks for itself, beside what others bring."""
    small, each = (SMALL, False), "operations_per_second"
    named: list[Bar] = [
        (f"{judge.IN_MEMORY}, 12 service threads", "file in memory, 12 host threads serve", True),
        (name_of(judge.REGISTERED, small), "file in memory, registered", True),
        (name_of(judge.LOCKED, small), "page-locked memory", False),
        ("cached file, 4 KiB", "cached file of a disk, 12 host threads serve", True),
        ("pread and copy, 4 KiB", "cached file, host threads with pread and copies", False),
        ("cuFile compat, 4 KiB", "cached file, host threads with cuFile, compatibility", False),
    ]
    cells = _by_name(rows)
    bars = [(label, [row[each] for row in cells[name]], ours) for name, label, ours in named[::-1] if name in cells]
    if not bars:
        return None
    figure = style.new_figure(7.2, 2.7)
    axes = figure.add_subplot()
    _bars(axes, bars, each)
    axes.set_xlabel("random 4 KiB a second (median; whiskers: its 95 % interval)")
    handles = [style.patch(style.HOT, "the device, by Penstock"), style.patch(PEER, "ceilings and others")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, columnspacing=1.2, handlelength=1.4)
    return figure


def _by_name(rows: Rows) -> dict[str, Rows]:
    cells: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "gpu-io":
            cells[row["name"]].append(row)
    return cells


def _panels(rows: Rows) -> list[tuple[str, str, list[Bar]]]:
    """Title, field of the rows, and bars; only what was measured."""
    cells, small, large = _by_name(rows), (SMALL, False), (LARGE, True)
    each, rate = "operations_per_second", "bytes_per_second"
    by_threads = sorted(
        (cells[name][0]["service_threads"], name) for name in cells if name.startswith(f"{judge.IN_MEMORY}, ")
    )
    memory: list[Bar] = [
        (name, f"{count} host thread{'s serve' if count != 1 else ' serves'}", True) for count, name in by_threads
    ]
    memory.append((name_of(judge.REGISTERED, small), "registered file", True))
    memory.append((name_of(judge.LOCKED, small), "page-locked memory", False))
    stream: list[Bar] = [
        (judge.STREAMED, "host threads serve", True),
        (name_of(judge.REGISTERED, large), "registered file", True),
        (name_of(judge.LOCKED, large), "page-locked memory", False),
    ]
    hot: list[Bar] = [
        ("cached file, 4 KiB", "the device", True),
        ("pread and copy, 4 KiB", "threads, pread and copy", False),
        ("cuFile compat, 4 KiB", "threads, cuFile compat", False),
    ]
    loads: list[Bar] = [
        (f"{what}, {how}", f"{what}, {how}", how == "all hits")
        for what in ("element loads", "tiles")
        for how in ("all hits", "plain memory")
    ]
    gathers: list[Bar] = [
        ("rows gathered", "page cache of the host", True),
        ("rows gathered from tmpfs", "tmpfs", True),
        ("rows gathered from tmpfs by pages", "tmpfs, by pages", True),
        ("rows by numpy.memmap and copy", "numpy.memmap, then copy", False),
        ("rows by cuFile compat", "threads, cuFile compat", False),
    ]
    named = [
        ("File in memory, random 4 KiB, a second", each, memory),
        ("File in memory, sequential 128 KiB, GB/s", rate, stream),
        ("Page cache, random 4 KiB, a second", each, hot),
        (DISK[0], each, _beside_host("disk", small)),
        (DISK[1], rate, _beside_host("disk", large)),
        *((title, rate, _writes(size)) for title, size in ((DISK[2], SMALL), (DISK[3], LARGE))),
        ("Loads by way of the cache, GB/s", rate, loads),
        ("Random rows of 512 bytes, a second", each, gathers),
    ]
    panels = [(title, field, [bar for bar in bars if bar[0] in cells]) for title, field, bars in named]
    return [panel for panel in panels if panel[2]]


def _beside_host(what: str, request: tuple[int, bool]) -> list[Bar]:
    name = name_of(what, request)
    return [(name, "the device", True), *((f"{name}, {way}", way, False) for way in judge.HOSTS)]


def _writes(size: int) -> list[Bar]:
    bars: list[Bar] = []
    for sequential in (False, True):
        order = "sequential" if sequential else "random"
        bars += [(name, f"{label}, {order}", ours) for name, label, ours in _beside_host("write", (size, sequential))]
    return bars


def _bars(axes: Axes, bars: list[tuple[str, list[float], bool]], field: str) -> None:
    each = field == "operations_per_second"
    for place, (_, values, ours) in enumerate(bars):
        shown = values if each else [value / 1e9 for value in values]
        found = estimate(shown)
        middle = found.median
        axes.barh(place, middle, height=0.66, color=style.HOT if ours else PEER)
        style.whisker(axes, place, found)
        axes.annotate(
            thousands(middle) if each else three_figures(middle),
            (found.high or middle, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox=style.BEHIND_TEXT,
        )
    most = max(max(values) for _, values, _ in bars) / (1 if each else 1e9)
    axes.set_xlim(0, most * 1.22 or 1.0)
    axes.tick_params(labelsize=9)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: thousands(value) if value else "0")
    axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
    axes.grid(axis="y", visible=False)
    axes.set_ylim(-0.6, len(bars) - 0.4)


BLOCKS = Drawing(
    "gpu-io-blocks",
    "Random 4 KiB reads that the device makes of a file in memory, by threads a block at a constant number of "
    "threads: how many a second, and how long one takes. Dashed: what the device reads itself, without a host.",
    blocks_figure,
    of_blocks_figure,
)
LATENCY = Drawing(
    "gpu-io-latency",
    "How long requests of the device take, all rounds together: the share that took no longer, by threads a "
    "block, in cycles of the device's clock (below) and in microseconds (above). Dashed: one request alone.",
    latency_figure,
    of_latency,
)
RATES = Drawing(
    "gpu-io-rates",
    "What the device reaches by itself, beside ceilings and other ways measured in the same rounds (grey). "
    "Medians; whiskers are their 95 % intervals.",
    rates_figure,
    of_rates,
)
