"""What the suite `simulation` promises: A1 to A3 of histories, B2 of snapshots. Those of histories are for a GPU, which
computes while the cores of the host write; on a host alone both share the cores.

A1: the model stands still for 2 ms a step at most, computes at most 1 % slower, and ends at most 1.3 writes of a step
later than without output. A2: where writing takes longer than computing, the rate is 0.95 of the engine's own. A3:
output takes at most a third of what netCDF-C in the step takes. B2: a snapshot on stable storage has 0.9 of the rate of
the same bytes alone, and 2.5 times that of h5py as SWIFT writes; of 64 MiB or more, because small ones take the disk's
time.
"""

from __future__ import annotations

from penstock_bench.engine.promises import Check, Medians, Rows, judged
from penstock_bench.suites.simulation import particles
from penstock_bench.suites.simulation.measure import ENGINE, KIND
from penstock_bench.suites.simulation.ways import CLASSIC, NETCDF4, NOTHING, USUAL_CLASSIC, USUAL_NETCDF4

LARGE_BYTES = 64 << 20
BESIDE = {NETCDF4: USUAL_NETCDF4, CLASSIC: USUAL_CLASSIC}


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, KIND)
    return judged(rows, [one for way in BESIDE for one in _of_way(medians, way)] + _of_snapshots(rows, medians))


def _of_snapshots(rows: Rows, medians: Medians) -> list[Check]:
    sizes = [row["step_bytes"] for row in rows if row.get("name") == particles.SNAPSHOT]
    if not sizes or min(sizes) < LARGE_BYTES:
        return []
    beside = ((particles.PLAIN, 0.9), (particles.H5PY, 2.5))
    return [
        Check(f"B2, snapshot / {other.partition(', ')[2]}", medians.ratio(particles.SNAPSHOT, other), bound)
        for other, bound in beside
    ]


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


def _of_way(medians: Medians, way: str) -> list[Check]:
    write_ms, compute_ms = medians.field(ENGINE, "step_write_ms"), medians.field(NOTHING, "compute_ms")
    found = [Check(f"A1, {way}: stall of a step", medians.field(way, "stall_ms"), 2, False, " ms", "gpu")]
    found.append(Check(f"A1, {way}: the model computes slower by", slower_percent(medians, way), 1, False, " %", "gpu"))
    if write_ms and compute_ms and write_ms > compute_ms:
        rate = medians.ratio(way, ENGINE)
        found.append(Check(f"A2, {way}: rate / the engine's own", rate, 0.95, only="gpu"))
    else:
        late = writes_late(medians, way)
        found.append(Check(f"A1, {way}: writes of a step that the run ends later", late, 1.3, False, only="gpu"))
    ours, theirs = added_seconds(medians, way), added_seconds(medians, BESIDE[way])
    times = theirs / max(ours, 1e-9) if ours is not None and theirs is not None else None
    found.append(Check(f"A3, {way}: time that output adds, {BESIDE[way]} / ours", times, 3, only="gpu"))
    return found
