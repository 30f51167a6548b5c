"""Two readers of one HDF5 file. HDF5 reads what has no fixed size through the first handle, also after its close: each
case has a process of its own, which may die."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")
from penstock.formats.hdf5 import reader, shared  # noqa: E402
from penstock.formats.hdf5.open import stamp_of  # noqa: E402


@pytest.fixture(autouse=True)
def _all_is_asked_of_hdf5(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contiguous numbers too, which a parser of ours would find."""
    monkeypatch.setattr(reader, "_parsed", lambda *_: None)


TEXT = h5py.string_dtype()
KINDS = {
    "text with a fill value": (TEXT, "-", "abc"),
    "members": (np.dtype([("a", "i4"), ("s", TEXT)]), None, (1, "abc")),
    "lists of text": (h5py.vlen_dtype(TEXT), None, np.array(["a", "b"], object)),
    "arrays of text": (np.dtype((TEXT, (2,))), None, np.array(["a", "b"], object)),
}
TURNS = """
import sys
import penstock as ps
one, other = sys.argv[1:]
for turn in range(50):
    a = ps.open(one, device="host")
    first = str(a["s"][...])
    b = ps.open(other, device="host")
    b["s"][...]
    a.close()
    c = ps.open(one, device="host")
    assert str(c["s"][...]) == first
    c.close()
    assert str(b["s"][...]) == first
    b.close()
"""


