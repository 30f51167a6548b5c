"""The suite `data`: what one small read of an array file costs, beside the library that people use for it today.

Each probe is a pair of calls, ours and theirs, which take turns and whose arrays are compared first. The files are in
the page cache. The time of a small read is that of the processor, of all threads of the process, because this is what
such reads take; both sides give arrays of NumPy, so these are absent on a GPU. Large reads, many reads in one call and
those into memory of a GPU are timed by the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from penstock import Error
from penstock_bench.engine.rounds import Absent, Probe, Sample, run_rounds
from penstock_bench.suites.data import files, large, many, training
from penstock_bench.suites.data.pair import Call, Pair
from penstock_bench.suites.data.pairs import needed, pairs

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

_WARM = 3  # calls of each side that are not counted; none of a call that is made once, after it was compared


def run_suite(run: Run) -> None:
    probes = pairs(run)
    run.step(0, len(probes), "making the files")
    for module in (files, large, many, training):
        module.make(run)
    began = time.monotonic()
    heavy = replace(run, definition=replace(run.definition, repeats=_heavy_rounds(run)))
    for part, is_heavy in ((heavy, True), (run, False)):
        some = [pair for pair in probes if pair.is_heavy == is_heavy]
        if not run_rounds(part, [Probe(pair.name, partial(measure, run, pair)) for pair in some], began):
            return


def _heavy_rounds(run: Run) -> int:
    """Rounds of what takes about a second a call."""
    return min(run.definition.repeats, int(run.settings.get("heavy_repeats", run.definition.repeats)))


def measure(run: Run, pair: Pair, turn: int) -> Sample:
    """Medians of both sides, in one round."""
    if not run.emulated and not pair.by_clock:
        raise Absent("the arrays are to be NumPy's, and the device is a GPU")
    needed(pair)
    calls = max(1, round(int(run.settings["calls"]) * pair.calls))
    with ExitStack() as stack:
        ours, theirs = pair.make(stack)
        _compare(pair, ours, theirs)
        clock = time.perf_counter_ns if pair.by_clock else time.process_time_ns
        times = [_times(one, calls, turn, clock) for one in (ours, theirs, ours, theirs)]
    mine, others = (times[side] + times[side + 2] for side in (0, 1))
    middle, other = statistics.median(mine), statistics.median(others)
    return {
        "bytes": pair.bytes * len(mine),
        "seconds": sum(mine),
        "cpu_user_s": sum(mine),
        "cpu_system_s": 0.0,
        "peer": pair.peer,
        "calls": len(mine),
        "median_us": middle * 1e6,
        "peer_us": other * 1e6,
        "times_peer": middle / other,
    }


def _times(call: Call, calls: int, turn: int, clock: Callable[[], int]) -> list[float]:
    found = []
    for number in range(-min(_WARM, calls - 1), calls):
        start = clock()
        call(number + _WARM + turn)
        if number >= 0:
            found.append((clock() - start) / 1e9)
    return found


def _on_host(found: Any) -> np.ndarray:
    if isinstance(found, penstock.Array):
        return found.to_numpy()
    return found.get() if hasattr(found, "get") else np.asarray(found)


def _compare(pair: Pair, ours: Call, theirs: Call) -> None:
    """That both read the same: at the first call, and where that is quick at one that comes after it."""
    for turn in range(1 if pair.is_heavy else 2):
        mine, others = _on_host(ours(turn)), _on_host(theirs(turn))
        if mine.tobytes() != others.tobytes() or mine.tobytes() == bytes(mine.nbytes):
            cause = f"{pair.name}: Penstock and {pair.peer} read different elements"
            raise Error(code="io_error", operation="verify", cause=cause, advice="do not trust these results")
