"""What the suite `first-touch` says: reads of the page cache over sizes, then the disk; and its cells for rules."""

from __future__ import annotations

from typing import Any

from penstock._text import rate_text
from penstock_bench.engine.cells import durable_rate
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.rules import ONE_REQUEST, STATES, Cell, put
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.first_touch import table

Rows = list[dict[str, Any]]


def of_first_touch(rows: Rows) -> list[Statement]:
    """Reads of the page cache over sizes; then what is not cached, and new files with fsync, at the largest size that
    both have."""
    hot = _touched(rows, "read", "hot", "gpu")
    if len(hot) < 2:
        return []
    rates = {size: median_rate(group) or 0.0 for size, group in hot.items()}
    most = max(rates, key=lambda size: rates[size])
    half = min(size for size, rate in rates.items() if rate >= rates[most] / 2)
    text = (
        f"Particles in the page cache are read into device memory at up to {rate_text(rates[most])} "
        f"({table.count_text(most)} of them), at half of that or more from "
        f"{table.count_text(half)} on"
    )
    used = hot[most] + hot[half]
    managed = _touched(rows, "read", "hot", "cpu")
    if managed:
        size = max(managed)
        text += f"; into managed memory that the CPU touched first at {rate_text(median_rate(managed[size]) or 0)}"
        text += f" ({table.count_text(size)})"
        used = used + managed[size]
    return [Statement(text + ".", used), *_disk(rows)]


def _touched(rows: Rows, direction: str, cache: str, touch: str) -> dict[int, Rows]:
    """The default on raw files at its own shape, by particles: device memory, or what the CPU can touch first."""
    found: dict[int, Rows] = {}
    wanted = (direction, touch, {"gpu": "device", "cpu": "managed"}[touch], "raw", "auto", cache, 0, 0)
    for (particles, *rest), group in table.groups(rows).items():
        if tuple(rest) == wanted:
            found[particles] = group
    return found


def _disk(rows: Rows) -> list[Statement]:
    cold, new = _touched(rows, "read", "cold", "gpu"), _touched(rows, "write", "new", "gpu")
    both = cold.keys() & new.keys()
    written = durable_rate(new[max(both)]) if both else None
    if written is None:
        return []
    size = max(both)
    text = (
        f"{table.count_text(size)} particles that are not in the page cache are read at "
        f"{rate_text(median_rate(cold[size]) or 0)}, and written to a new file at {rate_text(written)} with fsync."
    )
    return [Statement(text, cold[size] + new[size])]


def cells(rows: Rows) -> list[Cell]:
    """Raw files, by bytes of the problem. Into device memory it asks what a grid asks."""
    found: dict[tuple[str, int, str], Cell] = {}
    for row in rows:
        if row["kind"] != "first-touch" or row["format"] != "raw" or row["chunk_bytes"] or row["workers"]:
            continue
        what = ONE_REQUEST.format(direction=row["direction"], state=STATES.get(row["cache"], ""))
        if row["direction"] == "write":
            what = "write, one request, a new file"
        if (row["buffer"], row["first_touch"]) != ("device", "gpu"):
            what += f", {row['buffer']} memory touched by {row['first_touch'].upper()}"
        put(found, what, row["bytes"], row)
    return list(found.values())
