"""What the suite `gpu-io` promises, judged where a GPU made the requests."""

from __future__ import annotations

from penstock_bench.engine.promises import Check, Medians, Rows, judged
from penstock_bench.suites.gpu_io.blocks import BESIDES
from penstock_bench.suites.gpu_io.own import LARGE, ROW_BYTES, SIZES, SMALL, name_of, through_cache

CURVE_THREADS = 32  # blocks from here on
HOSTS = ("host threads", "host io_uring")
IN_MEMORY = name_of("memory", (SMALL, False))
STREAMED = name_of("memory", (LARGE, True))
LOCKED = "ceiling, page-locked memory,"
REGISTERED = "ceiling, registered file,"


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, "gpu-io")
    found = _requests(medians) + _disk(medians) + _cache(medians)
    return judged(rows, found)


def _gpu(what: str, value: float | None, bound: float, at_least: bool = True, unit: str = "") -> Check:
    return Check(what, value, bound, at_least, unit, "gpu")


def _millions(medians: Medians, name: str) -> float | None:
    rate = medians.field(name, "operations_per_second")
    return rate / 1e6 if rate else None


def _requests(medians: Medians) -> list[Check]:
    small = (SMALL, False)
    found = [
        _gpu(
            f"random 4 KiB in memory, {count} threads",
            _millions(medians, f"{IN_MEMORY}, {count} service threads"),
            least,
            unit="M/s",
        )
        for count, least in ((12, 11), (4, 8))
    ]
    return found + [
        _gpu(
            "registered file / page-locked memory",
            medians.ratio(name_of(REGISTERED, small), name_of(LOCKED, small)),
            0.95,
        ),
        _gpu("one request alone, median", medians.field("one request alone, not checked", "p50_us"), 6, False, "us"),
        _gpu("slowest of 32 to 1024 threads a block / fastest", curve(medians), 0.80),
        _gpu("the same, reads of 128 KiB in sequence", curve(medians, BESIDES, name_of("reads", (LARGE, True))), 0.80),
        _gpu("the same, writes of 4 KiB at random", curve(medians, BESIDES, name_of("writes", small)), 0.80),
        _gpu(
            "sequential 128 KiB in memory / page-locked memory",
            medians.ratio(STREAMED, name_of(LOCKED, (LARGE, True))),
            0.90,
        ),
    ]


def curve(medians: Medians, subject: str = "blocks", ending: str = "") -> float | None:
    """The slowest by the fastest of the blocks with a ring for each warp, of cells whose names end so."""
    rates = [
        rate
        for name, group in medians.rows.items()
        if name.endswith(ending)
        and group[0]["subject"] == subject
        and group[0]["rings"] == 0
        and group[0]["threads"] >= CURVE_THREADS
        if (rate := medians.rate(name))
    ]
    return min(rates) / max(rates) if len(rates) > 1 else None


def best_host(medians: Medians, name: str) -> str | None:
    """The faster of the host's own ways."""
    known = [(rate, f"{name}, {way}") for way in HOSTS if (rate := medians.rate(f"{name}, {way}"))]
    return max(known)[1] if known else None


def _beside_host(medians: Medians, name: str, bound: float) -> Check:
    best = best_host(medians, name)
    return _gpu(f"{name} / the host alone", medians.ratio(name, best) if best else None, bound)


def _disk(medians: Medians) -> list[Check]:
    reads = [_beside_host(medians, name_of("disk", request), 0.97) for request in ((SMALL, False), (LARGE, True))]
    writes = [_beside_host(medians, name_of("write", request), 0.90) for request in SIZES]
    return reads + writes + [_through_cache(medians, size) for size in (SMALL, LARGE)]


def _through_cache(medians: Medians, size: int) -> Check:
    """Beside writes of the host in sequence, which are not synced in their time."""
    name = through_cache(size)
    best = best_host(medians, name_of("write", (size, True)))
    return _gpu(f"{name} / the host alone", medians.ratio(name, best) if best else None, 0.90)


def _lone_miss(medians: Medians) -> float | None:
    miss = medians.field("one miss alone", "mean_us")
    request = medians.field("one request alone, checked", "mean_us")
    return miss / request if miss and request else None


def _rows_by_row(medians: Medians) -> float | None:
    return medians.ratio("rows gathered from tmpfs", name_of(REGISTERED, (ROW_BYTES, False)))


def _cache(medians: Medians) -> list[Check]:
    hits = medians.rate("element loads, all hits")
    raw = medians.ratio("as many warps as for misses", "rows gathered, all misses")
    found = [
        _gpu("element loads, all hits", hits / 1e9 if hits else None, 250, unit="GB/s"),
        _gpu("tiles, all hits / plain memory", medians.ratio("tiles, all hits", "tiles, plain memory"), 0.60),
        _gpu("a miss / a raw request, time", raw, 1.15, False),
        _gpu("one miss alone / one request alone, time", _lone_miss(medians), 1.15, False),
        _gpu("rows gathered from tmpfs / the mapping row by row", _rows_by_row(medians), 0.95),
    ]
    for name, bound in (("sweep with advice", 0.45), ("sweep without advice", 0.40)):
        found.append(_gpu(f"hit rate of a {name}", medians.field(name, "hit_rate"), bound))
    return found
