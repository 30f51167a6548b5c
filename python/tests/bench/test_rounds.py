"""Probes in rounds: what run_rounds refuses, because the rows would tell less than they seem to."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import pytest

from penstock import Error
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.results import Results
from penstock_bench.engine.rounds import Probe, run_rounds
from penstock_bench.engine.run import Run


def test_two_probes_of_one_name_are_refused_before_one_is_measured() -> None:
    measured: list[str] = []
    probes = [
        Probe(name, lambda _, peer=peer: measured.append(peer) or {"bytes": 1, "seconds": 1.0})
        for name, peer in (("alone", "one"), ("read", "nvCOMP"), ("read", "all cores"))
    ]
    of = SimpleNamespace(definition=Definition("x", repeats=2), results=Results(None), step=lambda *_: None)
    with pytest.raises(Error, match="2 probes have the name 'read'") as refused:
        run_rounds(cast(Run, of), probes)
    assert refused.value.code == "invalid_argument" and measured == []
    run_rounds(cast(Run, of), probes[:2])
    assert sorted(measured) == ["nvCOMP", "nvCOMP", "one", "one"]


def test_two_parts_of_a_suite_have_one_time_limit() -> None:
    """The second part begins when the time of both is over."""
    measured: list[str] = []

    def part(name: str) -> list[Probe]:
        return [Probe(name, lambda _: measured.append(name) or {"bytes": 1, "seconds": 1.0})]

    definition, results = Definition("x", repeats=1, seconds=3600.0), Results(None)
    of = cast(Run, SimpleNamespace(definition=definition, results=results, step=lambda *_: None))
    began = time.monotonic()
    assert run_rounds(of, part("heavy"), began) and measured == ["heavy"]
    assert not run_rounds(of, part("light"), began - 3601) and measured == ["heavy"]
    (stopped,) = [row for row in results.rows if row["kind"] == "stopped"]
    assert (stopped["done"], stopped["planned"]) == (0, 1)
