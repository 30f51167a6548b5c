"""What the suite `simulation` promises: A1 to A3 of histories, B2 of snapshots. Those of histories are for a GPU, which
computes while the cores of the host write; on a host alone both share the cores.

A1: the model stands still for 2 ms a step at most, computes at most 1 % slower, and ends at most 1.3 writes of a step
later than without output. A2: where writing takes longer than computing, the rate is 0.95 of the engine's own, from the
moment when there is something to write. A3: output takes at most a third of what netCDF-C in the step takes. B2: a
snapshot on stable storage has 0.9 of the rate of the same bytes alone, and 2.5 times that of h5py as SWIFT writes; of
64 MiB or more, because small ones take the disk's time. E1: one file of all ranks is written at the rate of parallel
HDF5 with independent calls or faster, by what waits as these calls do, and rank 0 lays out a file of 100 variables in
5 ms. Compressed: a core packs four times as much as netCDF-C's at the same level of deflate, and so do the other codecs
beside its usual level.
"""

from __future__ import annotations

from penstock_bench.engine.promises import Check, Medians, Rows, judged
from penstock_bench.suites.simulation import packing, particles
from penstock_bench.suites.simulation.measure import ENGINE, KIND
from penstock_bench.suites.simulation.ranks import cases as ranks
from penstock_bench.suites.simulation.ways import (
    CLASSIC,
    DEFAULT_STREAM,
    NETCDF4,
    NOTHING,
    USUAL_CLASSIC,
    USUAL_NETCDF4,
)

LARGE_BYTES = 64 << 20
LAYOUT_MS = 5.0
BLOCKING = {ranks.HISTORY: ranks.SLOTLESS, ranks.SNAPSHOT: ranks.PENSTOCK}  # what waits as HDF5's calls do
BESIDE = {NETCDF4: USUAL_NETCDF4, CLASSIC: USUAL_CLASSIC, DEFAULT_STREAM: USUAL_NETCDF4}


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, KIND)
    ways = [way for way in BESIDE if way in medians.rows or way != DEFAULT_STREAM]
    of_ways = [one for way in ways for one in _of_way(medians, way)]
    return judged(rows, of_ways + _of_snapshots(rows, medians) + _of_ranks(medians) + _of_packing(medians))


def _of_snapshots(rows: Rows, medians: Medians) -> list[Check]:
    sizes = [row["step_bytes"] for row in rows if row.get("name") == particles.SNAPSHOT]
    if not sizes or min(sizes) < LARGE_BYTES:
        return []
    beside = ((particles.PLAIN, 0.9), (particles.H5PY, 2.5))
    return [
        Check(f"B2, snapshot / {other.partition(', ')[2]}", medians.ratio(particles.SNAPSHOT, other), bound)
        for other, bound in beside
    ]


def _of_ranks(medians: Medians) -> list[Check]:
    """By the most ranks that were measured. Laying out is told by the fewest: no rank waits for others meanwhile."""
    known = {row["ranks"] for group in medians.rows.values() for row in group if row.get("by") == ranks.PENSTOCK}
    found: list[Check] = []
    for file, way in BLOCKING.items() if known else ():
        ours, theirs = (ranks.name_of(file, max(known), one) for one in (way, ranks.INDEPENDENT))
        if medians.rows[ours] and medians.rows[ours][0]["bytes"] >= LARGE_BYTES:
            slots = ", no slots," * (way == ranks.SLOTLESS)
            what = f"E1, {file}{slots} of {max(known)} ranks / parallel HDF5, independent"
            found.append(Check(what, medians.ratio(ours, theirs), 1))
    if known:
        small = ranks.name_of(ranks.SMALL, min(known), ranks.PENSTOCK)
        what = f"E1, {ranks.SMALL}: laid out by rank 0 in"
        found.append(Check(what, medians.field(small, "layout_ms"), LAYOUT_MS, False, "ms"))
    return found


def _of_packing(medians: Medians) -> list[Check]:
    found = []
    usual = packing.USUAL.format(packing.LEVEL)
    pairs = [(packing.GZIP.format(1), packing.USUAL.format(1)), (packing.GZIP.format(packing.LEVEL), usual)]
    pairs += [(packing.ZSTD, usual), (packing.LZ4, usual)]
    for values in (packing.NOISE, packing.ROUNDED):
        for way, peer in pairs:
            rates = [medians.field(packing.name_of(values, one), "core_bytes_per_second") for one in (way, peer)]
            if rates[0] and rates[1]:
                found.append(Check(f"compressed, {values}: a core by {way} / {peer}", rates[0] / rates[1], 4))
    return found


def slower_percent(medians: Medians, way: str) -> float | None:
    """How much longer the model computes than without output."""
    alone, beside = medians.field(NOTHING, "compute_ms"), medians.field(way, "compute_ms")
    return 100 * (beside / alone - 1) if alone and beside else None


def added_seconds(medians: Medians, way: str) -> float | None:
    """How much later the run ends than without output."""
    alone, all_of_it = medians.field(NOTHING, "seconds"), medians.field(way, "seconds")
    return None if alone is None or all_of_it is None else all_of_it - alone


def writes_late(medians: Medians, way: str) -> float | None:
    """The same, in writes of one step by the engine."""
    added, write_ms = added_seconds(medians, way), medians.field(ENGINE, "step_write_ms")
    return None if added is None or not write_ms else added * 1e3 / write_ms


def rate_of_engine(medians: Medians, way: str) -> float | None:
    """The rate while there was something to write, as a part of the engine's own."""
    seconds, bytes, engine = medians.field(way, "output_s"), medians.field(way, "bytes"), medians.rate(ENGINE)
    return bytes / seconds / engine if seconds and bytes and engine else None


def _of_way(medians: Medians, way: str) -> list[Check]:
    write_ms, compute_ms = medians.field(ENGINE, "step_write_ms"), medians.field(NOTHING, "compute_ms")
    found = [Check(f"A1, {way}: stall of a step", medians.field(way, "stall_ms"), 2, False, "ms", "gpu")]
    found.append(Check(f"A1, {way}: the model computes slower by", slower_percent(medians, way), 1, False, "%", "gpu"))
    if write_ms and compute_ms and write_ms > compute_ms:
        found.append(Check(f"A2, {way}: rate / the engine's own", rate_of_engine(medians, way), 0.95, only="gpu"))
    else:
        late = writes_late(medians, way)
        found.append(Check(f"A1, {way}: writes of a step that the run ends later", late, 1.3, False, only="gpu"))
    ours, theirs = added_seconds(medians, way), added_seconds(medians, BESIDE[way])
    times = theirs / max(ours, 1e-9) if ours is not None and theirs is not None else None
    found.append(Check(f"A3, {way}: time that output adds, {BESIDE[way]} / ours", times, 3, only="gpu"))
    return found
