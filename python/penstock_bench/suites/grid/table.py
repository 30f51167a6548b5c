"""Tables of grids: medians of the trials, one line a variant, and the ceilings measured in the same run."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

from rich import box
from rich.table import Table

from penstock._text import bytes_text
from penstock_bench.engine.cells import (
    are_named,
    durable_rate,
    gigabytes,
    interval_text,
    media_text,
    share_text,
    source_names,
)
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.results import median_cpu

Rows = list[dict[str, Any]]


def trial_tables(rows: Rows, _kind: str) -> list[Table]:
    return [grid_table(rows), *ceiling_tables(rows)]


def ceiling_tables(rows: Rows) -> list[Table]:
    """What nothing here can exceed: one copy over the link, and the engine when storage moves nothing."""
    groups: dict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "ceiling":
            groups["pinned copy", row["direction"], ""].append(row)
        elif row["kind"] == "engine" and "particles" not in row:
            groups["engine alone", row["direction"], _size(row["request_bytes"])].append(row)
    if not groups:
        return []
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("ceiling", "direction", "request", "GB/s", "95 %", "n"):
        table.add_column(name, justify="right" if name in ("GB/s", "95 %", "n") else "left")
    if are_named(rows):
        table.add_column("rows")
    for key, group in groups.items():
        found = estimate([row["bytes_per_second"] for row in group])
        names = [source_names(group)] if are_named(rows) else []
        table.add_row(*key, gigabytes(found.median), interval_text(found), str(found.samples), *names)
    return [table]


def grid_table(rows: Rows) -> Table:
    """Medians of the trials, one line a variant."""
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "trial":
            groups[_variant(row)].append(row)
    engine = _engine_rates(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("path", "direction", "cache", "request", "shape"):
        table.add_column(name, no_wrap=True)
    for name in ("GB/s", "95 %", "fsynced", "of engine", "CPU s/GB", "media", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("took")
    if are_named(rows):
        table.add_column("rows")
    for variant, group in sorted(groups.items()):
        path, direction, cache, request, *shape = variant
        found = estimate([row["bytes_per_second"] for row in group])
        table.add_row(
            path,
            direction,
            cache,
            _size(request),
            " ".join(_shape(shape)),
            gigabytes(found.median),
            interval_text(found),
            gigabytes(durable_rate(group)),
            share_text(found.median, engine.get((direction, request))),
            f"{median_cpu(group) or 0:.3f}",
            media_text(group),
            str(len(group)),
            ", ".join(sorted({row["took"] for row in group})),
            *([source_names(group)] if are_named(rows) else []),
        )
    return table


def _engine_rates(rows: Rows) -> dict[tuple[str, int], float]:
    """What the engine does when storage moves nothing, by direction and size of request."""
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "engine":
            groups[row["direction"], row["request_bytes"]].append(row["bytes_per_second"])
    return {key: statistics.median(rates) for key, rates in groups.items()}


def _variant(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        row[name]
        for name in ("path", "direction", "cache", "request_bytes", "workers", "depth", "buffer", "first_touch")
    )


def _shape(values: list[Any]) -> list[str]:
    workers, depth, buffer, touch = values
    words = [f"workers {workers}"] * bool(workers) + [f"depth {depth}"] * bool(depth)
    return words + [buffer] * (buffer != "device") + [f"touch {touch}"] * (touch != "gpu")


def _size(request_bytes: int) -> str:
    return "file" if request_bytes == 0 else bytes_text(request_bytes)
