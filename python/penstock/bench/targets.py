"""What the suite `core` promises, judged from the medians of one run, and the table that says so."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from penstock.bench.results import median_cpu, median_rate

Rows = list[dict[str, Any]]
MEMORY_SPARE_BYTES = 100 << 20


@dataclass(frozen=True)
class Check:
    """One promise: a measured value and its bound. `passed` is None where a number is missing."""

    what: str
    value: float | None
    bound: float
    at_least: bool = True
    unit: str = ""
    only: str = "any"  # the machine it is promised for: any, gpu, host
    here: bool = True  # it is promised for this machine

    @property
    def passed(self) -> bool | None:
        if self.value is None or not self.here:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


class Medians:
    """Medians by probe name."""

    def __init__(self, rows: Rows) -> None:
        self.rows: dict[str, Rows] = defaultdict(list)
        for row in rows:
            if row["kind"] == "core":
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


def checks(rows: Rows) -> list[Check]:
    """All promises, judged; those that are made for another kind of machine are shown where measured, not judged."""
    medians = Medians(rows)
    gpu = not next(row for row in rows if row["kind"] == "machine")["machine"]["device"]["emulated"]
    here = "gpu" if gpu else "host"
    everything = _link(medians) + _storage(medians) + _small(medians) + _memory(rows)
    return [replace(check, here=check.only in ("any", here)) for check in everything if _shown(check, here)]


def _shown(check: Check, here: str) -> bool:
    return check.only in ("any", here) or check.value is not None


def _link(medians: Medians) -> list[Check]:
    ceiling = "copy to device"
    found = [
        Check("hot read / pinned copy", medians.ratio("hot read", ceiling), 0.95, only="gpu"),
        Check("hot read CPU", medians.cpu("hot read"), 0.17, False, "s/GB", "gpu"),
        Check("tmpfs later read / pinned copy", medians.ratio("tmpfs later read", ceiling), 0.97, only="gpu"),
        Check("tmpfs later read CPU", medians.cpu("tmpfs later read"), 0.05, False, "s/GB", "gpu"),
        Check("tmpfs first read / pinned copy", medians.ratio("tmpfs first read", ceiling), 0.90, only="gpu"),
        Check("hot read / pread and memcpy", medians.ratio("hot read", "pread and memcpy"), 0.95, only="host"),
    ]
    best = medians.best("KvikIO")
    if best is not None:
        found.append(Check(f"hot read / {best[0]} (its best)", medians.ratio("hot read", best[0]), 1.0, only="gpu"))
    return found


def _storage(medians: Medians) -> list[Check]:
    found = []
    for name in ("cold read", "direct read", "cold write", "direct write"):
        base = "host threads " + name.split()[1]
        found.append(Check(f"{name} / {base}", medians.ratio(name, base), 0.97, only="gpu"))
        found.append(Check(f"{name} CPU", medians.cpu(name), 0.15, False, "s/GB", "gpu"))
    found.append(Check("cold read / fio", medians.ratio("cold read", "fio read"), 0.95, only="host"))
    return found


def _small(medians: Medians) -> list[Check]:
    return [
        Check("4 KiB one at a time, median", medians.field("4 KiB one at a time", "median_us"), 12, False, "us", "gpu"),
        Check("4 KiB queued", medians.field("4 KiB queued", "requests_per_second"), 0.5e6, True, "/s", "gpu"),
    ]


def _memory(rows: Rows) -> list[Check]:
    for row in rows:
        if row["kind"] == "memory":
            bound = row["budget_bytes"] + MEMORY_SPARE_BYTES
            what = f"peak memory reading {row['bytes'] / 2**30:.0f} GiB"
            return [Check(what, row["peak_rss_bytes"] / 2**20, bound / 2**20, False, "MiB")]
    return [Check("peak memory", None, 0, False, "MiB")]
