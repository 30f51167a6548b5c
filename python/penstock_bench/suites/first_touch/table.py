"""The table of the suite `first-touch`: one line a variant, smallest problem first."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from rich.table import Table

Rows = list[dict[str, Any]]
AXES = ("particles", "direction", "first_touch", "buffer", "format", "path", "cache", "chunk_bytes", "workers")


def tables(rows: Rows, kind: str) -> list[Table]:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("particles", "what", "memory", "GB/s", "95 %", "fsynced", "of engine", "CPU s/GB", "media", "n"):
        table.add_column(name, justify="left" if name in ("what", "memory") else "right", no_wrap=True)
    if are_named(rows):
        table.add_column("rows")
    engine = engine_rates(rows)
    for key, group in groups(rows, kind).items():
        particles, direction, touch, buffer, format, path, cache, chunk, workers = key
        found = estimate([row["bytes_per_second"] for row in group])
        shape = [f"{chunk >> 10} KiB"] * bool(chunk) + [f"{workers} workers"] * bool(workers)
        table.add_row(
            count_text(particles),
            " ".join([direction, format, path, cache, *shape]),
            f"{touch} {buffer}",
            gigabytes(found.median),
            interval_text(found),
            gigabytes(durable_rate(group)),
            share_text(found.median, engine.get((direction, particles))),
            f"{median_cpu(group) or 0:.3f}",
            media_text(group),
            str(found.samples),
            *([source_names(group)] if are_named(rows) else []),
        )
    return [table]


def groups(rows: Rows, kind: str = "first-touch") -> dict[tuple[Any, ...], Rows]:
    """Samples by variant, in order."""
    found: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == kind:
            found[tuple(row[name] for name in AXES)].append(row)
    return dict(sorted(found.items()))


def engine_rates(rows: Rows) -> dict[tuple[str, int], float]:
    """Medians of the engine's own rate, by direction and particles."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "engine" and "particles" in row:
            found[row["direction"], row["particles"]].append(row["bytes_per_second"])
    return {key: statistics.median(rates) for key, rates in found.items()}


def count_text(particles: int) -> str:
    for unit, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if particles >= 1 << shift:
            return f"{particles / (1 << shift):.4g} {unit}"
    return str(particles)
