"""The suite `data`: runs whole on small files, and refuses a wrong element."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from lone_run import lone_run

from penstock import Context, Error
from penstock.calibration.workspace import Workspace
from penstock_bench.engine.run import Run as SuiteRun
from penstock_bench.runs import stored
from penstock_bench.suites.data import files, measure, pairs

pytest.importorskip("h5py")
Run = Callable[..., Any]
SUITE = 'name = "small"\nfile_bytes = "256KiB"\nrepeats = 1\nseconds = 60\n[data]\ncalls = 2\n'


def test_every_pair_is_measured_or_told_missing(penstock: Run, tmp_path: Path) -> None:
    suite, out = tmp_path / "small.toml", tmp_path / "rows.jsonl"
    suite.write_text(SUITE)
    ran = penstock("bench", suite, "--dir", tmp_path, "--device", "host", "--out", out)
    assert ran.code == 0, ran.err
    rows: list[dict[str, Any]] = stored.read(out)
    measured = {row["name"]: row for row in rows if row["kind"] == "data"}
    absent = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    assert all("is not installed" in cause for cause in absent.values())
    assert {"HDF5: open, a row, close", "HDF5 gzip: all", "NPY: load", "bytes: load"} <= measured.keys()
    steps = {f"a step of a history: {how}" for how in ("gzip", "gzip, 10 bits kept", "zstd")}
    assert steps <= measured.keys() | absent.keys()
    assert {"gzip and shuffle: all", "file.read: 4 KiB"} <= measured.keys()
    many = "64 rows of 2 KiB at random"
    assert {many, f"{many}, ascending", f"{many}, chunks of 64 rows"} <= measured.keys()
    for row in measured.values():
        assert row["times_peer"] == pytest.approx(row["median_us"] / row["peer_us"])
    assert "HDF5: a row into memory of NumPy" in ran.out
    assert not list(tmp_path.glob("penstock-bench-*"))


@pytest.mark.parametrize("emulated", [True, False], ids=["host", "gpu"])
def test_no_two_pairs_have_one_name(emulated: bool) -> None:
    """A round measures a name once: of two pairs it would be now the one, now the other."""
    place = SimpleNamespace(directory=Path("nowhere"))
    run = SimpleNamespace(emulated=emulated, settings={}, bytes=4 << 20, workspace=place, context=None)
    names = [pair.name for pair in pairs.pairs(cast(SuiteRun, run))]
    assert sorted(set(names)) == sorted(names)
    beside = {name.partition(" beside ")[2] for name in names if " beside " in name}
    assert beside == (set() if emulated else {"nvCOMP", "all cores"})


def test_a_wrong_element_ends_the_run(tmp_path: Path) -> None:
    with Context("host") as context, Workspace(context, tmp_path, 256 << 10, files=1) as place:
        run = lone_run(context, place, "data", calls=1)
        files.make(run)
        pair = next(one for one in pairs.pairs(run) if one.name == "NPY: open, a row, close")
        assert measure.measure(run, pair, 0)["peer"] == "numpy.load"

        def wrong(stack: ExitStack) -> tuple[pairs.Call, pairs.Call]:
            ours, theirs = pair.make(stack)
            return lambda turn: ours(turn) + np.float32(turn), theirs

        with pytest.raises(Error, match=r"Penstock and numpy\.load read different elements"):
            measure.measure(run, replace(pair, make=wrong), 0)
