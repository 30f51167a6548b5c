"""What grids say: what the default reaches, what is faster, how near the ceiling is; and their cells for rules."""

from __future__ import annotations

from typing import Any

from penstock._text import rate_text
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.rules import ONE_REQUEST, STATES, Cell, put
from penstock_bench.engine.statement import Statement, joined
from penstock_bench.suites.grid import figures as drawing

Rows = list[dict[str, Any]]
CASES = (
    ("read", "hot", ("hot",), "reads a file in the page cache"),
    ("read", "cold", ("cold", "direct"), "one that is not"),
    ("write", "hot", ("hot",), "writes over one in the page cache"),
    ("write", "cold", ("cold", "direct"), "over one that is not"),
)


def of_grid(rows: Rows) -> list[Statement]:
    groups = drawing.whole_file(rows)
    said, used = [], []
    for direction, cache, _, what in CASES:
        mine = groups.get((direction, cache, "auto"))
        if mine:
            took = ", ".join(sorted({row["took"] for row in mine}))
            said.append(f"{what} at {rate_text(median_rate(mine) or 0)} (path {took})")
            used += mine
    if not said:
        return []
    return [Statement(f"By itself Penstock {joined(said)}.", used), _rivals(groups), *_ceiling(rows, groups)]


def _rivals(groups: dict[Any, Rows]) -> Statement:
    faster, used = [], []
    for direction, cache, rivals, _ in CASES:
        mine = groups.get((direction, cache, "auto"))
        if not mine:
            continue
        path, theirs = _faster(groups, mine, direction, rivals)
        used += mine + theirs
        if path:
            faster.append(f"{path} ({direction}, {drawing.STATE_WORDS[cache]})")
    if faster:
        return Statement("Faster in every repeat: " + ", ".join(faster) + ".", used)
    return Statement("No path asked for by name was faster in every repeat.", used)


def _faster(groups: dict[Any, Rows], mine: Rows, direction: str, caches: tuple[str, ...]) -> tuple[str, Rows]:
    """The fastest path whose slowest repeat beats the default's fastest one, empty when there is none; and the rows of
    all that were compared."""
    bound = max(row["bytes_per_second"] for row in mine)
    rivals = {
        path: group
        for (way, cache, path), group in groups.items()
        if way == direction and cache in caches and path != "auto"
    }
    slowest = [(min(row["bytes_per_second"] for row in group), path) for path, group in rivals.items()]
    speed, path = max(slowest, default=(0.0, ""))
    used = [row for group in rivals.values() for row in group]
    return (f"{path}, at least {rate_text(speed)}" if speed > bound else ""), used


def _ceiling(rows: Rows, groups: dict[Any, Rows]) -> list[Statement]:
    copies = [row for row in rows if row["kind"] == "ceiling" and row["direction"] == "read"]
    hot = groups.get(("read", "hot", "auto"), [])
    ceiling, rate = median_rate(copies), median_rate(hot)
    if not ceiling or not rate:
        return []
    text = f"The read from the page cache reaches {rate / ceiling:.0%} of a plain copy from pinned memory."
    return [Statement(text, hot + copies)]


def cells(rows: Rows) -> list[Cell]:
    """Plain trials, by size of request; one request for the whole file is a situation of its own."""
    found: dict[tuple[str, int, str], Cell] = {}
    for row in rows:
        plain = row["kind"] == "trial" and not row["workers"] and not row["depth"]
        if not plain or row["buffer"] != "device" or row["first_touch"] != "gpu":
            continue
        what = ONE_REQUEST.format(direction=row["direction"], state=STATES[row["cache"]])
        if row["request_bytes"]:
            what = what.replace("one request", "many requests")
        put(found, what, row["request_bytes"] or row["bytes"], row)
    return list(found.values())
