"""What the suite `per-process` says in a sentence, with the rows that say so."""

from __future__ import annotations

from typing import Any

from penstock._text import bytes_text, rate_text
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.per_process.cases import RUN, WAYS, C

Rows = list[dict[str, Any]]


def of_per_process(rows: Rows) -> list[Statement]:
    """Rates of the largest files, read by the most processes with the largest buffer."""
    mine = [row for row in rows if row["kind"] == "per-process" and row["way"] in WAYS and row["direction"] == "read"]
    known = [row for row in mine if row["way"] in (C, C + RUN)]
    if not known:
        return []
    size, processes, buffer = max((row["file_bytes"], row["processes"], row["buffer_bytes"]) for row in known)
    place = {"file_bytes": size, "processes": processes, "buffer_bytes": buffer}
    shown = [row for row in known if place.items() <= row.items()]
    plain, helped = (median_rate([row for row in shown if row["way"] == way]) for way in (C, C + RUN))
    if plain is None or helped is None:
        return []
    text = (
        f"{processes} processes that fread files of {bytes_text(size)} get {rate_text(plain)} as they are, and "
        f"{rate_text(helped)} under penstock run."
    )
    return [Statement(text, shown)]
