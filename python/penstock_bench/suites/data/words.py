"""What the suite `data` says: where a call takes more than the other library's, and how often it takes less."""

from __future__ import annotations

from typing import Any

from penstock_bench.engine.promises import Medians
from penstock_bench.engine.statement import Statement

Rows = list[dict[str, Any]]


def of_data(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "data")
    ratios = {name: medians.field(name, "times_peer") or 0.0 for name in medians.rows}
    if not ratios:
        return []
    worst = max(ratios, key=lambda name: ratios[name])
    less = sum(ratio <= 1 for ratio in ratios.values())
    text = (
        f"Of {len(ratios)} small reads, {less} take no more of the processor than the library of the format; the most, "
        f"{ratios[worst]:.3g} times as much, takes '{worst}' beside {medians.rows[worst][0]['peer']}."
    )
    return [Statement(text, [row for row in rows if row["kind"] == "data"])]
