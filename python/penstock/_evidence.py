"""Evidence of a run of several transfers, from theirs and from what the system counted around the whole run.

Transfers of one run overlap, so counters of the process are read once around all of them and never summed; bytes per
path, fallbacks and notes are summed.
"""

from __future__ import annotations

import resource
from collections import Counter
from pathlib import Path
from typing import Any

from penstock._api import File, Outcome

_IO_NAMES = {
    "rchar": "read_chars",
    "wchar": "write_chars",
    "syscr": "read_calls",
    "syscw": "write_calls",
    "read_bytes": "read_bytes",
    "write_bytes": "write_bytes",
}


class Meter:
    """CPU time, process I/O and page-cache residency between start and stop."""

    def __init__(self, file: File, offset_bytes: int, bytes: int) -> None:
        self._file, self._offset, self._bytes = file, offset_bytes, bytes
        self.cpu_user_s = self.cpu_system_s = 0.0
        self.process_io: dict[str, int] | None = None
        self.before = self.after = None

    def __enter__(self) -> Meter:
        self.before = self._residency()
        self._io = process_io()
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu_user_s = usage.ru_utime - self._usage.ru_utime
        self.cpu_system_s = usage.ru_stime - self._usage.ru_stime
        io = process_io()
        if io is not None and self._io is not None:
            self.process_io = {name: io[name] - self._io[name] for name in io}
        if kind is None:
            self.after = self._residency()

    def _residency(self) -> dict[str, Any] | None:
        found = self._file.residency(self._offset, self._bytes) if self._bytes else None
        return None if found is None or found["resident_fraction"] is None else found


def process_io() -> dict[str, int] | None:
    """/proc/self/io; None where the kernel does not tell."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    pairs = (line.split(":") for line in lines)
    return {_IO_NAMES[name]: int(value) for name, value in pairs if name in _IO_NAMES}


def peak_rss_bytes() -> int | None:
    """Most memory this process has held. Not ru_maxrss, which a child inherits from the process that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def merge(outcomes: list[Outcome], meter: Meter) -> dict[str, Any]:
    """One evidence object for the run. That of a single transfer is passed on as it is."""
    if len(outcomes) == 1:
        return outcomes[0].evidence
    merged: dict[str, Any] = {
        "path": path_name(outcomes),
        "paths": sum_by(outcomes, "paths", ("path", "from_pinned_mapping", "past_page_cache")),
        "residency_before": meter.before,
        "residency_after": meter.after,
        "process_io": meter.process_io,
        "cufile": None,
        "fallbacks": sum_by(outcomes, "fallbacks", ("wanted", "took", "cause")),
        "notes": distinct(note for outcome in outcomes for note in outcome.evidence["notes"]),
        "pinned_peak_bytes": max((o.evidence["pinned_peak_bytes"] for o in outcomes), default=0),
        "cpu_user_s": meter.cpu_user_s,
        "cpu_system_s": meter.cpu_system_s,
        "plan": plans(outcomes),
    }
    merged["paths"].sort(key=lambda share: -share["bytes"])
    if any(outcome.evidence.get("cufile") for outcome in outcomes):
        merged["notes"].append("cuFile counters overlap between windows and are not summed")
    return merged


def path_name(outcomes: list[Outcome]) -> str:
    """The path that moved all bytes, "mixed", or "none"."""
    names = {outcome.path for outcome in outcomes if outcome.bytes}
    return names.pop() if len(names) == 1 else ("mixed" if names else "none")


def sum_by(outcomes: list[Outcome], name: str, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in (entry for outcome in outcomes for entry in outcome.evidence[name]):
        total = sums.setdefault(tuple(entry.get(key) for key in keys), dict.fromkeys(entry, 0))
        for key, value in entry.items():
            total[key] = value if key in keys else total[key] + value
    return list(sums.values())


def plans(outcomes: list[Outcome]) -> str:
    """The plans of all windows, equal ones once with their number."""
    counts = Counter(outcome.evidence["plan"] for outcome in outcomes)
    return "\n".join(f"{count} x {plan}" if count > 1 else plan for plan, count in counts.items())


def distinct(values: Any) -> list[str]:
    return list(dict.fromkeys(values))
