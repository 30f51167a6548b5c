"""The figure of the suite `io-size`: bandwidth and CPU of many workers against the size of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.numbers import size_label
from penstock_bench.engine.panels import Line, Panel, drawn, medians
from penstock_bench.engine.suite import Drawing
from penstock_bench.engine.table_parts import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
PATHS = {name: style.PATHS[name] for name in ("auto", "direct", "uring", "gds", "gds-compat", "plain")}


def samples(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "io-size"]


def figure(rows: Rows) -> Figure | None:
    """A row of panels for each number of workers: GiB/s, and the share of all cores. The remote place is dashed."""
    cells = samples(rows)
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
    return drawn(grid)


def _io_lines(rows: Rows, value: Callable[[dict[str, Any]], float]) -> list[Line]:
    lines = []
    for (path, place), group in grouped(rows, "path", "place").items():
        local = place == "local"
        points = medians(group, "request_bytes", value)
        lines.append(Line(points, PATHS.get(path, style.Mark(style.INK, "|")), path if local else "", dashed=not local))
    return lines


FIGURE = Drawing(
    "io-size",
    "Sequential reads of a cold file by many workers: bandwidth and CPU against the size of a request. Plain is "
    "pread into page-locked memory, then a copy to the device, in each worker.",
    figure,
    samples,
)
