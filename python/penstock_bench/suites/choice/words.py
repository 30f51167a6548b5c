"""What the suite `choice` says on the page: one sentence on the measured choice, and its cells as decision rules."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from penstock_bench.engine.rules import ONE_REQUEST, STATES, Cell
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.choice import judge

Rows = list[dict[str, Any]]


def of_choice(rows: Rows) -> list[Statement]:
    """How near the measured choice came, and the best that one path or one threshold would have done."""
    found = judge.qualities(rows)
    chosen = next((one for one in found if one.way == judge.CHOSEN), None)
    if chosen is None:
        return []
    others = [one for one in found if one.way.startswith(("always", "direct"))]
    text = (
        f"With a measured profile the path that the default chooses is within 5 % of the fastest in "
        f"{chosen.share:.0%} of {len(chosen.by_cell)} cells of size, direction and residency "
        f"({chosen.share_told:.0%} as far as the samples can tell), and at {chosen.worst:.2f} of it in the worst"
    )
    if others:
        best = max(others, key=lambda one: one.share)
        text += f"; the best fixed rule ({best.way}) in {best.share:.0%}, at {best.worst:.2f} in its worst"
    return [Statement(f"{text}.", [row for row in rows if row["kind"] == "choice"])]


def cells(rows: Rows) -> list[Cell]:
    """The default and each path asked for by name, over request sizes."""
    found: dict[tuple[str, int, str], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == "choice" and row["way"] not in ("auto, Python", "KvikIO default"):
            situation = ONE_REQUEST.format(direction=row["direction"], state=STATES[row["cache"]])
            situation += ", fsync not counted" * (row["direction"] == "write")
            found[situation, row["request_bytes"], row["way"]].append(row)
    return [Cell(situation, size, way, group) for (situation, size, way), group in found.items()]
