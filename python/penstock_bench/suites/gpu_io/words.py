"""What the suite `gpu-io` says in a sentence or two, with the rows that say so."""

from __future__ import annotations

from typing import Any

from penstock_bench.engine.numbers import thousands, three_figures
from penstock_bench.engine.promises import Medians
from penstock_bench.engine.statement import Statement
from penstock_bench.suites.gpu_io import judge
from penstock_bench.suites.gpu_io.own import LARGE, SMALL, name_of

Rows = list[dict[str, Any]]


def of_gpu_io(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "gpu-io")
    return [one for one in (_requests(medians), _disk(medians), _cache(medians)) if one is not None]


def _requests(medians: Medians) -> Statement | None:
    """The most from a file in memory, beside the ceiling, and one alone."""
    best = medians.best(f"{judge.IN_MEMORY}, ")
    if best is None:
        return None
    used = list(medians.rows[best[0]])
    rate = medians.field(best[0], "operations_per_second") or 0.0
    text = f"The device's own threads read {thousands(rate)} random pages of 4 KiB a second from a file in memory"
    ceiling = name_of(judge.LOCKED, (SMALL, False))
    share = medians.ratio(best[0], ceiling)
    if share:
        text += f", {share:.0%} of what they read from page-locked memory"
        used += medians.rows[ceiling]
    alone = "one request alone, not checked"
    time = medians.field(alone, "p50_us") if alone in medians.rows else None
    if time:
        text += f"; one request alone takes {three_figures(time)} us"
        used += medians.rows[alone]
    return Statement(f"{text}.", used)


def _disk(medians: Medians) -> Statement | None:
    said, used = [], []
    for request, what in (((SMALL, False), "random reads of 4 KiB"), ((LARGE, True), "sequential ones of 128 KiB")):
        name = name_of("disk", request)
        host = judge.best_host(medians, name)
        share = medians.ratio(name, host) if host else None
        if host and share:
            said.append(f"{share:.0%} of the host's own {what}")
            used += medians.rows[name] + medians.rows[host]
    return Statement(f"From a disk they get {' and '.join(said)}.", used) if said else None


def _cache(medians: Medians) -> Statement | None:
    name, other = "rows gathered", "rows by numpy.memmap and copy"
    rate = medians.field(name, "operations_per_second") if name in medians.rows else None
    if not rate:
        return None
    used = list(medians.rows[name])
    text = f"Random rows of 512 bytes of a file twice the cache come at {thousands(rate)} a second"
    if other in medians.rows:
        text += f", {thousands(medians.field(other, 'operations_per_second') or 0.0)} by numpy.memmap and a copy"
        used += medians.rows[other]
    return Statement(f"{text}.", used)
