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
from penstock_bench.suites.data import files, judge, measure, pairs, training

pytest.importorskip("h5py")
Run = Callable[..., Any]
LOADERS = {"BatchLoader", "Dataset in a DataLoader"}
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
    named = ("at random", "at random, ascending", "at random, some repeated", "by a mask", "written at random")
    many = {f"64 rows of 2 KiB {how}{chunks}" for how in named for chunks in ("", ", chunks of 64 rows")}
    many |= {"64 rows of 2 KiB gathered into memory that is there"}
    assert many | {"8 rows of 2 KiB written at random, chunks of 64 rows, gzip"} <= measured.keys()
    written = {f"{format} {codec}: written" for format in ("HDF5", "Zarr") for codec in ("gzip", "zstd", "lz4")}
    told = {name.replace(" and shuffle", "") for name in measured.keys() | absent.keys()}
    by_zarrs = {"Zarr gzip: written, zarrs", "Zarr zstd: written, zarrs", "Zarr zstd: all, zarrs"}
    assert written | by_zarrs | {"Zarr zstd: all"} <= told
    assert {training.names()[0], training.names()[1]} <= measured.keys() | absent.keys()
    assert {name.partition(": ")[2] for name in told if name.startswith("an epoch")} == LOADERS
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


def row(name: str, times_peer: float, bytes: int) -> dict[str, Any]:
    known = {"kind": "data", "name": name, "peer": "h5py", "median_us": 1e6, "peer_us": 1e6 / times_peer, "calls": 2}
    return known | {"times_peer": times_peer, "bytes": 2 * bytes, "seconds": 2.0, "bytes_per_second": bytes}


def test_packing_is_promised_for_each_core_and_of_large_datasets_alone() -> None:
    machine = {"kind": "machine", "machine": {"cores": 4, "device": {"emulated": True}}}
    packed, epoch = "HDF5 gzip and shuffle: written", training.names()[1]
    large = [row(packed, 0.25, 64 << 20), row(epoch, 0.25, 64 << 20), row("HDF5: a row", 0.25, 64 << 20)]
    found = {one.what: one for one in judge.checks([machine, *large])}
    assert {what.partition(",")[0] for what in found} == {packed.partition(",")[0], epoch.partition(",")[0]}
    kept = {one.what.partition(",")[0]: (one.value, one.bound, one.passed) for one in found.values()}
    assert kept[packed.partition(",")[0]] == (4, pytest.approx(3.6), True)
    assert kept[epoch.partition(",")[0]] == (4, 5, False)
    assert judge.checks([machine, row(packed, 0.25, 1 << 20)]) == []


def test_an_epoch_is_of_all_samples_beside_a_data_loader(tmp_path: Path) -> None:
    """Compared with those of h5py in the workers of a DataLoader; where PyTorch is."""
    pytest.importorskip("torch")
    with Context("host") as context, Workspace(context, tmp_path, 256 << 10, files=1) as place:
        run = lone_run(context, place, "data", calls=1, large_mib=8)  # two batches
        training.make(run)
        for pair in training.pairs(run):
            assert measure.measure(run, pair, 0)["peer"] == "h5py and DataLoader"

        def short(stack: ExitStack) -> tuple[pairs.Call, pairs.Call]:
            ours, theirs = pair.make(stack)
            return lambda turn: ours(turn)._replace(epoch=lambda: list(ours(turn).epoch())[:0]), theirs

        with pytest.raises((Error, ValueError)):
            measure.measure(run, replace(pair, make=short), 0)
