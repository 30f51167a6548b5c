"""What the suite `core` says: what the default reads, beside the ceiling, and the promises."""

from __future__ import annotations

from typing import Any

from penstock._text import rate_text
from penstock_bench.engine.promises import Medians, checking, kept
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.core import judge

Rows = list[dict[str, Any]]


def of_core(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "core")
    found = []
    hot, cold = medians.rate("hot read"), medians.rate("cold read")
    if hot and cold:
        share = medians.ratio("hot read", "copy to device")
        beside = f" ({share:.0%} of a plain copy)" if share else ""
        text = f"With default settings a file in the page cache is read at {rate_text(hot)}{beside}, "
        used = [row for name in ("hot read", "cold read", "copy to device") for row in medians.rows.get(name, [])]
        found.append(Statement(text + f"one that is not at {rate_text(cold)}.", used))
    return found + kept(rows, "core", judge.checks(rows) + checking(rows, "core"))
