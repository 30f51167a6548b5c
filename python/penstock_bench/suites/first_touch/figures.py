"""The figure of the suite `first-touch`: bandwidth against problem size, in four panels: read and write, memory first
touched by the GPU and by the CPU. Lines are paths on raw files; dashed, the default path on files of formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.cells import durable_rate
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.suite import Drawing
from penstock_bench.suites.first_touch import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Line = tuple[str, str, str]  # path, format, cache
WIDTH_IN = 6.2
PANELS = (("read", "gpu"), ("read", "cpu"), ("write", "gpu"), ("write", "cpu"))
MEMORY = {"gpu": "device", "cpu": "managed"}  # whose lines a panel shows
TITLES = {"gpu": "device memory (GPU first)", "cpu": "managed memory (CPU first)"}
ENGINE = "engine alone, nothing moved"
PATHS = ("auto", "buffered", "direct", "gds-compat", "gds")
FORMATS = {"hdf5": ("--", "x", "HDF5"), "netcdf4": (":", "+", "netCDF-4"), "netcdf3": ("-.", "1", "netCDF-3")}


def by_problem_size(rows: Rows) -> Figure | None:
    """None when no line has two sizes."""
    lines = {panel: _lines(rows, *panel) for panel in PANELS}
    if not any(lines.values()):
        return None
    figure = style.new_figure(WIDTH_IN, 6.4)
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    handles: dict[str, Any] = {}
    for axes, (direction, touch) in zip(grid.flat, PANELS, strict=True):
        _engine(axes, rows, direction, handles)
        for line, points in sorted(lines[direction, touch].items(), key=_place):
            handles.setdefault(_label(line), _draw(axes, line, points))
        _frame(axes, f"{direction.capitalize()}, {TITLES[touch]}", empty=not lines[direction, touch])
    for axes in grid[1]:
        axes.set_xlabel("particles of 36 bytes")
    for axes, label in zip(grid[:, 0], ("GB/s (median)", "GB/s with fsync (median)"), strict=True):
        axes.set_ylabel(label)
    names = sorted(handles, key=_order)
    figure.legend([handles[name] for name in names], names, loc="outside upper left", ncols=3, fontsize=8.5)
    return figure


def _lines(rows: Rows, direction: str, touch: str) -> dict[Line, list[tuple[int, float]]]:
    """Rates in GB/s by particles; of writes with fsync."""
    found: dict[Line, list[tuple[int, float]]] = {}
    for key, group in table.groups(rows).items():
        particles, way, first, _, format, path, cache, _, _ = key
        if (way, first) == (direction, touch) and is_drawn(group[0]):
            rate = durable_rate(group) if way == "write" else median_rate(group)
            found.setdefault((path, format, cache), []).append((particles, (rate or 0.0) / 1e9))
    return {line: points for line, points in found.items() if len(points) > 1}


def is_drawn(row: dict[str, Any]) -> bool:
    """A row of the suite that a panel shows: at the policy's own shape, in the memory of the panel."""
    return row["buffer"] == MEMORY[row["first_touch"]] and not row["chunk_bytes"] and not row["workers"]


def _place(entry: tuple[Line, Any]) -> tuple[int, int, str]:
    path, format, cache = entry[0]
    order = PATHS.index(path) if path in PATHS else len(PATHS)
    return (format != "raw"), order, cache


def _label(line: Line) -> str:
    path, format, cache = line
    if format != "raw":
        return f"auto, {FORMATS[format][2]}" if path == "auto" else f"{path}, {FORMATS[format][2]}"
    return path + ", not in page cache" * (cache == "cold")


def _order(label: str) -> tuple[bool, bool, str]:
    return label == ENGINE, "-4" in label or "HDF5" in label, label


def _draw(axes: Axes, line: Line, points: list[tuple[int, float]]) -> Any:
    path, format, cache = line
    known = style.PATHS.get(path, style.Mark(style.FAINT, "|"))
    colour = known.colour
    dash, marker, _ = FORMATS.get(format, ("-", known.marker, ""))
    (drawn,) = axes.plot(
        *zip(*points, strict=True),
        color=colour,
        linestyle=dash,
        marker=marker,
        markersize=4,
        linewidth=1.4,
        markerfacecolor="white" if cache == "cold" and format == "raw" else colour,
    )
    return drawn


def _engine(axes: Axes, rows: Rows, direction: str, handles: dict[str, Any]) -> None:
    rates = table.engine_rates(rows)
    points = sorted((particles, rate / 1e9) for (way, particles), rate in rates.items() if way == direction)
    if len(points) > 1:
        (drawn,) = axes.plot(*zip(*points, strict=True), color=style.FAINT, linewidth=1, linestyle=(0, (1, 2)))
        handles.setdefault(ENGINE, drawn)


def _frame(axes: Axes, title: str, empty: bool) -> None:
    axes.set_title(title, fontsize=9.5, pad=6)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    style.log_ticks(axes.xaxis, base=16)
    axes.xaxis.set_major_formatter(lambda value, _: table.count_text(int(value)))
    style.log_ticks(axes.yaxis, (1, 3))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.tick_params(labelsize=8.5)
    if empty:
        axes.text(0.5, 0.5, "not measured here", transform=axes.transAxes, ha="center", color=style.FAINT)


def drawn_rows(rows: Rows) -> Rows:
    drawn = [row for row in rows if row["kind"] == "first-touch" and is_drawn(row)]
    return drawn + [row for row in rows if row["kind"] == "engine" and "particles" in row]


FIGURE = Drawing(
    "first-touch",
    "Bandwidth against problem size: device memory, which the GPU touched first, and managed memory, which the"
    " CPU touched first. Filled marks: in the page cache, or new files. Writes are counted with fsync.",
    by_problem_size,
    drawn_rows,
)