@pytest.mark.parametrize("is_linked", [False, True], ids=["one name", "two names"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_does_not_die_of_anothers_close(kind: str, is_linked: bool, tmp_path: Path) -> None:
    dtype, fill, value = KINDS[kind]
    name, other = tmp_path / "a.h5", tmp_path / ("b.h5" if is_linked else "a.h5")
    with h5py.File(name, "w") as file:
        options = {} if fill is None else {"fillvalue": fill}
        file.create_dataset("s", (3,), dtype=dtype, **options)[0] = value
    if is_linked:
        os.link(name, other)
    done = subprocess.run([sys.executable, "-c", TURNS, str(name), str(other)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_readers_have_one_handle(tmp_path: Path) -> None:
    """What HDF5 does with two is not the same each time: it may read what it has freed, and live."""
    name, other = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(name, "w") as file:
        file["x"] = np.arange(5)
    os.link(name, other)

    def handles() -> int:
        return h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)

    before = handles()
    with (
        ps.open(name, device="host") as one,
        ps.open(name, device="host") as same,
        ps.open(other, device="host") as two,
    ):
        for file in (one, same, two):
            assert np.array_equal(file["x"][...], np.arange(5))
            file["x"].attrs.get("units")
        assert handles() == before + 1
    assert handles() == before


def test_the_last_reader_closes_the_file(tmp_path: Path) -> None:
    name = tmp_path / "a.h5"
    with h5py.File(name, "w") as file:
        file["x"] = np.arange(5)
    one, other = ps.open(name, device="host"), ps.open(name, device="host")
    one.close()
    assert np.array_equal(other["x"][...], np.arange(5))
    with pytest.raises(ValueError, match="is closed"):
        one["x"]
    other.close()
    with h5py.File(name, "r+") as file:  # HDF5 refuses that of a file that is open for reading
        file["x"][2] = 7
    with ps.open(name, device="host") as file:
        assert np.array_equal(file["x"][...], [0, 1, 7, 3, 4])


def test_each_reader_names_the_file_as_it_was_given(tmp_path: Path) -> None:
    name, other = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(name, "w") as file:
        file.create_dataset("x", data=np.arange(5), chunks=(5,), compression="gzip")
    os.link(name, other)
    with ps.open(name, device="host") as one, ps.open(other, device="host") as file:
        assert np.array_equal(one["x"][...], file["x"][...])
        assert [part.file for part in one["x"].extents()] == [str(name)]
        assert [part.file for part in file["x"].extents()] == [str(other)]


def rewrite(name: Path, values: np.ndarray) -> None:
    """As another program does it in the file's place: with the same inode, which must have another time."""
    before = name.stat()
    made = name.with_name("made.h5")
    with h5py.File(made, "w") as file:
        file.create_dataset("x", data=values)
        file["s"] = ["text"] * len(values)
    with name.open("r+b") as file:
        file.truncate(0)
        file.write(made.read_bytes())
    while name.stat().st_mtime_ns == before.st_mtime_ns:
        name.touch()


def test_a_reader_sees_a_file_that_was_rewritten_beside_an_older_reader(tmp_path: Path) -> None:
    name = tmp_path / "a.h5"
    name.touch()
    rewrite(name, np.zeros(4))
    with ps.open(name, device="host") as old:
        assert old["x"].shape == (4,)
        for turn in range(3):  # each is closed, and the next one sees the next state
            rewrite(name, np.full(7 + turn, 1.0 + turn))
            with ps.open(name, device="host") as new, ps.open(name, device="host") as same:
                for file in (new, same):
                    assert np.array_equal(file["x"][...], np.full(7 + turn, 1.0 + turn))
                    assert list(file["s"][...]) == ["text"] * (7 + turn)
            with pytest.raises(ps.Error, match="was changed or replaced after it was opened here; open it again"):
                old["x"].read()


def test_readers_of_more_states_than_hdf5_can_hold_are_refused_in_words(tmp_path: Path) -> None:
    name = tmp_path / "a.h5"
    name.touch()
    rewrite(name, np.zeros(4))
    with ps.open(name, device="host"):
        rewrite(name, np.zeros(5))
        with ps.open(name, device="host") as second:
            rewrite(name, np.zeros(6))
            with pytest.raises(ps.Error, match="readers of two earlier states of the file are open"):
                ps.open(name, device="host")
            second.close()
            with ps.open(name, device="host") as third:
                assert third["x"].shape == (6,)
    with ps.open(name, device="host") as alone:
        assert alone["x"].shape == (6,)


def test_readers_that_only_the_garbage_collector_lets_go_of_are_in_no_ones_way(tmp_path: Path) -> None:
    name = tmp_path / "a.h5"
    name.touch()
    gc.disable()
    try:
        for length in range(4, 8):
            rewrite(name, np.zeros(length))
            circle: list[object] = [ps.open(name, device="host")]
            circle.append(circle)
            assert circle[0]["x"].shape == (length,)  # type: ignore[index]
            del circle
    finally:
        gc.enable()


def test_a_reader_that_comes_while_the_last_one_lets_go_has_a_file(tmp_path: Path, monkeypatch: Any) -> None:
    """As another thread does where the first one waits for HDF5."""
    name, came = tmp_path / "a.h5", []
    name.touch()
    rewrite(name, np.arange(4.0))

    def closing(file: Any) -> None:
        if not came:
            came.append(ps.open(name, device="host"))
        original(file)

    original = shared.close_file
    monkeypatch.setattr(shared, "close_file", closing)
    ps.open(name, device="host").close()
    with came[0] as file:
        assert np.array_equal(file["x"][...], np.arange(4.0))


def test_a_file_that_took_the_name_since_the_reader_looked_is_not_opened(tmp_path: Path) -> None:
    name, other = tmp_path / "a.h5", tmp_path / "b.h5"
    for one in (name, other):
        one.touch()
        rewrite(one, np.zeros(4))
    looked = stamp_of(str(name))
    other.replace(name)
    with ps.open(name, device="host"), pytest.raises(ps.Error, match="changed or replaced after it was opened here"):
        shared.share_file(str(name), looked)


def test_a_reader_sees_steps_of_a_running_model_beside_an_older_reader(tmp_path: Path) -> None:
    name, field = tmp_path / "run.nc", np.zeros((3, 4), "f4")
    with ps.History(name, format="netcdf4", device="host") as history:
        history.define("T", ("y", "x"), like=field)
        for step in range(3):
            history.put("T", field + step)
            history.end_step(step)
            history.wait()
            with ps.open(name, device="host") as file:
                assert np.array_equal(file["T"][...], [field + one for one in range(step + 1)])
            if step == 0:
                old = ps.open(name, device="host")  # beside all that follow
                assert old["T"].shape == (1, 3, 4)
    with pytest.raises(ps.Error, match="open it again"):
        old["T"].read()
    old.close()
