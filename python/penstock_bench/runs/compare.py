"""Two results files beside each other: ratios of medians, what lies beyond noise, and what is in one file only.

A ratio above 1 says that the second file is better, whatever is measured: rates are divided second by first, times
first by second. Intervals are those of intervals.py, over the samples of both files.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from penstock.calibration.machine import lasting
from penstock_bench.engine import intervals
from penstock_bench.runs.suites import sample_fields

Rows = list[dict[str, Any]]
Key = tuple[str, ...]

_TIMES = ("median_us", "median_ms")  # what a probe of requests measures; all others are rates
_VARIANT = ("path", "direction", "cache", "request_bytes", "workers", "depth", "buffer", "first_touch")
# What two runs should have in common, of the machine and of its device.
_MACHINE = ("cpu_model", "cores", "memory_bytes", "kernel", "file_system", "mount_options", "disk")
_DEVICE = ("model", "driver_version")
_LATER = ("link", "cufile")  # which older files do not tell


@dataclass(frozen=True)
class Comparison:
    """One probe in both files. `low` and `high` bound the ratio; None where there are too few samples."""

    name: str
    unit: str  # of the medians: "GB/s", "us" or "ms"
    first: float
    second: float
    ratio: float  # above 1: the second is better
    low: float | None
    high: float | None
    samples: tuple[int, int]

    @property
    def changed(self) -> str:
        """ "better" or "worse", when all of the interval says so."""
        if self.low is None or self.high is None:
            return ""
        return "better" if self.low > 1 else "worse" if self.high < 1 else ""

    def regressed(self, bound: float) -> bool:
        """Whether the second is below `bound` of the first for all of the interval."""
        return self.high is not None and self.high < bound


@dataclass(frozen=True)
class ComparisonReport:
    """What both files hold, what only one does, and how the machines differ."""

    comparisons: list[Comparison]
    only_first: list[str]
    only_second: list[str]
    differences: list[str]  # of the machines
    unlike: list[str]  # in both, but in other units, or with nothing moved


def compare(first: Rows, second: Rows) -> ComparisonReport:
    """What both files hold, in the order of the first."""
    left, right = _groups(first), _groups(second)
    found = {key: _compared(key, left[key], right[key]) for key in left if key in right}
    return ComparisonReport(
        [one for one in found.values() if one is not None],
        [_name(key) for key in left if key not in right],
        [_name(key) for key in right if key not in left],
        differences(first, second),
        [_name(key) for key, one in found.items() if one is None],
    )


def differences(first: Rows, second: Rows) -> list[str]:
    """What is not alike in the machines and the sizes that were measured, as texts."""
    left, right = (next(row for row in rows if row["kind"] == "machine") for rows in (first, second))
    pairs = [("file_bytes", left["file_bytes"], right["file_bytes"])]
    pairs += [(name, left["machine"].get(name), right["machine"].get(name)) for name in _MACHINE]
    pairs += [
        (name, lasting(left["machine"][name]), lasting(right["machine"][name]))
        for name in _LATER
        if name in left["machine"] and name in right["machine"]
    ]
    pairs += [
        (f"device {name}", left["machine"]["device"].get(name), right["machine"]["device"].get(name))
        for name in _DEVICE
    ]
    return [f"{name}: {one} and {other}" for name, one, other in pairs if one != other]


def _groups(rows: Rows) -> dict[Key, Rows]:
    groups: dict[Key, Rows] = defaultdict(list)
    samples = sample_fields()
    for row in rows:
        fields = samples.get(row["kind"], {})
        if row["kind"] == "trial":
            groups[("trial", *(str(row[name]) for name in _VARIANT))].append(row)
        elif "name" in fields:
            groups[row["kind"], row["name"]].append(row)
            if isinstance(row.get("p99_us"), (int, float)):
                groups[row["kind"], row["name"] + ", p99"].append({"median_us": row["p99_us"]})
        elif row["kind"] == "ceiling":
            groups["ceiling", row["direction"]].append(row)
    return groups


def _name(key: Key) -> str:
    if key[0] != "trial":
        return key[1] if key[0] != "ceiling" else f"pinned copy, {key[1]}"
    path, direction, cache, request, workers, depth, buffer, touch = key[1:]
    size = "file" if request == "0" else f"{request} B"
    extras = [f"workers {workers}"] * (workers != "0") + [f"depth {depth}"] * (depth != "0")
    extras += [buffer] * (buffer != "device") + [f"touch {touch}"] * (touch != "gpu")
    return " ".join([path, direction, cache, size, *extras])


def _measured(rows: Rows) -> tuple[str, list[float]]:
    for name in _TIMES:
        if all(isinstance(row.get(name), (int, float)) for row in rows):
            return name.rpartition("_")[2], [float(row[name]) for row in rows]
    return "GB/s", [row["bytes_per_second"] / 1e9 for row in rows]


def _compared(key: Key, first: Rows, second: Rows) -> Comparison | None:
    (unit, left), (other, right) = _measured(first), _measured(second)
    if unit != other or not (all(left) and all(right)):  # another version's rows, or nothing moved
        return None
    found = intervals.ratio(right, left) if unit == "GB/s" else intervals.ratio(left, right)
    medians = statistics.median(left), statistics.median(right)
    return Comparison(_name(key), unit, *medians, found.median, found.low, found.high, (len(left), len(right)))
