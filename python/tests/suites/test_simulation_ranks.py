"""Files of all ranks and compressed histories of the suite `simulation`: wrong bytes end the run, what is not there is
named, and promises are kept and broken at their bounds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from lone_run import lone_run

from penstock import Context, Error
from penstock.calibration.workspace import Workspace
from penstock_bench.engine.rounds import Absent, Probe
from penstock_bench.engine.run import Run
from penstock_bench.suites import mpi_programs
from penstock_bench.suites.simulation import judge, packing
from penstock_bench.suites.simulation.ranks import cases, probes, table

SETTINGS = {"shared_bytes": "2MiB", "ranks": [1, 3], "restarts": [[3, 2]], "packed_bytes": "1MiB"}
Rig = Callable[[], dict[str, Probe]]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Makes the probes, after what a test has changed."""
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place, ExitStack() as stack:
        yield lambda: {probe.name: probe for probe in probes.probes(settled(context, place, stack))}


def settled(context: Context, place: Workspace, stack: ExitStack) -> Run:
    return lone_run(context, place, "simulation", stack, **SETTINGS)


def need_mpi(*programs: str) -> None:
    _, cause = mpi_programs.starter()
    missing = [name for name in programs if shutil.which(name) is None]
    if cause or missing:
        pytest.skip(cause or f"there is no {missing[0]}")


@pytest.mark.parametrize("file", cases.FILES)
def test_ranks_write_one_file_each_way(rig: Rig, tmp_path: Path, file: str) -> None:
    need_mpi()
    found = rig()
    rows = []
    for way in (way for way in cases.WAYS if cases.name_of(file, 3, way) in found):
        if way not in cases.OURS and shutil.which(probes.WRAPPER) is None:
            continue
        row = found[cases.name_of(file, 3, way)].measure(0)
        assert row["seconds"] > 0 and row["fsync_s"] > 0 and (row["ranks"], row["by"]) == (3, way)
        assert ("layout_ms" in row) == (file != cases.SNAPSHOT or way not in cases.OURS)
        rows.append({"kind": "simulation", "bytes_per_second": row["bytes"] / row["seconds"], **row})
    assert (cases.name_of(file, 3, cases.SLOTLESS) in found) == (file == cases.HISTORY)
    assert len({row["bytes"] for row in rows}) == 1 and rows[0]["bytes"] > 1 << 19
    assert not list(tmp_path.rglob("*.hdf5"))
    (made,) = table.of_ranks(rows)
    assert made.row_count == 1


def test_a_restart_is_read_by_another_number_of_ranks(rig: Rig) -> None:
    need_mpi()
    row = rig()["restart of 3 ranks, read by 2"].measure(0)
    assert row["write_s"] > 0 and (row["writers"], row["ranks"]) == (3, 2)
    assert table.of_ranks([row])[0].row_count == 1


def changed(folder: Path, file: str, old: str, new: str) -> Path:
    sources = folder / "sources"
    shutil.copytree(probes.SOURCES, sources)
    text = (sources / file).read_text()
    assert text.count(old) == 1
    (sources / file).write_text(text.replace(old, new))
    return sources


@pytest.mark.parametrize(
    ("file", "way"),
    [
        *((file, way) for file in (cases.HISTORY, cases.SNAPSHOT) for way in (cases.PENSTOCK, cases.INDEPENDENT)),
        (cases.HISTORY, cases.SLOTLESS),
    ],
)
def test_a_value_that_is_wrong_ends_the_run(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, file: str
) -> None:
    need_mpi(*([] if way in cases.OURS else [probes.WRAPPER]))
    wrong = changed(tmp_path, "grid.c", "0xFFFFF) + tag)", "0xFFFFF) + tag + (row == 20 && x == 3 && variable == 5))")
    monkeypatch.setattr(probes, "SOURCES", wrong)
    with pytest.raises(Error, match=r"V005 of step 0 is not what the ranks had"):
        rig()[cases.name_of(file, 3, way)].measure(0)


