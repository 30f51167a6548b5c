"""What stands in the cells of tables, on a terminal and on the page: the same numbers in the same words."""

from __future__ import annotations

import statistics
from typing import Any

from penstock_bench.engine.intervals import Estimate, estimate
from penstock_bench.engine.results import median_cpu

Rows = list[dict[str, Any]]
PERCENTILES = ("p50_us", "p99_us", "p999_us", "max_us")
BYTES_MIN = 4096  # less is no transfer: then the time is what was measured
HOT_MEDIA_MAX = 0.05  # of a read of the page cache: others may use the disk meanwhile


def gigabytes(rate: float | None) -> str:
    return "" if rate is None else f"{rate / 1e9:.3g}"


def interval_text(found: Estimate) -> str:
    """The interval of a rate, in GB/s; empty with too few samples."""
    return "" if found.low is None or found.high is None else f"{found.low / 1e9:.3g}–{found.high / 1e9:.3g}"


def rate_cells(rows: Rows) -> tuple[str, str]:
    """Median and interval, in GB/s; in milliseconds of what moves no bytes to speak of."""
    if not any(row["bytes"] >= BYTES_MIN for row in rows):
        found = estimate([row["seconds"] * 1e3 for row in rows])
        low, high = found.low, found.high
        return f"{found.median:.3g} ms", "" if low is None or high is None else f"{low:.3g}–{high:.3g}"
    rates = estimate([row["bytes_per_second"] for row in rows])
    return gigabytes(rates.median), interval_text(rates)


def cpu_text(rows: Rows) -> str:
    """CPU seconds for 10^9 bytes; empty of what moves no bytes to speak of."""
    cost = median_cpu(rows)
    return "" if cost is None or not any(row["bytes"] >= BYTES_MIN for row in rows) else f"{cost:.3f}"


def share_text(value: float, whole: float | None) -> str:
    return "" if not whole else f"{value / whole:.0%}"


def durable_rate(rows: Rows) -> float | None:
    """Median rate of writes with what it takes to have them on stable storage; None for reads, and where it was not
    timed."""
    times = [(row["bytes"], row["seconds"] + row["fsync_s"]) for row in rows if "fsync_s" in row]
    return statistics.median(bytes / seconds for bytes, seconds in times) if times else None


def media_text(rows: Rows) -> str:
    """Bytes on the medium for each byte moved; marked where a read of the page cache should not have touched it."""
    shares = [share for row in rows if (share := media_share(row)) is not None]
    if not shares:
        return "-"
    middle = statistics.median(shares)
    strange = rows[0].get("cache") == "hot" and rows[0].get("direction") == "read" and middle > HOT_MEDIA_MAX
    return f"{middle:.2f}" + "!" * strange


def media_share(row: dict[str, Any]) -> float | None:
    """None where no block device counts."""
    writes = row.get("direction") == "write" or "fsync_s" in row
    moved = row.get("media_write_bytes" if writes else "media_read_bytes")
    return None if moved is None or not row["bytes"] else float(moved) / row["bytes"]


def source_names(rows: Rows) -> str:
    """The names of the rows, of rows that a report has named."""
    return " ".join(dict.fromkeys(row["source"] for row in rows if "source" in row))


def are_named(rows: Rows) -> bool:
    return any("source" in row for row in rows)


def latency_text(rows: Rows) -> str:
    """Medians over the rounds of the percentiles of single requests; empty where requests were not timed each."""
    if not all(name in row for row in rows for name in PERCENTILES):
        return ""
    return "/".join(f"{statistics.median(row[name] for row in rows):.3g}" for name in PERCENTILES)
