"""What readers find in a history of raw files: NumPy and penstock.open have the bits that the model put, and the index
counts the steps that are finished, also where the model was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

import penstock

# Writes steps of two fields for ever, and says after each how many are published.
MODEL = """
import sys, numpy as np, penstock
from itertools import count
history = penstock.History(sys.argv[1], device="host", format="raw")
history.define("small", ("x",), shape=(700,), source_dtype="f8")
history.define("large", ("z",), shape=(90_000,), source_dtype="f8")
for step in count():
    history.put("small", np.full(700, float(step)))
    history.put("large", np.full(90_000, float(step)))
    history.end_step(step)
    history.wait()
    print(step + 1, flush=True)
"""


def opened(path: Path, name: str) -> np.ndarray:
    """As docs/simulation.md says."""
    index = json.loads((path / "penstock.json").read_text())
    one = index["variables"][name]
    shape = ([index["steps"]] if one["grows"] else []) + one["shape"]
    return np.memmap(path / one["file"], one["dtype"], "r", shape=tuple(shape))


def test_readers_find_the_bits_that_were_put(tmp_path: Path) -> None:
    values = np.random.default_rng(3).random((13, 5, 7)).astype("f4")
    values[2, 3] = [np.nan, np.inf, -np.inf, -0.0, 1e-42, 3e38, 0]
    path = tmp_path / "run"
    with penstock.History(path, device="host", format="raw", attrs={"title": 'a "box"'}) as history:
        history.define("T", ("y", "x"), like=values[0], attrs={"units": "K"})
        history.define("count", (), shape=(), dtype="u1")
        history.constant("x", np.arange(7, dtype="f8"), ("x",))
        for step in range(len(values)):
            history.put("T", values[step])
            history.put("count", np.uint8(step))
            history.end_step(60.0 * step)
    assert opened(path, "T").tobytes() == values.tobytes()
    assert opened(path, "count").tolist() == list(range(13))
    assert opened(path, "time").tolist() == [60.0 * step for step in range(13)]
    assert opened(path, "x").tolist() == list(range(7))
    with penstock.open(path / "T.raw", device="host", dtype="float32", shape=(13, 5, 7)) as file:
        assert file["data"].read().to_numpy().tobytes() == values.tobytes()
    index = json.loads((path / "penstock.json").read_text())
    assert index["attributes"] == {"title": 'a "box"'}
    assert index["variables"]["T"]["attributes"] == {"units": "K"}
    assert sorted(one.name for one in path.iterdir()) == ["T.raw", "count.raw", "penstock.json", "time.raw", "x.raw"]
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_a_killed_model_leaves_every_step_that_it_was_told_of(tmp_path: Path) -> None:
    for kill in range(max(2, int(os.environ.get("PENSTOCK_SIGNALS", "20")) // 4)):
        path = tmp_path / str(kill)
        model = subprocess.Popen([sys.executable, "-c", MODEL, str(path)], stdout=subprocess.PIPE, text=True)
        assert model.stdout is not None
        lines = [model.stdout.readline() for _ in range(5 + 7 * kill)]
        os.kill(model.pid, signal.SIGKILL)
        lines += model.stdout.readlines()
        model.wait()
        told = max(int(line) for line in lines if line.endswith("\n"))
        seen = json.loads((path / "penstock.json").read_text())["steps"]
        assert seen >= told >= 5
        for name in ("small", "large"):
            assert (opened(path, name) == np.arange(seen)[:, None]).all()
        assert np.array_equal(opened(path, "time"), np.arange(seen))


def test_readers_count_each_step_while_the_history_is_open(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with penstock.History(path, device="host", format="raw", durable=True) as history:
        history.define("T", ("x",), shape=(30,))
        for step in range(12):
            history.put("T", np.full(30, step, "f4"))
            history.end_step(step)
            history.wait()
            assert opened(path, "T").shape == (step + 1, 30) and (opened(path, "T")[step] == step).all()
