"""Probes in rounds: every probe once a round, in shuffled order, so that what changes with time hits all alike."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from penstock import Error
from penstock.calibration.workspace import NotPossible
from penstock_bench.engine.run import Run

Sample = dict[str, Any]  # bytes, seconds, and what else the probe knows


class Absent(Exception):
    """A peer that is not installed, or cannot run here; says why."""


def need(*modules: str) -> None:
    """Absent unless all these modules of Python are installed."""
    for module in modules:
        if find_spec(module) is None:
            raise Absent(f"{module} is not installed")


@dataclass(frozen=True)
class Probe:
    """One thing that is measured once a round."""

    name: str
    measure: Callable[[int], Sample]  # round number -> sample
    group: str = ""  # probes of one group follow each other in a round, for they share what is dear to make


def run_rounds(run: Run, probes: list[Probe], began: float | None = None) -> bool:
    """Adds one row of the suite's kind for each probe and round that has none yet. No probe begins after the seconds of
    the definition, which count from now on, or from `began` on (time.monotonic). What cannot be measured is added once,
    as missing. False when the limit passed first: a row of kind "stopped" says what it cost. Requires: no two probes
    have one name, for the second would never be measured."""
    _need_own_names(probes)
    kind, repeats, seconds = run.definition.kind, run.definition.repeats, run.definition.seconds
    results = run.results
    order = random.Random(11)
    began = time.monotonic() if began is None else began
    total = repeats * len(probes)
    missing = {probe.name for probe in probes if results.has("missing", name=probe.name)}
    for turn in range(repeats):
        order.shuffle(probes)
        _gather(probes)
        for index, probe in enumerate(probes):
            done = turn * len(probes) + index
            if probe.name in missing or results.has(kind, name=probe.name, round=turn):
                continue
            if time.monotonic() - began > seconds:
                results.add("stopped", cause=f"time limit of {seconds:g} s", done=done, planned=total)
                return False
            run.step(done, total, probe.name)
            try:
                sample = probe.measure(turn)
            except (NotPossible, Absent) as reason:
                missing.add(probe.name)
                results.add("missing", name=probe.name, cause=str(reason))
                continue
            rate = sample["bytes"] / sample["seconds"]
            results.add(kind, name=probe.name, round=turn, bytes_per_second=rate, **sample)
    return True


def _need_own_names(probes: list[Probe]) -> None:
    for name, number in Counter(probe.name for probe in probes).items():
        if number > 1:
            cause = f"{number} probes have the name '{name}', and a round would measure one of them"
            raise Error(code="invalid_argument", operation="run_rounds", cause=cause, advice="give each its own name")


def _gather(probes: list[Probe]) -> None:
    """Each group at the place of its first probe, in the order that its probes have."""
    places: dict[str, int] = {}
    for place, probe in enumerate(probes):
        places.setdefault(probe.group or probe.name, place)
    probes.sort(key=lambda probe: places[probe.group or probe.name])
