"""What the suite `multiplicity` says in a sentence, with the rows that say so."""

from __future__ import annotations

import statistics
from typing import Any

from penstock._text import bytes_text
from penstock_bench.engine.numbers import thousands
from penstock_bench.engine.statement import Statement
from penstock_bench.engine.table_parts import grouped

Rows = list[dict[str, Any]]


def of_multiplicity(rows: Rows) -> list[Statement]:
    """How many random reads of the smallest size the device gets at most: by default, and the best other way."""
    reads = [
        row
        for row in rows
        if row["kind"] == "multiplicity" and row["subject"] == "read" and row["order"] == "random"
        if row["way"].startswith("GPU")
    ]
    if not reads:
        return []
    size = min(row["request_bytes"] for row in reads)
    groups = grouped([row for row in reads if row["request_bytes"] == size], "way", "multiplicity")
    ours = {key: group for key, group in groups.items() if "auto" in key[0]}
    others = {key: group for key, group in groups.items() if key not in ours}
    said, used = [], []
    for of_these, what in ((ours, "by default"), (others, "the best other way")):
        if of_these:
            words, of_words = _most(of_these)
            said.append(f"{what} {words}")
            used += of_words
    return [Statement(f"Random reads of {bytes_text(size)} into device memory, a second: {'; '.join(said)}.", used)]


def _most(groups: dict[tuple[str, int], Rows]) -> tuple[str, Rows]:
    """The fastest way, what it does one at a time, and the rows of both."""
    rates = {key: statistics.median(row["operations_per_second"] for row in group) for key, group in groups.items()}
    way, most = max(rates, key=lambda key: rates[key])
    least = min(count for name, count in rates if name == way)
    text = f"{thousands(rates[way, most])} with {most} at once ({way.removeprefix('GPU ')})"
    if most == least:
        return text, groups[way, most]
    return f"{text}, {thousands(rates[way, least])} with {least}", groups[way, most] + groups[way, least]
