"""Files of plain elements are changed in place: what a map of NumPy holds after the same, and nothing else changes."""

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from places import examples

import penstock

ROWS, COLUMNS = 20, 30
NUMBERS = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)


def npy(order: Any, kind: str) -> Callable[[Path], dict[str, Any]]:
    def make(name: Path) -> dict[str, Any]:
        np.save(name, np.asarray(NUMBERS.astype(kind), order=order))
        return {}

    return make


def safetensors(name: Path) -> dict[str, Any]:
    penstock.save(name, {"data": NUMBERS, "other": np.arange(3)}, "host", attributes={"note": "kept"})
    return {}


def raw(name: Path) -> dict[str, Any]:
    name.write_bytes(b"0123456789ABCDEF" + NUMBERS.tobytes() + b"end")
    return {"dtype": "f4", "shape": (ROWS, COLUMNS), "offset_bytes": 16}


FILES = {
    "c.npy": npy("C", "<f4"),
    "columns.npy": npy("F", "<f4"),
    "turned.npy": npy("C", ">f4"),
    "x.safetensors": safetensors,
    "x.dat": raw,
}


@st.composite
def box(draw: st.DrawFn) -> Any:
    row = draw(st.integers(0, ROWS - 1))
    if draw(st.booleans()):
        return row
    first = draw(st.integers(0, COLUMNS - 1))
    columns = slice(first, draw(st.integers(first + 1, COLUMNS)), draw(st.sampled_from([1, 1, 3])))
    return slice(row, draw(st.integers(row + 1, ROWS)), draw(st.sampled_from([1, 2]))), columns


@pytest.mark.parametrize("kind", FILES)
def test_any_edits_leave_what_numpy_holds(tmp_path: Path, kind: str) -> None:
    name = tmp_path / kind
    told = FILES[kind](name)
    whole = name.read_bytes()

    @settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(box(), min_size=1, max_size=12), st.integers(0, 1 << 30))
    def check(boxes: list[Any], seed: int) -> None:
        name.write_bytes(whole)
        chance = np.random.default_rng(seed)
        with penstock.open(name, device="host", **told) as file:
            held = np.array(file["data"][...].to_numpy())
        assert np.array_equal(held, NUMBERS)
        with penstock.open(name, write=True, device="host", **told) as file:
            dataset = file["data"]
            for index in boxes:
                value = chance.random(held[index].shape).astype("f4")
                dataset[index] = value
                held[index] = value
                assert np.array_equal(dataset[index], held[index])
        with penstock.open(name, device="host", **told) as file:
            assert np.array_equal(file["data"][...], held)
        now = name.read_bytes()
        assert len(now) == len(whole)
        stored = held.T if kind == "columns.npy" else held
        elements = stored.astype(">f4" if kind == "turned.npy" else "<f4").tobytes()
        at = now.find(elements)
        assert now[:at] == whole[:at] and now[at + len(elements) :] == whole[at + len(elements) :]

    check()


def test_what_the_head_says_stays(tmp_path: Path) -> None:
    for kind in FILES:
        name = tmp_path / kind
        told = FILES[kind](name)
        whole = name.read_bytes()
        with penstock.open(name, write=True, device="host", **told) as file:
            with pytest.raises(penstock.Error, match="get no new datasets"):
                file["more"] = NUMBERS
            with pytest.raises((penstock.Error, TypeError), match="do not grow|no first dimension that grows"):
                file["data"].append(NUMBERS[:1])
            with pytest.raises(penstock.Error, match="get no new attributes"):
                file.attrs["a"] = "b"
        assert name.read_bytes() == whole


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    name = tmp_path / "x.npy"
    FILES["c.npy"](name)
    with name.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(penstock.Error, match="has it open for writing"):
            penstock.open(name, write=True)
    with penstock.open(name, write=True), pytest.raises(penstock.Error, match="has it open for writing"):
        penstock.open(name, write=True)
    with penstock.open(name, write=True):
        pass


def test_a_file_that_took_the_name_is_not_written(tmp_path: Path) -> None:
    name = tmp_path / "x.npy"
    FILES["c.npy"](name)
    file = penstock.open(name, write=True, device="host")
    for _ in range(3):
        file["data"][0] = NUMBERS[1]
    FILES["c.npy"](tmp_path / "other.npy")
    (tmp_path / "other.npy").rename(name)
    whole = name.read_bytes()
    with pytest.raises(penstock.Error, match="another file has taken its name"):
        file["data"][1] = NUMBERS[2]
    with pytest.raises(penstock.Error):
        file.close()
    assert name.read_bytes() == whole


def test_a_file_that_was_cut_short_is_not_made_longer(tmp_path: Path) -> None:
    name = tmp_path / "x.npy"
    FILES["c.npy"](name)
    file = penstock.open(name, write=True, device="host")
    for _ in range(3):
        file["data"][ROWS - 1] = NUMBERS[1]
    with name.open("r+b") as other:
        other.truncate(1000)
    for _ in range(2):
        with pytest.raises(penstock.Error, match="was cut short while it was open"):
            file["data"][ROWS - 1] = NUMBERS[2]
    with pytest.raises(penstock.Error, match="was cut short"):
        file.close()
    assert name.stat().st_size == 1000


@pytest.mark.parametrize("durable", [True, False])
def test_a_disk_that_fails_is_told_at_the_end(tmp_path: Path, durable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.formats.simple import in_place

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    name = tmp_path / "x.npy"
    FILES["c.npy"](name)
    file = penstock.open(name, write=True, device="host", durable=durable)
    file["data"][0] = NUMBERS[1]
    if durable:
        monkeypatch.setattr(in_place.os, "fsync", fail)
    else:
        monkeypatch.setattr(in_place, "flush", fail)
    with pytest.raises(penstock.Error, match=f"{'fsync' if durable else 'flush'}.*Input/output error"):
        file.close()
    monkeypatch.undo()
    with penstock.open(name, write=True):  # the lock is free again
        pass
