"""The page cache in the device's memory, as samples of the suite `gpu-io`: hits, misses, sweeps, gathers and writes.

What must stay true: what a cell is of (all hits, all misses) is what the cache counted while it ran, and what lies in
the cache afterwards, or was gathered from it, is checked on the device.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Error, _core, gpu
from penstock.calibration.workspace import FILE_SEED, NotPossible, make_cold, make_resident
from penstock_bench import _measure
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Sample
from penstock_bench.engine.stamped import check
from penstock_bench.suites.gpu_io.host import check_rows, rows_sample
from penstock_bench.suites.gpu_io.own import ROW_BYTES, row_numbers

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run
    from penstock_bench.suites.gpu_io.own import GpuIo

PAGE_BYTES = 4096
ITEM_BYTES = 4  # float32
PAGE_ITEMS = PAGE_BYTES // ITEM_BYTES
TILE_ITEMS = 4 * PAGE_ITEMS  # 16 KiB: what a warp asks for at once
TILE_BLOCKS = 2  # at once on a multiprocessor: registers for eight loads under way
COUNTS = ("hits", "misses", "joined", "evictions")
LONE_PAGES = 4096
LONE_PART = 4  # these pages by a cache that is full of others
LONE_BLOCKS = 2  # 64 registers a thread: with 32, the eight loads of a page's copy wait for each other
MISS_PART = 8  # the file by the cache
WRITTEN_PART = 8  # what is written by the cache


def loads(run: Run, own: GpuIo, tile: int, cached: bool) -> Sample:
    """Element loads (`tile` 1) or tiles of some pages, every one a hit; or the same from the device's memory."""
    items = own.cache_bytes // ITEM_BYTES
    shape = {"rounds": own.load_rounds, "tile": tile} | ({} if tile == 1 else {"resident": TILE_BLOCKS})
    if not cached:
        plain = run.memory(own.cache_bytes)
        _measure.time_loads(run.context._raw, 0, plain, items, **shape | {"rounds": 1})
        with Stopwatch() as watch:
            seconds, _ = _measure.time_loads(run.context._raw, 0, plain, items, **shape)
        return _loads_sample(own, seconds, watch) | {"took": "memory"}
    with _cache(run, own, own.ram, 2 * own.cache_bytes) as cache:
        _measure.time_loads(run.context._raw, cache.ref(0), None, items, **shape | {"rounds": 1})
        before = _counts(cache)
        with Stopwatch() as watch:
            seconds, _ = _measure.time_loads(run.context._raw, cache.ref(0), None, items, **shape)
        counts = _since(cache, before)
        if counts["misses"]:
            raise _not_as_meant(own.ram, f"{counts['misses']} of the loads that were to be hits were none")
        memory = run.memory(own.cache_bytes)
        cache.read(0, 0, memory)
        check(run.context, own.ram, memory, FILE_SEED, " in the page cache")
    return _loads_sample(own, seconds, watch) | counts | {"took": "cache"}


