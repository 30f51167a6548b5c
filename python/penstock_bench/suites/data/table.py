"""The table of the suite `data`: what a call takes, beside the other library's in the same run."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import Any

from rich.table import Table

from penstock_bench.engine.cells import are_named, source_names
from penstock_bench.engine.table_parts import median_text, new_table

Rows = list[dict[str, Any]]


def tables(rows: Rows, kind: str) -> list[Table]:
    """A line a pair."""
    groups: dict[tuple[str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] == kind:
            groups[row["name"], row["peer"]].append(row)
    table = new_table(("call", "beside"), ["us", "its us", "times its", "n"], ["rows"] * are_named(rows))
    for (name, peer), group in sorted(groups.items()):
        quantities = [median_text(group, itemgetter(field)) for field in ("median_us", "peer_us", "times_peer")]
        named = [source_names(group)] if are_named(rows) else []
        table.add_row(name, peer, *quantities, str(len(group)), *named)
    return [table]
