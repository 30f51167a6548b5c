"""Chunks that were never stored, in files that have their name: writing gives them a place, and h5py finds all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import penstock as ps
from penstock.formats.hdf5.changing import apply

SHAPE, CHUNK = (37, 22), (8, 5)
FILL = 7


def make(path: Path, libver: str = "earliest", stored: bool = False, **layout: Any) -> np.ndarray:
    """A dataset "x" of which nothing, or the first rows, are stored; what it holds."""
    how = {"chunks": CHUNK, "fillvalue": FILL, "dtype": "f4"} | layout
    with h5py.File(path, "w", libver=libver) as file:
        data = file.create_dataset("x", SHAPE, **how)
        if stored:
            data[:11] = 1
        file["beside"] = np.arange(10)
        return data[...]


def found(path: Path) -> np.ndarray:
    with h5py.File(path) as file:
        assert file["beside"][...].tolist() == list(range(10))
        return file["x"][...]


LAYOUTS: list[tuple[str, dict[str, Any]]] = [
    ("earliest", {}),
    ("earliest", {"compression": "gzip", "shuffle": True}),
    ("earliest", {"fletcher32": True}),
    ("earliest", {"maxshape": (None, None)}),
    ("latest", {}),
    ("latest", {"compression": "gzip"}),
    ("latest", {"maxshape": (None, 22)}),
    ("earliest", {"compression": "lzf"}),  # which is undone here, and not applied
]


@pytest.mark.parametrize(("libver", "layout"), LAYOUTS)
def test_an_element_takes_its_chunk_and_the_rest_of_it_is_the_fill_value(
    libver: str, layout: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "x.h5"
    expected = make(path, libver, **layout)
    with ps.open(path, write=True, device="host") as file:
        file["x"][9, 6] = np.float32(3)
        assert file["x"][8:12, 4:8].to_numpy().tolist()[1][2] == 3
    expected[9, 6] = 3
    assert np.array_equal(found(path), expected)
    with h5py.File(path) as file:
        assert file["x"].id.get_num_chunks() == 1


@pytest.mark.parametrize(("libver", "layout"), LAYOUTS)
@pytest.mark.parametrize("index", [np.s_[:], np.s_[30:], np.s_[3:20, 4:], np.s_[::9, 2:7], np.s_[[36, 1, 20]]])
def test_what_is_written_is_what_h5py_finds(libver: str, layout: dict[str, Any], index: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    expected = make(path, libver, **layout)
    expected[index] = np.arange(expected[index].size).reshape(expected[index].shape)
    with ps.open(path, write=True, device="host") as file:
        file["x"][index] = np.ascontiguousarray(expected[index])
        assert np.array_equal(file["x"][...], expected)
    assert np.array_equal(found(path), expected)


def test_new_chunks_are_compressed_where_penstock_applies_the_filter(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    make(path, stored=True, compression="gzip")
    with ps.open(path, write=True, device="host") as file:
        file["x"][5:30] = np.full((25, 22), 4, "f4")
    with h5py.File(path) as file:
        chunks = [file["x"].id.get_chunk_info(at) for at in range(file["x"].id.get_num_chunks())]
    assert [one.filter_mask for one in chunks] == [0] * 20
    assert all(one.size < 8 * 5 * 4 for one in chunks)


def test_rows_far_apart_leave_the_chunks_between_them_without_a_place(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    make(path)
    with ps.open(path, write=True, device="host") as file:
        file["x"][[0, 36]] = np.zeros((2, 22), "f4")
    with h5py.File(path) as file:
        assert file["x"].id.get_num_chunks() == 10


def test_a_read_gives_no_chunk_a_place(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    make(path)
    before = path.read_bytes()
    with ps.open(path, write=True, device="host") as file:
        assert (file["x"][...].to_numpy() == FILL).all()
    assert path.read_bytes() == before


def test_an_index_that_cannot_take_chunks_in_safe_steps_is_refused_and_nothing_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    make(path, "latest", stored=True, maxshape=(None, None))  # a B-tree of version 2
    before = path.read_bytes()
    file = ps.open(path, write=True, device="host")
    with pytest.raises(ps.Error, match="in place"):
        file["x"][20:] = np.zeros((17, 22), "f4")
    with pytest.raises(ps.Error, match="in place"):
        file.close()
    assert path.read_bytes() == before


def test_thousands_of_chunks_divide_the_nodes_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (6000,), "i4", chunks=(2,), fillvalue=-1)
    expected = np.full(6000, -1, "i4")
    random = np.random.default_rng(5)
    for _ in range(3):
        rows = random.choice(6000, 800, replace=False)
        expected[rows] = random.integers(0, 1 << 30, 800)
        with ps.open(path, write=True, device="host") as file:
            file["x"][rows] = expected[rows]
        with h5py.File(path) as file:
            assert np.array_equal(file["x"][...], expected)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_boxes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("boxes") / "x.h5"
    libver, layout = data.draw(st.sampled_from(LAYOUTS[:5]))
    expected = make(path, libver, data.draw(st.booleans()), **layout)
    for _ in range(data.draw(st.integers(1, 3))):
        with ps.open(path, write=True, device="host") as file:
            for number in range(data.draw(st.integers(1, 4))):
                sides = [sorted(data.draw(st.tuples(*[st.integers(0, extent)] * 2))) for extent in SHAPE]
                box = tuple(slice(*side) for side in sides)
                expected[box] = number + 10
                file["x"][box] = np.ascontiguousarray(expected[box])
                assert np.array_equal(file["x"][...], expected)
        assert np.array_equal(found(path), expected)


STEPPED: list[tuple[str, dict[str, Any]]] = [
    ("earliest", {"chunks": (2, 1)}),
    ("earliest", {"chunks": (2, 1), "compression": "gzip"}),
    ("latest", {"chunks": (3, 2)}),
    ("latest", {"chunks": (3, 2), "maxshape": (None, 22)}),
]


@pytest.mark.parametrize(("libver", "layout"), STEPPED)
def test_after_each_step_of_the_change_every_chunk_is_as_it_was_or_as_it_becomes(
    libver: str, layout: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill leaves. Nodes of the B-trees of version 1 are divided: they hold 64 chunks."""
    path, states, put = tmp_path / "x.h5", [], apply._put
    make(path, libver, **layout)
    with h5py.File(path, "r+", libver=libver) as file:
        for row in range(0, SHAPE[0], 12):  # so that nodes are divided between chunks that are there
            file["x"][row : row + 6] = row + 1
        before = file["x"][...]
    after = before.copy()
    after[9:31] = np.arange(22 * 22).reshape(22, 22) + 100

    def stepped(*given: Any) -> None:
        states.append(path.read_bytes())
        put(*given)
        states.append(path.read_bytes())

    monkeypatch.setattr(apply, "_put", stepped)
    with ps.open(path, write=True, device="host") as file:
        file["x"][11:31] = np.ascontiguousarray(after[11:31])  # chunks from row 10 or 9 on
        file["x"][9:11] = np.ascontiguousarray(after[9:11])
    assert np.array_equal(found(path), after)
    assert len(states) > 3
    rows, columns = layout["chunks"]
    for number, state in enumerate(states):
        path.write_bytes(state)
        seen = found(path)
        for row in range(0, SHAPE[0], rows):
            for column in range(0, SHAPE[1], columns):
                cell = np.s_[row : row + rows, column : column + columns]
                is_old = np.array_equal(seen[cell], before[cell])
                assert is_old or np.array_equal(seen[cell], after[cell]), f"step {number}: {cell}"
