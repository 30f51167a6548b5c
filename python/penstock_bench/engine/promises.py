"""Promises and medians: what a suite promises, judged from the medians of one run."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from penstock_bench.engine.results import median_cpu, median_rate
from penstock_bench.engine.statement import Statement

Rows = list[dict[str, Any]]

PROMISED_FOR = {
    "gpu": "a machine with a GPU",
    "host": "a machine without a GPU",
    "large": "files of 1 GiB or more on a GPU",
}


@dataclass(frozen=True)
class Check:
    """One promise: a measured value and its bound. `passed` is None where a number is missing."""

    what: str
    value: float | None
    bound: float
    at_least: bool = True
    unit: str = ""
    only: str = "any"  # what it is promised for: any machine, or a key of PROMISED_FOR
    here: bool = True  # it is promised for this machine

    @property
    def passed(self) -> bool | None:
        if self.value is None or not self.here:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


class Medians:
    """Medians by probe name, of the rows of one kind."""

    def __init__(self, rows: Rows, kind: str) -> None:
        self.rows: dict[str, Rows] = defaultdict(list)
        for row in rows:
            if row["kind"] == kind:
                self.rows[row["name"]].append(row)

    def rate(self, name: str) -> float | None:
        return median_rate(self.rows.get(name, []))

    def cpu(self, name: str) -> float | None:
        return median_cpu(self.rows.get(name, []))

    def field(self, name: str, field: str) -> float | None:
        values = [row[field] for row in self.rows.get(name, [])]
        return statistics.median(values) if values else None

    def ratio(self, name: str, base: str) -> float | None:
        above, below = self.rate(name), self.rate(base)
        return above / below if above and below else None

    def best(self, prefix: str) -> tuple[str, float] | None:
        rates = [(name, self.rate(name) or 0.0) for name in self.rows if name.startswith(prefix)]
        return max(rates, key=lambda pair: pair[1]) if rates else None


CHECKING_PERCENT = 10.0


def checking(rows: Rows, kind: str) -> list[Check]:
    """What proving the bytes takes: seconds of checking on the device for all seconds of the transfers whose bytes were
    checked, summed over the rows of a kind that tell both. Where only a part was checked, as much more for the rest.
    The clock had stopped, so it is in no rate: a program that checks all it moves pays it. Promised where a GPU does
    the checking."""
    timed = [row for row in rows if row["kind"] == kind and row.get("verify_s") and row.get("seconds")]
    checked = [(row, row.get("verified_bytes", row["bytes"])) for row in timed]
    seconds = sum(row["seconds"] for row, bytes in checked if bytes)
    if not seconds:
        return []
    share = sum(row["verify_s"] * row["bytes"] / bytes for row, bytes in checked if bytes) / seconds
    what = "checking every byte / time of the transfers"
    return judged(rows, [Check(what, 100 * share, CHECKING_PERCENT, False, "%", "gpu")])


def judged(rows: Rows, checks: list[Check]) -> list[Check]:
    """The checks, told whether they hold here: those that are made for another kind of machine are shown where
    measured, not judged."""
    gpu = not next(row for row in rows if row["kind"] == "machine")["machine"]["device"]["emulated"]
    here = "gpu" if gpu else "host"
    shown = [check for check in checks if check.only in ("any", here) or check.value is not None]
    return [replace(check, here=check.only in ("any", here)) for check in shown]


def kept(rows: Rows, name: str, checks: list[Check]) -> list[Statement]:
    """How many promises of a suite were kept, of those that were judged."""
    judged = [check for check in checks if check.passed is not None]
    if not judged:
        return []
    failed = [check.what for check in judged if not check.passed]
    text = f"Of the {len(judged)} promises of the suite {name} that hold for such a machine, "
    text += "all were kept." if not failed else f"{len(failed)} were not kept: {', '.join(failed)}."
    return [Statement(text, [row for row in rows if row["kind"] == name])]
