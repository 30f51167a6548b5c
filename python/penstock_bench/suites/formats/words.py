"""What the suite `formats` says: HDF5 beside a raw file, and the promises."""

from __future__ import annotations

from typing import Any

from penstock._text import rate_text
from penstock_bench.engine.promises import Medians, checking, kept
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.formats import judge

Rows = list[dict[str, Any]]


def of_formats(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "formats")
    found = []
    rate, share = medians.rate("HDF5 read"), medians.ratio("HDF5 read", "raw read")
    if rate and share:
        used = medians.rows["HDF5 read"] + medians.rows["raw read"]
        text = f"An array of an HDF5 file in the page cache is read at {rate_text(rate)}, {share:.0%} of a raw file."
        found.append(Statement(text, used))
    return found + kept(rows, "formats", judge.checks(rows) + checking(rows, "formats"))
