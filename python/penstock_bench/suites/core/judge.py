"""What the suite `core` promises."""

from __future__ import annotations

from penstock_bench.engine.promises import Check, Medians, Rows, judged

MEMORY_SPARE_BYTES = 100 << 20


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, "core")
    return judged(rows, _link(medians) + _storage(medians) + _small(medians) + _memory(rows))


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
