"""Probes in rounds: what run_rounds refuses, because the rows would tell less than they seem to."""

from __future__ import annotations

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
