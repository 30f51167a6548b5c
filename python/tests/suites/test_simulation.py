"""The suite `simulation` at a tiny size on the emulated device: every way measured or missing with its cause, each file
compared with the model, promises judged as the definition says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lone_run import lone_run

from penstock import Context, Error
from penstock.calibration.workspace import Workspace
from penstock_bench.engine import definition
from penstock_bench.runs import definitions, session, stored, suites
from penstock_bench.suites.simulation import judge, measure, model, ways

Rows = list[dict[str, Any]]
SMALL = {"steps": 4, "mean_steps": 2, "step_ms": 1}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    place = tmp_path_factory.mktemp("simulation")
    whole = definitions.load("simulation", True)
    table = definition.Settings(place, whole.settings["simulation"] | SMALL)
    chosen = replace(whole, file_bytes=1 << 20, repeats=1, seconds=60.0, settings={"simulation": table})
    found = session.run(session.Request(chosen, "host", place, place / "rows.jsonl", True), lambda *_: None)
    assert [entry.name for entry in place.iterdir()] == ["rows.jsonl"], "output is removed"
    assert stored.read(place / "rows.jsonl") == json.loads(json.dumps(found))
    return found


def test_every_way_is_measured_or_missing_with_its_cause(rows: Rows) -> None:
    found = {row["name"]: row for row in rows if row["kind"] == "simulation"}
    absent = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    assert {*found, *absent} == {*ways.WAYS, measure.ENGINE} and not found.keys() & absent.keys()
    assert all("is not installed" in cause for cause in absent.values())
    assert {ways.NOTHING, ways.BLOCKING, ways.NETCDF4, ways.CLASSIC, measure.ENGINE} <= found.keys()
    step_bytes = found[ways.CLASSIC]["step_bytes"]
    assert abs(step_bytes / (1 << 20) - 1) < 0.1
    for name, row in found.items():
        assert row["bytes"] == (0 if name == ways.NOTHING else 4 * step_bytes), name
        if name != measure.ENGINE:
            assert row["seconds"] * 1e3 > 4 * row["compute_ms"] * 0.5 and row["stall_ms"] >= 0


def test_promises_tables_and_the_figure(rows: Rows) -> None:
    kind = suites.SUITES["simulation"]
    checks = kind.judge(rows) if kind.judge else []
    assert len(checks) >= 8 and all(one.passed is None for one in checks), "they are promised for a GPU"
    (table,) = kind.table(rows, "simulation")
    assert table.row_count == len({row["name"] for row in rows if row["kind"] == "simulation"})
    assert suites.figures(rows).keys() == {"simulation-step"}
    (said,) = kind.says(rows) if kind.says else []
    assert "without output" in said.text and said.rows


def sample(name: str, seconds: float, **fields: Any) -> dict[str, Any]:
    known = {"kind": "simulation", "name": name, "seconds": seconds, "steps": 10, "bytes_per_second": 1 / seconds}
    return known | fields


def judged(stall_ms: float, compute_ms: float, seconds: float, write_ms: float = 100.0) -> dict[str, bool | None]:
    machine = {"kind": "machine", "machine": {"device": {"emulated": False}}}
    told = [
        machine,
        sample(ways.NOTHING, 2.0, compute_ms=200.0),
        sample(ways.USUAL_NETCDF4, 5.0, compute_ms=200.0),
        sample(ways.NETCDF4, seconds, compute_ms=compute_ms, stall_ms=stall_ms),
        sample(measure.ENGINE, write_ms / 100, step_write_ms=write_ms),
    ]
    return {one.what[:2] + one.what.partition(":")[2][:6]: one.passed for one in judge.checks(told) if "4:" in one.what}


def test_promises_are_kept_and_broken_at_their_bounds() -> None:
    """Output of a history adds at most 1.3 writes of a step, which is 0.13 s here, and a third of 3 s."""
    assert judged(1.9, 201.9, 2.12) == {"A1 stall": True, "A1 the m": True, "A1 write": True, "A3 time ": True}
    assert judged(2.1, 201.9, 2.12)["A1 stall"] is False
    assert judged(1.9, 202.1, 2.12)["A1 the m"] is False
    assert judged(1.9, 201.9, 2.14)["A1 write"] is False
    assert judged(1.9, 201.9, 3.1)["A3 time "] is False
    slow = judged(1.9, 201.9, 4.3, write_ms=400.0)
    assert slow["A2 rate "] is False and "A1 write" not in slow
    assert judged(1.9, 201.9, 4.1, write_ms=400.0)["A2 rate "] is True


def test_a_file_that_differs_by_a_bit_ends_the_run(tmp_path: Path) -> None:
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        case = model.made(lone_run(context, place, "simulation", **SMALL))
        model.expect(case)
        assert measure.measure(case, ways.CLASSIC)["bytes"] == case.bytes
        last = case.expected["VORZ"][-1]
        last.view(np.uint32)[2, 1, 3] ^= 1
        with pytest.raises(Error, match="step 1 of VORZ is not what the model had"):
            measure.measure(case, ways.CLASSIC)
        assert not (place.directory / "output").exists()


def test_boxes_write_what_is_asked() -> None:
    for wanted in (1 << 20, 4 << 20, 64 << 20, 500 << 20):
        nx, ny, nz = model.cells_for(wanted, 4)
        assert abs(nx * ny * nz * 4 * 15 / wanted - 1) < 0.05
    assert model.cells_for(500 << 20, 4)[2] == 128
