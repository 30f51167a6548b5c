"""The flow model in Python: its fields are the model's own memory, and a history writes them as NumPy converts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import EXAMPLES

import penstock
from penstock import flow

CELLS = (10, 8, 12)


def test_fields_are_the_memory_of_the_model() -> None:
    model = flow.Model(CELLS, device="host")
    assert model["W"].shape == model.shape == (8 + 4, 10 + 4, 12 + 4)
    field = model["W"]
    assert not field[2:-2, 2:-2, 2:-2].any()
    model.advance(3)
    assert field[2:-2, 2:-2, 2:-2].any() and model.time == pytest.approx(3 * model.time_step)
    before = model.on_the_host("W").copy()
    model.restart()
    assert not model.on_the_host("W").any() and model.time == 0
    model.use_default_stream()
    model.advance(3)
    assert model.stream == 0 and model.on_the_host("W").tobytes() == before.tobytes()


def test_a_field_outlives_the_name_of_its_model() -> None:
    field = flow.Model(CELLS, device="host", bubble=0)["PT"]
    assert np.allclose(field[2:-2, 2:-2, 2:-2], 300)


def test_a_history_writes_all_fields(tmp_path: Path) -> None:
    model = flow.Model(CELLS, device="host")
    with penstock.History(tmp_path / "a.nc", device="host") as history:
        for one in flow.FIELDS:
            history.define(one.name, ("y", "x", "z"), like=model[one.name], halo=(flow.HALO,) * 3, attrs=one.attrs)
        model.advance(2)
        for one in flow.FIELDS:
            history.put(one.name, model[one.name])
        history.end_step(model.time)
    with penstock.open(tmp_path / "a.nc", device="host") as file:
        assert len(flow.FIELDS) == 18
        for one in flow.FIELDS:
            assert np.array_equal(np.asarray(file[one.name][0]), model.on_the_host(one.name).astype("f4")), one


def test_wrong_boxes_and_names() -> None:
    with pytest.raises(penstock.Error, match="has 3 cells"):
        flow.Model((3, 8, 8), device="host")
    with pytest.raises(penstock.Error, match="not of this world"):
        flow.Model(CELLS, wind=1e9, device="host")
    with pytest.raises(KeyError):
        flow.Model(CELLS, device="host")["X"]


def test_the_example_tells_how_the_bubble_rises() -> None:
    program = [sys.executable, str(EXAMPLES / "history" / "bubble.py")]
    told = subprocess.run(program, capture_output=True, text=True, check=True, timeout=200)
    rises = [float(one) for one in told.stdout.removeprefix("fastest rise, m/s:").split()]
    assert len(rises) == 4 and 1 < rises[0] < rises[1] < rises[-1] < 30
