"""Probes in rounds: every probe once a round, in shuffled order, so that what changes with time hits all alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.bench.grid import Step
from penstock.bench.results import Results
from penstock.bench.workspace import NotPossible

Sample = dict[str, Any]  # bytes, seconds, and what else the probe knows


class Absent(Exception):
    """A peer that is not installed, or cannot run here; says why."""


@dataclass(frozen=True)
class Probe:
    """One thing that is measured once a round."""

    name: str
    measure: Callable[[int], Sample]  # round number -> sample


def run_rounds(results: Results, kind: str, probes: list[Probe], repeats: int, step: Step) -> None:
    """Adds one row of `kind` for each probe and round that has none yet. What cannot be measured is added once, as
    missing."""
    order = random.Random(11)
    total = repeats * len(probes)
    missing = {probe.name for probe in probes if results.has("missing", name=probe.name)}
    for turn in range(repeats):
        order.shuffle(probes)
        for index, probe in enumerate(probes):
            step(turn * len(probes) + index, total, probe.name)
            if probe.name in missing or results.has(kind, name=probe.name, round=turn):
                continue
            try:
                sample = probe.measure(turn)
            except (NotPossible, Absent) as reason:
                missing.add(probe.name)
                results.add("missing", name=probe.name, cause=str(reason))
                continue
            rate = sample["bytes"] / sample["seconds"]
            results.add(kind, name=probe.name, round=turn, bytes_per_second=rate, **sample)
