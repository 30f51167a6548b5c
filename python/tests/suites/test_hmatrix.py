"""The suite `hmatrix` at a tiny size on the emulated device: every cell measured or missing with its cause, counts that
add up, promises judged, figures drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from penstock import Error
from penstock_bench.engine import definition
from penstock_bench.runs import definitions, session, stored, suites
from penstock_bench.suites.hmatrix import judge as hmatrix_judge, measure as hmatrix
from penstock_bench.suites.hmatrix.matrices import Matrices

Rows = list[dict[str, Any]]
SMALL = {"triangles": 700, "batches": 12, "pins": [0, 3], "tolerances": [1e-4], "iterations": 1, "product_sweeps": 1}


def run(place: Path, name: str = "hmatrix", **settings: Any) -> Rows:
    whole = definitions.load(name, True)
    table = definition.Settings(place, whole.settings["hmatrix"] | SMALL | settings)
    chosen = replace(whole, file_bytes=4 << 20, repeats=1, seconds=60.0, settings={"hmatrix": table})
    request = session.Request(chosen, "host", place, place / "rows.jsonl", True)
    return session.run(request, lambda *_: None)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    place = tmp_path_factory.mktemp("hmatrix")
    found = run(place)
    assert [entry.name for entry in place.iterdir()] == ["rows.jsonl"]
    assert stored.read(place / "rows.jsonl") == json.loads(json.dumps(found))
    return found


def cells(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows if row["kind"] == "hmatrix"}


def test_every_way_is_measured_or_missing_with_its_cause(rows: Rows) -> None:
    found = cells(rows)
    absent = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    assert not found.keys() & absent.keys() and all(absent.values())
    for way in hmatrix.WAYS:
        name = f"0.5 of the matrix: {way.name}"
        assert (name in found) != (name in absent), name
    assert "cuFile" in absent["0.5 of the matrix: gds-compat, cold"]
    assert {"build, fp64", "to 1e-4: best", "to 1e-4: parity", "product in memory: fp64"} <= found.keys()
    assert found["build, fp64"]["assembled_on"] == "host" and "build, fp64, on the host" not in found, "no GPU"
    assert {"0.5 of the matrix: buffered, hot", "0.5 of the matrix: gpu, hot, pinned"} <= found.keys()


def test_counts_add_up(rows: Rows) -> None:
    found = cells(rows)
    plain = found["0.5 of the matrix: buffered, hot"]
    stored = found["build, fp64"]["bytes_stored"]
    assert plain["sweeps"] == 3 and plain["hit_rate"] == 0 and plain["took"] == "buffered"
    assert 0.8 * stored < plain["bytes_read"] / plain["sweeps"] < 1.6 * stored  # the next sweep's first batches too
    pinned = found["0.5 of the matrix: buffered, hot, pinned"]
    assert pinned["pinned_batches"] > 0 and pinned["hit_rate"] > 0.05 and pinned["bytes_read"] < plain["bytes_read"]
    for row in found.values():
        if row["subject"] in ("path", "pins"):
            assert row["seconds"] == pytest.approx(row["read_s"] + row["other_s"])
            assert row["cache_bytes"] < row["matrix_bytes"]


def test_the_best_mode_reads_less(rows: Rows) -> None:
    best, parity = cells(rows)["to 1e-4: best"], cells(rows)["to 1e-4: parity"]
    assert best["relative_residual"] < 1e-4 and parity["relative_residual"] < 1e-4
    assert best["cache_bytes"] == parity["cache_bytes"]
    assert best["matrices_read"] < parity["matrices_read"] / 5


def test_promises_tables_and_figures(rows: Rows) -> None:
    checks = {check.what: check for check in hmatrix_judge.checks(rows)}
    assert checks["to 1e-4, matrices read"].passed and checks["to 1e-4, sweeps"].passed
    assert checks["total time, file in memory, 0.5: CPU path / GPU pinned"].passed is None  # promised for a GPU
    kind = suites.SUITES["hmatrix"]
    assert len(kind.table(rows, "hmatrix")) == 6
    assert set(suites.figures(rows)) == {"hmatrix-time", "hmatrix-read"}
    (said,) = kind.says(rows)
    assert "1e-4" in said.text and said.rows


def test_a_promise_that_is_not_kept_is_told(rows: Rows) -> None:
    worse = [row | {"matrices_read": 2.0} if row.get("mode") == "best" else row for row in rows]
    checks = {check.what: check for check in hmatrix_judge.checks(worse)}
    assert checks["to 1e-4, matrices read"].passed is False


def test_a_suite_may_name_its_ways(tmp_path: Path) -> None:
    leased = ROOT / "bench" / "leased" / "hmatrix-rates.toml"
    rows = run(tmp_path, str(leased), ratios=[0.5], pins=[], tolerances=[])
    found = cells(rows)
    assert {name for name in found if "of the matrix" in name} == {
        f"0.5 of the matrix: auto, {s}" for s in ("hot", "cold")
    }
    judged = {check.what: check.value for check in hmatrix_judge.checks(rows)}
    assert judged["sweeps / reads of the file, hot"] and judged["product in memory / copy in memory"]
    with pytest.raises(Error, match="ways has 'by post'"):
        run(tmp_path, ways=["by post"])


def test_bytes_that_are_not_the_matrix_end_the_run(rows: Rows, tmp_path: Path) -> None:
    """The control: a product off by a digit is no sample."""
    import numpy as np

    from penstock import Context, hmatrix as solver

    mesh = solver.shape("sphere", 320)
    with Context("host") as context:
        made = solver.assemble(mesh, store=tmp_path / "a.hmat", eps=1e-3, encoding="fp64", context=context)
        stored = Matrices(mesh, reference=made @ np.ones(320))
        hmatrix._check_product(stored, made)
        stored.reference[3] *= 1 + 1e-6
        with pytest.raises(RuntimeError, match="not the matrix"):
            hmatrix._check_product(stored, made)
