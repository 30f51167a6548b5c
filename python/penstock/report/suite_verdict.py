"""What the suites `io-size` and `multiplicity` say in a sentence each, with the rows that say so."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

from penstock.bench.results import median_rate
from penstock.cli.show import bytes_text, rate_text
from penstock.report.sources import Statement

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
        f"{workers} workers that read {bytes_text(size)} at a time from a file nobody cached get "
        f"{rate_text(median_rate(ours) or 0)} by default at {_cpu(ours):.0f} % of the CPU, "
        f"{rate_text(median_rate(plain) or 0)} at {_cpu(plain):.0f} % the plain way."
    )
    return [Statement(text, ours + plain)]


def _cpu(rows: Rows) -> float:
    return statistics.median(row["cpu_user_percent"] + row["cpu_system_percent"] for row in rows)


def of_multiplicity(rows: Rows) -> list[Statement]:
    """How many random reads of the smallest size at once bring the device nearly all it can get, and by which way."""
    reads = [
        row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "read" and row["order"] == "random"
    ]
    reads = [row for row in reads if row["way"].startswith("GPU")]
    if not reads:
        return []
    size = min(row["request_bytes"] for row in reads)
    groups: dict[tuple[str, int], Rows] = defaultdict(list)
    for row in reads:
        if row["request_bytes"] == size:
            groups[row["way"], row["multiplicity"]].append(row)
    rates = {key: statistics.median(row["operations_per_second"] for row in group) for key, group in groups.items()}
    way, _ = max(rates, key=lambda key: rates[key])
    mine = {count: rate for (name, count), rate in rates.items() if name == way}
    most, least = max(mine, key=lambda count: mine[count]), min(mine)
    text = (
        f"Random reads of {bytes_text(size)} into device memory reach {mine[most]:,.0f} a second with {most} at once "
        f"({way.removeprefix('GPU ')})"
    )
    if most != least:
        text += f", {mine[least]:,.0f} with {least}"
    return [Statement(text + ".", groups[way, most] + groups[way, least])]
