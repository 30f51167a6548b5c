"""What the suite `hmatrix` says in a sentence or two, with the rows that say so."""

from __future__ import annotations

from typing import Any

from penstock_bench.engine.promises import Medians
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.hmatrix.matrices import power

Rows = list[dict[str, Any]]


def of_hmatrix(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "hmatrix")
    made = []
    for tolerance in sorted({row["tolerance"] for row in rows if row.get("subject") == "best"}, reverse=True):
        names = (f"to {power(tolerance)}: parity", f"to {power(tolerance)}: best")
        slow, fast = (medians.field(name, "seconds") for name in names)
        read = medians.field(names[1], "matrices_read")
        if slow and fast and read:
            text = (
                f"A solve to {power(tolerance)} of a matrix larger than its memory takes {fast:.3g} s and reads "
                f"{read:.2g} of its bytes as doubles; as published codes do it, {slow:.3g} s."
            )
            made.append(Statement(text, [row for row in rows if row.get("name") in names]))
    return made
