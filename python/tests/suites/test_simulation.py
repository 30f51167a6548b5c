"""The suite `simulation` at a tiny size on the emulated device: every way measured or missing with its cause, each file
compared with the model, promises judged as the definition says."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lone_run import lone_run

from penstock import Context, Error
from penstock.calibration.workspace import Workspace
from penstock_bench.engine import definition
from penstock_bench.runs import definitions, session, stored, suites
from penstock_bench.suites.simulation import cluster, judge, measure, model, particles, ways

Rows = list[dict[str, Any]]
SMALL = {"steps": 4, "mean_steps": 2, "step_ms": 1}
RANKS = {"shared_bytes": "1MiB", "ranks": [2], "restarts": [[2, 1]], "packed_bytes": "1MiB"}
KNOWN_CAUSES = ("is not installed", "there is no h5pcc", "there is no mpicc", "the model on the host has no stream")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    place = tmp_path_factory.mktemp("simulation")
    whole = definitions.load("simulation", True)
    table = definition.Settings(place, whole.settings["simulation"] | SMALL | RANKS)
    chosen = replace(whole, file_bytes=1 << 20, repeats=1, seconds=60.0, settings={"simulation": table})
    found = session.run(session.Request(chosen, "host", place, place / "rows.jsonl", True), lambda *_: None)
    assert [entry.name for entry in place.iterdir()] == ["rows.jsonl"], "output is removed"
    assert stored.read(place / "rows.jsonl") == json.loads(json.dumps(found))
    return found


def test_every_way_is_measured_or_missing_with_its_cause(rows: Rows) -> None:
    found = {row["name"]: row for row in rows if row["kind"] == "simulation"}
    absent = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    others = {*cluster.WAYS, *particles.WAYS, *filter(is_of_ranks_or_packed, {*found, *absent})}
    assert {*found, *absent} == {*ways.WAYS, measure.ENGINE} | others and not found.keys() & absent.keys()
    assert {cluster.NOTHING, cluster.SNAPSHOT, cluster.RESTART, particles.PLAIN, particles.SNAPSHOT} <= found.keys()
    assert all(any(known in cause for known in KNOWN_CAUSES) for cause in absent.values())
    assert found[ways.PACKED]["bytes"] and ways.DEFAULT_STREAM in absent
    assert {ways.NOTHING, ways.BLOCKING, ways.NETCDF4, ways.CLASSIC, measure.ENGINE} <= found.keys()
    step_bytes = found[ways.CLASSIC]["step_bytes"]
    assert abs(step_bytes / (1 << 20) - 1) < 0.1
    for name, row in found.items():
        if name in others:
            continue
        assert row["bytes"] == (0 if name == ways.NOTHING else 4 * step_bytes), name
        if name != measure.ENGINE:
            assert row["seconds"] * 1e3 > 4 * row["compute_ms"] * 0.5 and row["stall_ms"] >= 0


def test_promises_tables_and_the_figure(rows: Rows) -> None:
    kind = suites.SUITES["simulation"]
    checks = kind.judge(rows) if kind.judge else []
    # Without netCDF-C nothing is there to be three times as fast as.
    promised = 8 if find_spec("netCDF4") else 6
    of_flow = [one for one in checks if one.only == "gpu"]
    assert len(of_flow) >= promised and all(one.passed is None for one in of_flow), "they are promised for a GPU"
    tables = kind.table(rows, "simulation")
    mine = [row for row in rows if row["kind"] == "simulation"]
    parts = {row["part"] for row in mine}
    assert len(tables) == len(parts) >= 4
    assert tables[0].row_count == len({row["name"] for row in mine if row["part"] == "flow"})
    drawn = {"simulation-step", "simulation-packing"} | ({"simulation-ranks"} if has_peer(mine) else set())
    assert suites.figures(rows).keys() == drawn
    (said,) = kind.says(rows) if kind.says else []
    assert "without output" in said.text and said.rows


def is_of_ranks_or_packed(name: str) -> bool:
    return name.startswith("packed, ") or " rank" in name


def has_peer(rows: Rows) -> bool:
    return len({row["by"] for row in rows if "by" in row}) > 1


def sample(name: str, seconds: float, **fields: Any) -> dict[str, Any]:
    known = {"kind": "simulation", "name": name, "seconds": seconds, "steps": 10, "bytes_per_second": 1 / seconds}
    known |= {"bytes": 1, "output_s": seconds - 0.2}  # the first step computes for 0.2 s
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
    slow = judged(1.9, 201.9, 4.5, write_ms=400.0)
    assert slow["A2 rate "] is False and "A1 write" not in slow
    assert judged(1.9, 201.9, 4.4, write_ms=400.0)["A2 rate "] is True


def test_a_history_names_no_stream_where_the_model_computes_on_the_default_one(tmp_path: Path) -> None:
    """On the host, where no stream is: the file is right, and the model has its own stream again."""
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        case = model.made(lone_run(context, place, "simulation", **SMALL))
        model.expect(case)
        told: list[bool] = []
        case.model.use_default_stream = told.append  # type: ignore[method-assign]
        with pytest.MonkeyPatch.context() as patch:
            kind = ways.HistoryKind("netcdf4", names_stream=False)
            patch.setitem(ways.WAYS, ways.NETCDF4, lambda case, folder: ways.ByHistory(case, folder, kind))
            assert measure.measure(case, ways.NETCDF4)["bytes"] == case.bytes
        assert told == [True, False]


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


def test_the_cluster_and_its_bodies_are_measured(rows: Rows) -> None:
    found = {row["name"]: row for row in rows if row["kind"] == "simulation" and row["name"] in cluster.WAYS}
    bodies = found[cluster.NOTHING]["bodies"]
    assert bodies >= cluster.FEWEST and found[cluster.NOTHING]["bytes"] == 0
    assert found[cluster.SNAPSHOT]["bytes"] == 4 * bodies * 8 * (3 + 3 + 1 + 1)
    assert found[cluster.RESTART]["bytes"] == 4 * bodies * 8 * (3 * 4 + 1 + 2 + 1)
    for row in found.values():
        assert row["compute_ms"] > 0 and row["seconds"] * 1e3 > row["steps"] * row["compute_ms"] * 0.5


@pytest.mark.parametrize("way", [cluster.SAVED, cluster.SNAPSHOT, cluster.RESTART])
def test_a_file_of_the_cluster_that_differs_ends_the_run(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        case = cluster.made(lone_run(context, place, "simulation", **SMALL))
        assert cluster.measure(case, way)["bytes"] > 0
        write = cluster.WAYS[way]

        def wrong(case: cluster.ClusterRun, folder: Path, step: int) -> None:
            write(case, folder, step)
            case.model["velocity"][3, 1] += 1

        monkeypatch.setitem(cluster.WAYS, way, wrong)
        with pytest.raises(Error, match="of the last step is not what the cluster has"):
            cluster.measure(case, way)
        assert not (place.directory / "output").exists()


def test_the_cluster_goes_on_and_its_energy_stays() -> None:
    nbody = pytest.importorskip("penstock.nbody")
    first, second = (nbody.Cluster(64, seed=5, device="host") for _ in range(2))
    begin = first.energy
    first.advance(4)
    for _ in range(4):
        second.advance()
    assert first.time == second.time == 0.25
    assert all(np.array_equal(first[name], second[name]) for name in first.names)
    assert abs(first.energy / begin - 1) < 1e-4 and first["id"].tolist() == list(range(1, 65))


@pytest.mark.parametrize("way", particles.WAYS)
def test_particles_that_differ_end_the_run(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == particles.H5PY:
        pytest.importorskip("h5py")
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        run = lone_run(context, place, "simulation")
        all = particles.particles(run)
        assert particles.measure(run, all, way)["bytes"] == all.bytes >= 1 << 19
        write = particles.WAYS[way]

        def wrong(run: Any, name: Path, all: particles.ParticleSet) -> None:
            write(run, name, all)
            all.fields["PartType0/Masses"][7] += 1

        monkeypatch.setitem(particles.WAYS, way, wrong)
        with pytest.raises(Error, match="PartType0/Masses is not what was written"):
            particles.measure(run, all, way)


def test_snapshots_are_judged_at_their_bounds_where_they_are_large() -> None:
    def checks(snapshot: float, size: int = 1 << 30) -> list[bool | None]:
        rates = {particles.PLAIN: 10.0, particles.SNAPSHOT: snapshot, particles.H5PY: 3.6}
        told = [sample(name, 1.0, step_bytes=size) | {"bytes_per_second": rate} for name, rate in rates.items()]
        told.append({"kind": "machine", "machine": {"device": {"emulated": True}}})
        return [one.passed for one in judge.checks(told) if one.what.startswith("B2")]

    assert checks(9.1) == [True, True]
    assert checks(8.9) == [False, False]
    assert checks(8.9, 1 << 20) == []