def test_a_restart_with_a_wrong_value_ends_the_run(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_mpi()
    one_more = "if (writes && part.rank == 1) all[7] += 1;\n    options.device"
    monkeypatch.setattr(probes, "SOURCES", changed(tmp_path, "restart.c", "options.device", one_more))
    with pytest.raises(Error, match="what a rank read is not what the ranks wrote"):
        rig()["restart of 3 ranks, read by 2"].measure(0)


def test_what_is_not_there_is_named(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without mpirun nothing is measured; without the wrapper of parallel HDF5 Penstock alone."""
    need_mpi()
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == probes.WRAPPER else real(name))
    found = rig()
    assert found[cases.name_of(cases.SMALL, 3, cases.PENSTOCK)].measure(0)["layout_ms"] > 0
    for way in (cases.INDEPENDENT, cases.COLLECTIVE):
        with pytest.raises(Absent, match="there is no h5pcc, the compiler of parallel HDF5"):
            found[cases.name_of(cases.HISTORY, 3, way)].measure(0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name.startswith("mpi") else real(name))
    for probe in rig().values():
        with pytest.raises(Absent, match="there is no mpicc and no mpirun"):
            probe.measure(0)


def test_a_program_that_tells_other_things_is_refused() -> None:
    assert probes.parsed("0.5 1 2e-3\n", 3) == [0.5, 1, 0.002]
    for text in ("0.5 1", "0.5 1 x", ""):
        with pytest.raises(Error, match="it told what is not understood"):
            probes.parsed(text, 3)


@pytest.mark.parametrize("way", packing.WAYS)
def test_what_is_packed_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way.startswith("netCDF4"):
        pytest.importorskip("netCDF4")
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        run = lone_run(context, place, "simulation", **SETTINGS)
        noisy, rounded = packing.fields(2)
        rows = [packing.measure(run, one, way) for one in (noisy, rounded)]
        assert 0.05 < rows[1]["file_share"] < rows[0]["file_share"] < 1 and rows[0]["core_bytes_per_second"] > 1e6
        write = packing.WAYS[way]

        def wrong(path: Path, field: Any) -> None:
            other = field.copy()
            other.view("u4")[1, 2, 3] ^= 1
            write(path, other)

        monkeypatch.setitem(packing.WAYS, way, wrong)
        with pytest.raises(Error, match="step 0 is not what was packed"):
            packing.measure(run, noisy, way)


def judged(rows: list[dict[str, Any]]) -> dict[str, bool | None]:
    machine = {"kind": "machine", "machine": {"device": {"emulated": True}}}
    return {one.what: one.passed for one in judge.checks([machine, *rows]) if one.only == "any"}


def of_ranks(file: str, way: str, rate: float, **fields: Any) -> dict[str, Any]:
    named = {"kind": "simulation", "name": cases.name_of(file, 4, way), "ranks": 4, "by": way}
    return named | {"bytes": judge.LARGE_BYTES, "bytes_per_second": rate} | fields


def test_promises_of_ranks_are_kept_and_broken_at_their_bounds() -> None:
    def checks(rate: float, layout_ms: float, **fields: Any) -> dict[str, bool | None]:
        rows = [of_ranks(file, cases.INDEPENDENT, 1e9) for file in (cases.HISTORY, cases.SNAPSHOT)]
        ours = ((cases.HISTORY, cases.SLOTLESS), (cases.SNAPSHOT, cases.PENSTOCK))
        rows += [of_ranks(file, way, rate, **fields) for file, way in ours]
        small = of_ranks(cases.SMALL, cases.PENSTOCK, 1, layout_ms=layout_ms, ranks=1)
        return judged([*rows, small | {"name": cases.name_of(cases.SMALL, 1, cases.PENSTOCK)}])

    assert list(checks(1.01e9, 4.9).values()) == [True, True, True]
    assert list(checks(0.99e9, 4.9).values()) == [False, False, True]
    assert list(checks(1.01e9, 5.1).values()) == [True, True, False]
    small = checks(1.01e9, 4.9, bytes=1 << 20)
    assert list(small.values()) == [True], "the rate of small files is not judged"
    assert judged([]) == {}


def test_promises_of_codecs_are_kept_and_broken_at_their_bounds() -> None:
    def packed(way: str, rate: float) -> dict[str, Any]:
        name = packing.name_of(packing.NOISE, way)
        return {"kind": "simulation", "name": name, "core_bytes_per_second": rate}

    usual = packed(packing.USUAL.format(4), 40e6)
    told = judged([usual, packed(packing.GZIP.format(4), 159e6), packed(packing.ZSTD, 161e6)])
    assert list(told.values()) == [False, True]
    assert judged([packed(packing.ZSTD, 161e6)]) == {}, "without netCDF4 nothing is there to be compared with"
