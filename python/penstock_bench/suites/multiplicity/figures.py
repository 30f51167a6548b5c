"""The figures of the suite `multiplicity`: reads of a file and copies, against how many are at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.numbers import size_label
from penstock_bench.engine.panels import Line, Panel, apart, count_text, drawn, medians
from penstock_bench.engine.suite import Drawing
from penstock_bench.engine.table_parts import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
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


def of_reads(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "read"]


def of_copies(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "copy"]


def reads_figure(rows: Rows) -> Figure | None:
    """Reads of files: panels by size and by who reads, sequential beside random. Callback variants are dashed."""
    reads = of_reads(rows)
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
                    Panel(f"{who}, {size_label(size)}, {order}", lines, count_text, "requests at once", "requests/s")
                )
            if any(panel.lines for panel in panels):
                grid.append(panels)
    return drawn(grid)


def _ways(rows: Rows, ways: dict[str, tuple[str, style.Mark]], value: Callable[[dict[str, Any]], float]) -> list[Line]:
    lines = []
    for (name,), group in grouped(rows, "way").items():
        called_back = name.endswith(CALLBACK)
        known = ways.get(SAME.get(name, name.removesuffix(CALLBACK)))
        if known is not None:
            label, mark = known
            points = medians(group, "multiplicity", value)
            lines.append(Line(points, mark, "" if called_back else label, called_back, apart(group, value)))
    return lines


def copies_figure(rows: Rows) -> Figure | None:
    """Copies: panels by size, one direction beside the other. Pageable memory is dashed."""
    copies = of_copies(rows)
    if len({row["multiplicity"] for row in copies}) < 2:
        return None
    grid = []
    for size in sorted({row["request_bytes"] for row in copies}):
        panels = []
        for direction in ("host to device", "device to host"):
            mine = [row for row in copies if (row["request_bytes"], row["order"]) == (size, direction)]
            lines = [
                Line(
                    medians(group, "multiplicity", _gigabytes),
                    COPIES[way][1],
                    COPIES[way][0] if memory == "page-locked" else "",
                    memory != "page-locked",
                    apart(group, _gigabytes),
                )
                for (way, memory), group in grouped(mine, "way", "buffer").items()
            ]
            panels.append(Panel(f"{direction}, {size_label(size)}", lines, count_text, "copies at once", "GB/s"))
        grid.append(panels)
    return drawn(grid)


def _gigabytes(row: dict[str, Any]) -> float:
    return float(row["bytes_per_second"]) / 1e9


READS = Drawing(
    "multiplicity",
    "Reads of a file against how many are at once. Into host memory by threads that wait, or in one submission of "
    "aio or io_uring (hot: from the page cache); to the device by threads, or in one submission (batch, stream). "
    "Dashed: kept in flight, and told of by callbacks. Hollow marks: samples that differ by more than a factor of "
    "two.",
    reads_figure,
    of_reads,
)
COPIED = Drawing(
    "copies",
    "Copies between host and device against how many are at once. Dashed: pageable memory. Hollow marks: "
    "samples that differ by more than a factor of two.",
    copies_figure,
    of_copies,
)
