"""What readers find in a Zarr store that a history writes: zarr-python, xarray and penstock.open have the bits that the
model put, whole steps alone, and nothing beside them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mounts import Mounted, root_only
from places import ROOT

import penstock

zarr = pytest.importorskip("zarr", minversion="3")
UNITS = "seconds since 2000-01-01 00:00:00"
STEPS, SHAPE = 3, (5, 70, 90)
# Writes steps of two fields, for ever or until an error, and says after each how many are published.
MODEL = """
import sys, numpy as np, penstock
from itertools import count
history = penstock.History(sys.argv[1], device="host", format="zarr", time_units="seconds since 2000-01-01 00:00:00")
for name in ("a", "b"):
    packed = {"compression": "gzip", "shuffle": False} if name in sys.argv[2:] else {}
    history.define(name, ("x",), shape=(50_000,), source_dtype="f8", **packed)
try:
    for step in count():
        for name in ("a", "b"):
            history.put(name, np.full(50_000, float(step)))
        history.end_step(step)
        history.wait()
        print(step + 1, flush=True)
except penstock.Error as error:
    print("error", error.code, error, flush=True)
"""


def fields() -> np.ndarray:
    """Smooth ones, which become smaller, with all that is special."""
    smooth = np.add.outer(np.linspace(0, 1, STEPS), np.linspace(200, 300, int(np.prod(SHAPE)))).astype("f4")
    smooth[:, :6] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-42, 3e38], "f4")
    return smooth.reshape(STEPS, *SHAPE)


def write(path: Path, **options: Any) -> penstock.History:
    values, chunk = fields(), () if options["compression"] == "none" else (2, 70, 31)
    with penstock.History(path, device="host", format="zarr", time_units=UNITS, **options) as history:
        history.define("T", ("z", "y", "x"), like=values[0], attrs={"units": "K", "valid": np.array([1.5, np.inf])})
        history.define("odd", ("z", "y", "x"), like=values[0], chunk_shape=chunk, file_dims=("x", "y", "z"))
        history.define("m", ("z", "y", "x"), shape=SHAPE, source_dtype="f8", dtype="f8", statistic="mean")
        history.define("count", (), shape=(), dtype="u1", attrs={"_FillValue": np.int32(255)})
        history.constant("x", np.arange(SHAPE[2], dtype="f8"), ("x",), {"units": "m"})
        history.set_attrs({"title": 'a "box" of \u00e4ir'})
        for step in range(STEPS):
            history.put("T", values[step])
            history.put("odd", values[step])
            history.put("m", values[step].astype("f8"))
            history.put("count", np.uint8(step))
            history.end_step(60.0 * (step + 1))
    return history


def check(read: Callable[[str], Any]) -> None:
    values = fields()
    assert np.asarray(read("T")).tobytes() == values.tobytes()
    assert np.asarray(read("odd")).tobytes() == values.transpose(0, 3, 2, 1).tobytes()
    assert np.array_equal(read("m"), values.astype("f8"), equal_nan=True)
    assert np.array_equal(read("count"), np.arange(STEPS))
    assert np.array_equal(read("time"), 60.0 * np.arange(1, STEPS + 1))
    assert np.array_equal(read("time_bnds"), [[60.0 * step, 60.0 * step + 60] for step in range(STEPS)])
    assert np.array_equal(read("x"), np.arange(SHAPE[2]))


@pytest.mark.filterwarnings("ignore::UserWarning")  # of numcodecs' names, which Zarr has not taken up
@pytest.mark.parametrize(
    ("compression", "shuffle"),
    [("none", None), ("gzip", None), ("gzip", False), ("zstd", None), ("zstd", False), ("lz4", None)],
)
def test_stock_readers_find_the_bits_that_were_put(tmp_path: Path, compression: str, shuffle: bool | None) -> None:
    path = tmp_path / "x.zarr"
    facts = write(path, compression=compression, shuffle=shuffle).facts()
    for file in (zarr.open_group(path, mode="r"), zarr.open_group(path, mode="r", use_consolidated=False)):
        check(lambda name, file=file: file[name][...])  # type: ignore[misc]
        assert file.attrs["title"] == 'a "box" of \u00e4ir'
        assert dict(file["T"].attrs) == {"units": "K", "valid": [1.5, "Infinity"]}
        assert file["T"].metadata.dimension_names == ("time", "z", "y", "x")
    with penstock.open(path, device="host") as opened:
        check(lambda name: opened[name].read())
    whole = 4 * 8 * int(np.prod(SHAPE))  # so many steps have 1 MiB at most
    assert (path / "T" / "c.0.0.0.0").stat().st_size == whole or compression != "none"
    assert facts.stored_bytes < STEPS * facts.step_bytes or compression == "none"
    assert [one.name for one in tmp_path.iterdir()] == ["x.zarr"]


def test_xarray_has_times_coordinates_and_what_is_missing(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "x.zarr"
    with penstock.History(path, device="host", format="zarr", time_units=UNITS) as history:
        history.define("T", ("x",), shape=(3,), attrs={"_FillValue": np.float32(-999), "units": "K"})
        history.constant("x", np.arange(3.0), ("x",))
        history.put("T", np.array([1, -999, 3], "f4"))
        history.end_step(3600)
    with xarray.open_zarr(path) as found:
        assert np.array_equal(found["T"][0], [1, np.nan, 3], equal_nan=True)
        assert found["time"].values[0] == np.datetime64("2000-01-01T01:00:00")
        assert found["T"].sel(x=2.0, time="2000-01-01T01:00:00") == 3
    with xarray.open_dataset(path, engine="penstock") as ours:
        assert ours["time"].values[0] == np.datetime64("2000-01-01T01:00:00")


def test_readers_see_each_step_while_the_history_is_open(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    with penstock.History(path, device="host", format="zarr") as history:
        history.define("T", ("y", "x"), shape=(20, 30))
        for step in range(5):
            history.put("T", np.full((20, 30), step, "f4"))
            history.end_step(step)
            history.wait()
            for consolidated in (True, False):
                file = zarr.open_group(path, mode="r", use_consolidated=consolidated)
                assert file["T"].shape == (step + 1, 20, 30) and (file["T"][step] == step).all()
                assert np.array_equal(file["time"], np.arange(step + 1))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("compression", ["gzip", "lz4"])
def test_small_compressed_steps_share_shards(tmp_path: Path, compression: str) -> None:
    """24 steps in two shards; chunks at the end of a dimension are as large as others."""
    path, values = tmp_path / "x.zarr", np.random.default_rng(2).integers(0, 9, (24, 30, 500)).astype("f4")
    with penstock.History(path, device="host", format="zarr", compression=compression) as history:
        history.define("T", ("y", "x"), like=values[0], chunk_shape=(7, 300))
        for step, one in enumerate(values):
            history.put("T", one)
            history.end_step(step)
    assert sorted(one.name for one in (path / "T").iterdir()) == ["c.0.0.0", "c.1.0.0", "zarr.json"]
    file = zarr.open_group(path, mode="r")
    assert file["T"].shards == (17, 35, 600) and file["T"].chunks == (1, 7, 300)
    assert np.array_equal(file["T"][...], values)
    assert np.array_equal(file["T"][15:19, 3:12, 290:310], values[15:19, 3:12, 290:310])
    with penstock.open(path, device="host") as opened:
        assert np.array_equal(opened["T"].read(), values)
        assert np.array_equal(opened["T"][15:19, 3:12, 290:310], values[15:19, 3:12, 290:310])


def test_entries_of_a_step_that_is_being_written_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    with penstock.History(path, device="host", format="zarr", compression="gzip", shuffle=False) as history:
        history.define("T", ("x",), shape=(5000,))
        for step in range(3):
            history.put("T", np.full(5000, step, "f4"))
            history.end_step(step)
    shard = path / "T" / "c.0.0"
    written = bytearray(shard.read_bytes())
    written[3 * 16 : 3 * 16 + 8] = len(written).to_bytes(8, "little")  # half of an entry of step 4
    shard.write_bytes(written)
    for file in (zarr.open_group(path, mode="r"), penstock.load(path, "host")):
        assert np.array_equal(np.asarray(file["T"][:]), np.arange(3.0)[:, None] * np.ones(5000))
    written[2 * 16 : 2 * 16 + 8] = len(written).to_bytes(8, "little")
    shard.write_bytes(written)
    with penstock.open(path, device="host") as file:
        assert np.asarray(file["T"][1]).max() == 1
        with pytest.raises(penstock.Error, match="the shard ends at"):
            file["T"][2]


def test_a_killed_model_leaves_every_step_that_it_was_told_of(tmp_path: Path) -> None:
    for kill in range(max(2, int(os.environ.get("PENSTOCK_SIGNALS", "20")) // 4)):
        path = tmp_path / f"{kill}.zarr"
        command = [sys.executable, "-c", MODEL, str(path), "b"]  # b is compressed
        model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert model.stdout is not None
        lines = [model.stdout.readline() for _ in range(3 + 7 * kill)]
        os.kill(model.pid, signal.SIGKILL)
        lines += model.stdout.readlines()
        model.wait()
        told = max(int(line) for line in lines if line.endswith("\n"))
        file = zarr.open_group(path, mode="r")
        seen = file["time"].shape[0]
        assert seen >= told >= 3 and np.array_equal(file["time"], np.arange(seen))
        alone = zarr.open_group(path, mode="r", use_consolidated=False)
        for name in ("a", "b"):
            assert (file[name][...] == np.arange(seen)[:, None]).all()
            assert alone[name].shape[0] >= seen
            assert (alone[name][:seen] == np.arange(seen)[:, None]).all()
        with penstock.History(path, device="host", format="zarr") as history:  # a new one takes its place
            history.define("c", ("x",), shape=(2,))
            history.put("c", np.zeros(2, "f4"))
            history.end_step(0)
        assert sorted(one.name for one in path.iterdir()) == ["c", "time", "zarr.json"]


@root_only
def test_a_disk_that_gets_full_leaves_the_steps_before_it(tmp_path: Path) -> None:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=3m", "none") as folder:
        path = folder / "x.zarr"
        done = subprocess.run([sys.executable, "-c", MODEL, str(path)], capture_output=True, text=True, timeout=60)
        *told, error = done.stdout.splitlines()
        assert error.startswith("error no_space write history") and f"step {len(told) + 1}, " in error, error
        assert "No space left" in error and len(told) >= 5
        file = zarr.open_group(path, mode="r")
        assert file["b"].shape == (len(told), 50_000)
        assert (file["b"][...] == np.arange(len(told))[:, None]).all()


def test_what_is_there_and_no_store_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "notes.txt").write_text("do not lose")
    history = penstock.History(folder, device="host", format="zarr")
    history.define("T", ("x",), shape=(2,))
    with pytest.raises(penstock.Error, match="results: it is there, and no store of Zarr or of raw files; give"):
        history.put("T", np.zeros(2, "f4"))
    assert (folder / "notes.txt").read_text() == "do not lose"
    assert [one.name for one in tmp_path.iterdir()] == ["results"]


def test_the_program_behind_the_figures_prints_what_each_way_took(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "history" / "store_rates.py"), "1", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line[:26].strip() for line in lines[1:4]] == [
        "history, Zarr",
        "zarr-python in the step",
        "history, netCDF-4",
    ]
    assert len(lines) == 12 and all(line.endswith(" s") for line in lines[1:4] + lines[5:8] + lines[9:])
    assert not any(tmp_path.iterdir())
