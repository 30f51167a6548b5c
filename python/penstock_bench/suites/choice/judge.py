"""What the rows of the suite `choice` say: how near each way of choosing comes to the fastest path of each cell.

A cell is a direction, a state of the page cache and a request size. Its best is the smallest median over the paths
asked for by name; the quality of a way is best over its own median, so 1 is the best and 0.5 takes twice as long.
What auto chose is judged by the median of that path, as every other rule is; its visits are those that asked for it by
name and those in which auto took it. Auto as timed, which adds what planning takes and the noise of one more series,
stands beside it.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock_bench.engine import intervals
from penstock_bench.engine.promises import Check

Rows = list[dict[str, Any]]
T = TypeVar("T")
CellKey = tuple[str, str, int]  # direction, cache, request_bytes
WITHIN = 0.95
PROMISED_SHARE, PROMISED_WORST = 0.95, 0.8
CHOOSING_US = 5.0
CHOOSING_BYTES = 64 << 10  # larger requests also ask which pages are in the page cache, with or without a profile
NOT_PATHS = ("auto", "auto, Python", "KvikIO default")
CHOSEN = "path chosen by auto"
TIMED = "auto"
SUMMED = "chosen"  # kind of the cells of a table that say what samples said
THRESHOLDS = {"direct from 16 KiB on": 16 << 10, "direct from 1 MiB on": 1 << 20}


@dataclass(frozen=True)
class Quality:
    """Of one way of choosing, over the cells it was measured in."""

    way: str
    by_cell: dict[CellKey, float]
    untold: frozenset[CellKey] = frozenset()  # cells in which the samples cannot tell it from one within 5 %

    @property
    def share(self) -> float:
        return sum(one >= WITHIN for one in self.by_cell.values()) / len(self.by_cell)

    @property
    def share_told(self) -> float:
        """As `share`, but only what lies beyond noise counts as worse."""
        good = sum(one >= WITHIN or cell in self.untold for cell, one in self.by_cell.items())
        return good / len(self.by_cell)

    @property
    def worst(self) -> float:
        return min(self.by_cell.values())

    @property
    def mean(self) -> float:
        """Geometric."""
        return math.exp(statistics.fmean(math.log(one) for one in self.by_cell.values()))


def samples(rows: Rows) -> dict[CellKey, dict[str, list[float]]]:
    """Seconds of each way in each cell."""
    found: dict[CellKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["kind"] == "choice":
            found[row["direction"], row["cache"], row["request_bytes"]][row["way"]].append(row["seconds"])
    return found


def medians(rows: Rows) -> dict[CellKey, dict[str, float]]:
    """Median seconds of each way in each cell."""
    return {
        cell: {way: statistics.median(seconds) for way, seconds in ways.items()}
        for cell, ways in sorted(samples(rows).items())
    }


def qualities(rows: Rows) -> list[Quality]:
    """The measured choice first, then what others do: fixed thresholds, one path for all, KvikIO."""
    cells = medians(rows)
    best = {cell: min(_paths(ways).values()) for cell, ways in cells.items() if _paths(ways)}
    found = [_chosen(rows)]
    found += [_quality(way, cells, best, way) for way in (TIMED, "auto, Python")]
    for rule, threshold in THRESHOLDS.items():
        taken = {cell: _by_threshold(cell, ways, threshold) for cell, ways in cells.items()}
        known = {cell: way for cell, way in taken.items() if way in cells[cell] and cell in best}
        kept = {cell: best[cell] / cells[cell][way] for cell, way in known.items()}
        found.append(Quality(rule, kept))
    paths = sorted({way for ways in cells.values() for way in _paths(ways)})
    found += [_quality(f"always {path}", cells, best, path) for path in paths]
    found.append(_quality("KvikIO default", cells, best, "KvikIO default"))
    return [one for one in found if one.by_cell]


def taken(rows: Rows) -> dict[CellKey, str]:
    """The path auto took in each cell, most often where it did not always take the same."""
    paths: dict[CellKey, list[str]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "choice" and row["way"] == TIMED:
            paths[row["direction"], row["cache"], row["request_bytes"]].append(row["took"])
    return {cell: statistics.mode(took) for cell, took in paths.items()}


def _chosen(rows: Rows) -> Quality:
    summed = {(row["direction"], row["cache"], row["request_bytes"]): row for row in rows if row["kind"] == SUMMED}
    if summed:
        untold = frozenset(cell for cell, row in summed.items() if not row["told"])
        return Quality(CHOSEN, {cell: row["of_best"] for cell, row in summed.items()}, untold)
    return _chosen_by_samples(rows)


def _chosen_by_samples(rows: Rows) -> Quality:
    found = samples(rows)
    for row in rows:
        if row["kind"] == "choice" and row["way"] == TIMED:
            found[row["direction"], row["cache"], row["request_bytes"]][row["took"]].append(row["seconds"])
    quality, untold = {}, set()
    for cell, path in taken(rows).items():
        paths = {way: statistics.median(seconds) for way, seconds in _paths(found[cell]).items()}
        if path not in paths:  # "mixed"
            continue
        quality[cell] = min(paths.values()) / paths[path]
        if _untold(found[cell], path, paths):
            untold.add(cell)
    return Quality(CHOSEN, quality, frozenset(untold))


def _untold(seconds: dict[str, list[float]], way: str, middles: dict[str, float]) -> bool:
    """Whether the 95 % interval of the ratio to the best path reaches what is within 5 % of it."""
    best = min(middles, key=lambda path: middles[path])
    found = intervals.ratio(seconds[best], seconds[way])
    return found.high is not None and found.high >= WITHIN


def _paths(ways: dict[str, T]) -> dict[str, T]:
    return {way: found for way, found in ways.items() if way not in NOT_PATHS}


def _by_threshold(cell: CellKey, ways: dict[str, float], threshold: int) -> str:
    """By size alone, as cuFile and KvikIO decide, and past the page cache: by native cuFile where there is one. Cells
    in which that was not measured are left out."""
    if cell[2] < threshold:
        return "buffered"
    return "gds" if "gds" in ways else "direct"


def _quality(name: str, cells: dict[CellKey, dict[str, float]], best: dict[CellKey, float], way: str) -> Quality:
    return Quality(name, {cell: best[cell] / ways[way] for cell, ways in cells.items() if way in ways and cell in best})


def choosing_us(rows: Rows) -> float | None:
    """Microseconds of the dearest plan of a request that is no larger than CHOOSING_BYTES, by the profile."""
    found = [
        row["seconds"] * 1e6
        for row in rows
        if row["kind"] == "choosing" and row["by"] == "profile" and row["request_bytes"] <= CHOOSING_BYTES
    ]
    return max(found, default=None)


def checks(rows: Rows) -> list[Check]:
    chosen = next((one for one in qualities(rows) if one.way == CHOSEN), None)
    share = chosen.share if chosen else None
    told = chosen.share_told if chosen else None
    worst = chosen.worst if chosen else None
    return [
        Check("cells in which the chosen path is within 5 % of the best", share, PROMISED_SHARE),
        Check("the same, counting only what lies beyond noise", told, PROMISED_SHARE),
        Check("the chosen path in its worst cell / best path", worst, PROMISED_WORST),
        Check("choosing, of a request up to 64 KiB", choosing_us(rows), CHOOSING_US, False, "us"),
    ]


def summary(rows: Rows) -> Rows:
    """The ways of choosing beside each other, and what the measured choice reached in each cell, with what the samples
    can tell."""
    found = qualities(rows)
    ways: Rows = [
        {
            "kind": "way",
            "name": one.way,
            "cells": len(one.by_cell),
            "share": round(one.share, 4),
            "worst": round(one.worst, 4),
            "mean": round(one.mean, 4),
        }
        for one in found
    ]
    paths = taken(rows)
    chosen: Rows = [
        {
            "kind": SUMMED,
            **dict(zip(("direction", "cache", "request_bytes"), cell, strict=True)),
            "took": paths[cell],
            "of_best": round(value, 4),
            "told": cell not in one.untold,
        }
        for one in found
        if one.way == CHOSEN
        for cell, value in one.by_cell.items()
    ]
    return ways + chosen
