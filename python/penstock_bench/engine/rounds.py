"""Probes in rounds: every probe once a round, in shuffled order, so that what changes with time hits all alike."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from penstock.calibration.workspace import NotPossible
from penstock.cli.show import Step
from penstock_bench.engine.results import Results

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


@dataclass(frozen=True)
class Rounds:
    """How many, and for how long at most: no probe begins later than `seconds`."""

    repeats: int
    seconds: float


def run_rounds(results: Results, kind: str, probes: list[Probe], rounds: Rounds | int, step: Step) -> bool:
    """Adds one row of `kind` for each probe and round that has none yet; a number of rounds alone has no time limit.
    What cannot be measured is added once, as missing. False when the limit passed first: a row of kind "stopped" says
    what it cost."""
    repeats, seconds = (rounds, math.inf) if isinstance(rounds, int) else (rounds.repeats, rounds.seconds)
    order = random.Random(11)
    began = time.monotonic()
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
            step(done, total, probe.name)
            try:
                sample = probe.measure(turn)
            except (NotPossible, Absent) as reason:
                missing.add(probe.name)
                results.add("missing", name=probe.name, cause=str(reason))
                continue
            rate = sample["bytes"] / sample["seconds"]
            results.add(kind, name=probe.name, round=turn, bytes_per_second=rate, **sample)
    return True


def _gather(probes: list[Probe]) -> None:
    """Each group at the place of its first probe, in the order that its probes have."""
    places: dict[str, int] = {}
    for place, probe in enumerate(probes):
        places.setdefault(probe.group or probe.name, place)
    probes.sort(key=lambda probe: places[probe.group or probe.name])