def misses(run: Run, own: GpuIo, turn: int) -> Sample:
    """Rows gathered at random, each of a page of its own that was not there before. Bytes are those of the pages."""
    import numpy as np

    pages, in_page = own.ram_bytes // PAGE_BYTES, PAGE_BYTES // ROW_BYTES
    random = np.random.default_rng(turn)
    numbers = random.permutation(pages)[: own.miss_rows] * in_page + random.integers(0, in_page, own.miss_rows)
    memory = run.memory(numbers.size * ROW_BYTES)
    with _cache(run, own, own.ram, max(own.ram_bytes // MISS_PART, 64 * PAGE_BYTES)) as cache:
        placed, rows = run.context.allocate(numbers.nbytes), (ROW_BYTES, 0, pages * in_page)
        for first in range(0, pages, numbers.size):  # then the service has mapped all of the file
            every = np.arange(first, first + numbers.size) % pages * in_page
            run.context.copy_to_device(placed, every.view("u1"))
            cache.gather(0, placed, memory, rows)
        cache.invalidate(0, 0, own.ram_bytes)
        run.context.copy_to_device(placed, numbers.view("u1"))
        before = _counts(cache)
        with Stopwatch() as watch:
            start = time.perf_counter()
            cache.gather(0, placed, memory, rows)
            seconds = time.perf_counter() - start
        counts = _since(cache, before)
    if counts["misses"] != numbers.size:
        raise _not_as_meant(own.ram, f"{counts['misses']} of {numbers.size} pages were misses")
    check_rows(run, numbers, memory, own.ram)
    return rows_sample(numbers.size, seconds, watch, PAGE_BYTES) | counts | {"took": "cache"}


def one_miss(run: Run, own: GpuIo, full: bool) -> Sample:
    """One warp that adds up page after page, each of which is not there before: a miss and its page's sum at a time.
    Where the cache is `full`, each of them drives out another."""
    pages = min(LONE_PAGES, own.ram_bytes // PAGE_BYTES // 2)
    wanted = pages * PAGE_BYTES
    shape = {"blocks": 1, "threads": 32, "rounds": 1, "tile": PAGE_ITEMS, "resident": LONE_BLOCKS}
    with _cache(run, own, own.ram, max(wanted // LONE_PART, PAGE_BYTES) if full else 2 * wanted) as cache:
        raw, ref, items = run.context._raw, cache.ref(0), pages * PAGE_ITEMS
        _measure.time_loads(raw, ref, None, items, **shape)  # then the service has these pages mapped
        cache.invalidate(0, 0, wanted)
        if full:
            cache.read(0, wanted, run.memory(wanted))  # of other pages
        before = _counts(cache)
        with Stopwatch() as watch:
            seconds, _ = _measure.time_loads(raw, ref, None, items, **shape)
        counts = _since(cache, before)
    if counts["misses"] != pages:
        raise _not_as_meant(own.ram, f"{counts['misses']} of {pages} pages were misses")
    if counts["evictions"] != (pages if full else 0):
        raise _not_as_meant(own.ram, f"{counts['evictions']} of {pages} pages drove out another")
    sample = rows_sample(pages, seconds, watch, PAGE_BYTES) | counts
    return sample | {"order": "sequential", "mean_us": seconds / pages * 1e6, "took": "cache"}


def writes(run: Run, own: GpuIo, size: int, slots: int, threads: int) -> Sample:
    """Whole pages in sequence onto the disk, through a cache of an eighth of them; its flush and sync are in the time.
    Then they are read back from the disk through the cache and compared with what was written."""
    data = own.cache_write_bytes[size] // size * size
    whole, seed = run.memory(2 * data), next(run.seeds)
    memory, again = whole.slice(0, data), whole.slice(data, data)
    cache_bytes = max(data // WRITTEN_PART, 64 * size)
    options = {"page_bytes": size, "cache_bytes": cache_bytes, "threads": threads, "map": False}
    own.storms.rest()
    run.context.stamp(memory, 0, seed)
    with run.context.open(run.workspace.target, write=True) as opened:
        make_cold(opened, run.bytes)
        cache = _core.device_cache(run.context._raw, [opened._raw], slots=slots, **options)
        try:
            with run.workspace.media.watch() as media, Stopwatch() as watch:
                start = time.perf_counter()
                cache.write(0, 0, memory)
                cache.flush()
                seconds = time.perf_counter() - start
            found = cache.statistics()
            if found["loaded_bytes"] or found["written_back_bytes"] < data:
                cause = (
                    f"{found['loaded_bytes']} bytes were read and {found['written_back_bytes']} of {data} written back"
                )
                raise _not_as_meant(run.workspace.target, cause)
            cache.invalidate(0, 0, data)
            make_cold(opened, run.bytes)
            cache.read(0, 0, again)
        finally:
            cache.close()
    check(run.context, run.workspace.target, again, seed, " written through the page cache")
    served = {name: [one["requests"], one["bytes"]] for name, one in _moved(found["served"]).items()}
    sample = rows_sample(data // size, seconds, watch, size) | media.fields() | {"order": "sequential", "took": "cache"}
    return sample | {"served": served, "write_backs": found["write_backs"], "verified_bytes": data}


def stores(run: Run, own: GpuIo) -> Sample:
    """Whole pages in sequence through a cache of an eighth of them into a file in memory that the device reaches
    itself; its flush is in the time. Afterwards the file has its own stamps again."""
    if own.ram_kind != "tmpfs":
        raise NotPossible("there is no room for the file in /dev/shm, and one on the disk is not registered")
    data = own.ram_bytes
    whole = run.memory(2 * data)
    memory, again = whole.slice(0, data), whole.slice(data, data)
    own.storms.rest()
    with run.context.open(own.ram, write=True) as opened:
        options = {"page_bytes": PAGE_BYTES, "cache_bytes": max(data // MISS_PART, 64 * PAGE_BYTES), "map": True}
        cache = _core.device_cache(run.context._raw, [opened._raw], **options)
    try:
        if refusal := cache.statistics()["arrays"][0]["mapping_refusal"]:
            raise NotPossible(refusal)
        for seed in (next(run.seeds), FILE_SEED):
            run.context.stamp(memory, 0, seed)
            before = cache.statistics()
            with Stopwatch() as watch:
                start = time.perf_counter()
                cache.write(0, 0, memory)
                cache.flush()
                seconds = time.perf_counter() - start
            found = cache.statistics()
            cache.invalidate(0, 0, data)
            cache.read(0, 0, again)
            check(run.context, own.ram, again, seed, " written to the registered file")
    finally:
        cache.close()
    gpu_pages, pages = found["served"]["gpu_pages"] - before["served"]["gpu_pages"], data // PAGE_BYTES
    if gpu_pages < pages:
        raise _not_as_meant(own.ram, f"the device moved {gpu_pages} of {pages} pages itself")
    sample = rows_sample(pages, seconds, watch, PAGE_BYTES) | {"order": "sequential", "took": "device, mapping"}
    return sample | {"write_backs": found["write_backs"] - before["write_backs"], "verified_bytes": data}


def _moved(served: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {name: one for name, one in served.items() if name not in ("gpu_pages", "gpu_rows") and one["requests"]}


def sweep(run: Run, own: GpuIo, advice: str) -> Sample:
    """Every page again and again in about the same order, with a cache of half of them. `hit_rate` is of visits to
    pages, after the first sweeps."""
    data = own.sweep_bytes
    items, pages = data // ITEM_BYTES, data // PAGE_BYTES
    shape = {"tile": PAGE_ITEMS}
    with _cache(run, own, own.ram, data // 2) as cache:
        cache.advise(0, advice)
        _measure.time_loads(run.context._raw, cache.ref(0), None, items, rounds=max(1, own.sweeps // 2), **shape)
        before = _counts(cache)
        with Stopwatch() as watch:
            seconds, _ = _measure.time_loads(run.context._raw, cache.ref(0), None, items, rounds=own.sweeps, **shape)
        counts = _since(cache, before)
        memory = run.memory(data)
        cache.read(0, 0, memory)
        check(run.context, own.ram, memory, FILE_SEED, " in the page cache")
    visits = own.sweeps * pages
    return (
        rows_sample(visits, seconds, watch, PAGE_BYTES)
        | counts
        | {
            "order": "sequential",
            "hit_rate": 1 - counts["misses"] / visits,
            "took": "cache",
        }
    )


def gather(run: Run, own: GpuIo, source: tuple[Path, str], turn: int) -> Sample:
    """Random rows through penstock.gpu, from a file twice the cache. `source`: the file, and what is fetched of it."""
    file, fetch = source
    numbers = row_numbers(run, own.gather_rows, turn)
    own.storms.rest()
    with run.context.open(file) as opened:
        make_resident(opened, run.bytes)
    shape = (-1, ROW_BYTES // 8)
    with gpu.open(file, "uint64", shape, context=run.context, cache_bytes=run.bytes // 2, fetch=fetch) as rows:
        rows.gather(row_numbers(run, own.peer_rows, turn + 1000))  # what is there then is as in the middle of work
        before = _tally(rows.stats())
        with Stopwatch() as watch:
            start = time.perf_counter()
            found = rows.gather(numbers)
            seconds = time.perf_counter() - start
        after = rows.stats()
        check_rows(run, numbers, found.as_bytes(), file)
    counts = {name: after[name] - before[name] for name in COUNTS}
    mapped = after["served"]["gpu_pages"] or after["served"]["gpu_rows"]
    return (
        rows_sample(numbers.size, seconds, watch)
        | counts
        | {
            "took": "device, mapping" if mapped else "service",
            "cache": "hot",
            "gpu_rows": after["served"]["gpu_rows"],
        }
    )


@contextmanager
def _cache(run: Run, own: GpuIo, file: Path, cache_bytes: int) -> Iterator[_core.DeviceCache]:
    """Over a file in memory that host threads serve, as many as the fastest storm has."""
    own.storms.rest()
    with run.context.open(file) as opened:
        options = {"page_bytes": PAGE_BYTES, "cache_bytes": cache_bytes, "threads": own.most_threads, "map": False}
        cache = _core.device_cache(run.context._raw, [opened._raw], slots=own.cache_slots, **options)
    try:
        yield cache
    finally:
        cache.close()


def _tally(statistics: dict[str, Any]) -> dict[str, int]:
    return {name: statistics[name] for name in COUNTS}


def _counts(cache: _core.DeviceCache) -> dict[str, int]:
    return _tally(cache.statistics())


def _since(cache: _core.DeviceCache, before: dict[str, int]) -> dict[str, int]:
    return {name: value - before[name] for name, value in _counts(cache).items()}


def _loads_sample(own: GpuIo, seconds: float, watch: Stopwatch) -> Sample:
    count = own.load_rounds * (own.cache_bytes // ITEM_BYTES)
    return rows_sample(count, seconds, watch, ITEM_BYTES) | {"order": "sequential"}


def _not_as_meant(file: Path, cause: str) -> Error:
    return Error(code="io_error", operation="bench", file=str(file), cause=cause, advice="report this as a bug")
