"""What the suite `simulation` says in a sentence, with the rows that say so."""

from __future__ import annotations

from typing import Any

from penstock_bench.engine.promises import Medians
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.simulation.judge import BESIDE
from penstock_bench.suites.simulation.measure import KIND
from penstock_bench.suites.simulation.ways import BLOCKING, NETCDF4, NOTHING, USUAL_H5PY

Rows = list[dict[str, Any]]


def of_simulation(rows: Rows) -> list[Statement]:
    medians = Medians(rows, KIND)
    ours, alone = medians.field(NETCDF4, "seconds"), medians.field(NOTHING, "seconds")
    usual = next((way for way in (BESIDE[NETCDF4], USUAL_H5PY, BLOCKING) if medians.field(way, "seconds")), "")
    theirs = medians.field(usual, "seconds")
    if not ours or not alone or not theirs:
        return []
    text = (
        f"A model that takes {alone:.3g} s without output takes {ours:.3g} s where a history writes its fields, and "
        f"{theirs:.3g} s by {usual}."
    )
    return [Statement(text, [row for row in rows if row.get("name") in (NOTHING, NETCDF4, usual)])]
