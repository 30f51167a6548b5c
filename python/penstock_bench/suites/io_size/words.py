"""What the suite `io-size` says in a sentence, with the rows that say so; and its cells for rules."""

from __future__ import annotations

import statistics
from typing import Any

from penstock._text import bytes_text, rate_text
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.rules import STATES, Cell, put
from penstock_bench.engine.statement import Statement

Rows = list[dict[str, Any]]
USUAL_BYTES = 1 << 20


def of_io_size(rows: Rows) -> list[Statement]:
    """The default against the plain way, at 1 MiB or what is nearest to it, with the fewest workers."""
    cells = [row for row in rows if row["kind"] == "io-size" and row["place"] == "local"]
    if not cells:
        return []
    size = min((row["request_bytes"] for row in cells), key=lambda bytes: abs(bytes - USUAL_BYTES))
    workers = min(row["workers"] for row in cells)
    chosen = [row for row in cells if (row["request_bytes"], row["workers"]) == (size, workers)]
    ours = [row for row in chosen if row["path"] == "auto"]
    plain = [row for row in chosen if row["path"] == "plain"]
    if not ours or not plain:
        return []
    text = (
        f"{workers} workers that read {bytes_text(size)} at a time from a file that is not cached get "
        f"{rate_text(median_rate(ours) or 0)} by default at {_cpu(ours):.0f} % of the CPU, "
        f"{rate_text(median_rate(plain) or 0)} at {_cpu(plain):.0f} % the plain way."
    )
    return [Statement(text, ours + plain)]


def _cpu(rows: Rows) -> float:
    return statistics.median(row["cpu_user_percent"] + row["cpu_system_percent"] for row in rows)


def cells(rows: Rows) -> list[Cell]:
    """One directory at a time; the plain way is none that can be asked for."""
    found: dict[tuple[str, int, str], Cell] = {}
    for row in rows:
        if row["kind"] == "io-size" and row["path"] != "plain":
            state = STATES.get(row["cache"], row["cache"])
            what = f"read, {row['workers']} workers in sequence, file {state}, {row['place']} directory"
            put(found, what, row["request_bytes"], row)
    return list(found.values())
