"""The answer first: what the default achieves here, and whether any path asked for by name is faster."""

from __future__ import annotations

from typing import Any

from penstock.bench.results import median_rate
from penstock.cli.show import rate_text
from penstock.report import figures as drawing

Rows = list[dict[str, Any]]
CASES = (
    ("read", "hot", ("hot",), "reads a file in the page cache"),
    ("read", "cold", ("cold", "direct"), "one that is not"),
    ("write", "hot", ("hot",), "writes over one in the page cache"),
    ("write", "cold", ("cold", "direct"), "over one that is not"),
)


def verdict(rows: Rows) -> str:
    """Two or three sentences; empty when the default was not measured on whole files."""
    groups = drawing.whole_file(rows)
    said, faster = [], []
    for direction, cache, rivals, what in CASES:
        mine = groups.get((direction, cache, "auto"))
        if not mine:
            continue
        took = ", ".join(sorted({row["took"] for row in mine}))
        said.append(f"{what} at {rate_text(median_rate(mine) or 0)} (path {took})")
        best = _faster(groups, mine, direction, rivals)
        if best:
            faster.append(f"{best} ({direction}, {drawing.STATE_WORDS[cache]})")
    if not said:
        return ""
    known = (
        "Faster in every repeat: " + ", ".join(faster)
        if faster
        else "No path asked for by name was faster in every repeat"
    )
    return f"By itself Penstock {_joined(said)}. {known}.{_ceiling(rows, groups)}"


def _faster(groups: dict[Any, Rows], mine: Rows, direction: str, caches: tuple[str, ...]) -> str:
    """The fastest path whose slowest repeat beats the default's fastest one; empty when there is none."""
    bound = max(row["bytes_per_second"] for row in mine)
    found = [
        (min(row["bytes_per_second"] for row in group), path)
        for (way, cache, path), group in groups.items()
        if way == direction and cache in caches and path != "auto"
    ]
    speed, path = max(found, default=(0.0, ""))
    return f"{path}, at least {rate_text(speed)}" if speed > bound else ""


def _ceiling(rows: Rows, groups: dict[Any, Rows]) -> str:
    ceiling = median_rate(row for row in rows if row["kind"] == "ceiling" and row["direction"] == "read")
    hot = median_rate(groups.get(("read", "hot", "auto"), []))
    if not ceiling or not hot:
        return ""
    return f" The read from the page cache reaches {hot / ceiling:.0%} of a plain copy from pinned memory."


def _joined(words: list[str]) -> str:
    return " and ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " and " + words[-1]
