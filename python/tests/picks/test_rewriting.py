"""Compressed chunks that a file holds already are written anew, by boxes, steps, lists and masks: stock HDF5 finds the
elements that NumPy would have set, and until the file is closed the old ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import Error

h5py = pytest.importorskip("h5py")
SHAPE, CHUNK = (70, 22), (8, 5)


def values(seed: int = 1, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, SHAPE).astype(dtype)


def stored(path: Path, array: np.ndarray, **options: Any) -> None:
    with h5py.File(
        path, "w", **{key: options.pop(key) for key in ("userblock_size", "libver") if key in options}
    ) as h5:
        h5.create_dataset("g/x", data=array, **{"chunks": CHUNK, "compression": "gzip", "shuffle": True} | options)
        h5["other"] = np.arange(10)


def by_stock(path: Path) -> np.ndarray:
    with h5py.File(path, "r", locking=False) as h5:
        assert np.array_equal(h5["other"][...], np.arange(10))
        return h5["g/x"][...]


def some_index(random: np.random.Generator) -> Any:
    rows, columns = SHAPE
    low, high = sorted(random.choice(rows + 1, 2, replace=False).tolist())
    choices: list[Any] = [
        random.permutation(rows)[: random.integers(1, rows)],
        (slice(None), random.permutation(columns)[: random.integers(1, columns)]),
        random.random(rows) < 0.3,
        random.random(SHAPE) < 0.2,
        (slice(low, high), slice(3, 11)),
        slice(None, None, -int(random.integers(1, 4))),
        ...,
        int(random.integers(0, rows)),
    ]
    return choices[random.integers(0, len(choices))]


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"userblock_size": 1024, "compression_opts": 9}])
@pytest.mark.parametrize("dtype", ["f4", ">i2", "u1"])
def test_what_is_written_is_what_numpy_sets(tmp_path: Path, options: dict[str, Any], dtype: str) -> None:
    path, random = tmp_path / "x.h5", np.random.default_rng(4)
    for turn in range(12):
        expected = values(turn, dtype)
        stored(path, expected, **options)
        for _ in range(2):
            before = expected.copy()
            with ps.open(path, write=True, device="host") as file:
                for _ in range(3):
                    index = some_index(random)
                    value = random.integers(0, 100, expected[index].shape).astype(expected.dtype.newbyteorder("="))
                    expected[index] = file["g/x"][index] = value
                    assert np.array_equal(np.asarray(file["g/x"][...]), expected), "the writer reads it back"
                assert np.array_equal(by_stock(path), before), "readers see it when the file is closed"
            assert np.array_equal(by_stock(path), expected)


def chunks_of(path: Path) -> dict[tuple[int, ...], tuple[int, bytes]]:
    """Where each chunk lies, and its bytes, by its first element."""
    with h5py.File(path, "r", locking=False) as h5:
        one = h5["g/x"].id
        rows = [one.get_chunk_info(row) for row in range(one.get_num_chunks())]
        return {row.chunk_offset: (row.byte_offset, one.read_direct_chunk(row.chunk_offset)[1]) for row in rows}


def test_only_chunks_that_are_named_move_and_the_old_ones_stay_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    stored(path, values())
    before, content = chunks_of(path), path.read_bytes()
    with ps.open(path, write=True, device="host") as file:
        file["g/x"][[9, 2], 6] = np.full(2, 7, "f4")
        assert file.evidence()["formats"]["host_encoded_bytes"] == 2 * 8 * 5 * 4
    after = chunks_of(path)
    assert {at for at in before if before[at] != after[at]} == {(0, 5), (8, 5)}
    whole = path.read_bytes()
    for at in ((0, 5), (8, 5)):
        place, old = before[at]
        assert whole[place : place + len(old)] == content[place : place + len(old)] == old
        assert after[at][0] >= len(content)


def test_an_index_of_several_levels_leads_to_what_was_written(tmp_path: Path) -> None:
    path, expected = tmp_path / "x.h5", np.arange(40_000, dtype="<i4").reshape(20_000, 2)
    with h5py.File(path, "w") as h5:
        h5.create_dataset("x", data=expected, chunks=(2, 2), compression="gzip", compression_opts=1)
    rows = np.random.default_rng(2).permutation(20_000)[:700]
    with ps.open(path, write=True, device="host") as file:
        expected[rows] = file["x"][rows] = -expected[rows]
    with h5py.File(path) as h5:
        assert np.array_equal(h5["x"][...], expected)


def test_chunks_move_and_the_dataset_grows_in_one_session(tmp_path: Path) -> None:
    path, expected = tmp_path / "x.h5", values()
    stored(path, expected[:64], maxshape=(None, 22))
    with ps.open(path, write=True, device="host") as file:
        file["g/x"][[3, 60]] = expected[:2]
        file["g/x"].append(expected[64:])
        file["g/x"][1:4] = expected[[5, 6, 7]]
        file["g"].attrs["note"] = "grown"
        file["g/new"] = np.ones(9)
    expected[60] = expected[1]
    expected[1:4] = expected[[5, 6, 7]]
    assert np.array_equal(by_stock(path), expected)


def test_an_error_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    stored(path, values())
    content = path.read_bytes()
    with pytest.raises(ZeroDivisionError), ps.open(path, write=True, device="host") as file:
        file["g/x"][::2] = np.zeros((35, 22), "f4")
        raise ZeroDivisionError
    assert path.read_bytes() == content


def test_chunks_as_long_encoded_as_plain_are_read_back_at_the_edge(tmp_path: Path) -> None:
    """HDF5 would be asked how such a chunk is stored, and knows only where it was."""
    path = tmp_path / "x.h5"
    whole, found = np.random.default_rng(0).integers(0, 100, (14, 5)).astype("u1"), set()
    for turn in range(20):
        array = np.roll(whole, turn)
        for made_by_stock in (True, False):
            with h5py.File(path, "w") as h5:
                if made_by_stock:
                    h5.create_dataset("x", data=np.zeros((14, 5), "u1"), chunks=(8, 5), compression="gzip")
            with ps.open(path, write=True, device="host") as file:
                if not made_by_stock:
                    file.create_dataset("x", (14, 5), "u1", chunk_shape=(8, 5), compression="gzip")
                file["x"][1:] = array[1:]
                file["x"][[0]] = array[:1]
                assert np.array_equal(np.asarray(file["x"][...]), array)
            with h5py.File(path) as h5:
                assert np.array_equal(h5["x"][...], array)
                found.add(h5["x"].id.get_chunk_info(1).size)
    assert 40 in found, "of the lengths is the one that is in doubt"


REFUSED = [
    ({"compression": "lzf"}, r"filters that are not applied here: shuffle, lzf; write it with h5py"),
    ({"libver": "latest"}, r"entries of their index are changed in B-trees of version 1 alone"),
]


@pytest.mark.parametrize(("options", "cause"), REFUSED)
def test_what_cannot_be_written_anew_is_refused_and_nothing_has_changed(
    tmp_path: Path, options: dict[str, Any], cause: str
) -> None:
    path = tmp_path / "x.h5"
    stored(path, values(), **options)
    content = path.read_bytes()
    with ps.open(path, write=True, device="host") as file:
        for index in ([3, 60], np.s_[:8], 5):
            with pytest.raises(Error, match=cause) as caught:
                file["g/x"][index] = values()[index]
            assert caught.value.code == "unsupported"
    assert path.read_bytes() == content


def test_chunks_that_were_never_stored_are_made_beside_those_that_are_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    stored(path, values())
    with h5py.File(path, "r+") as h5:
        one = h5.create_dataset("half", (16, 5), "f4", chunks=(8, 5), compression="gzip")
        one[:8] = 1
    with ps.open(path, write=True, device="host") as file:
        file["half"][6:10] = np.full((4, 5), 2, "f4")
        file["half"][[7, 0]] = np.full((2, 5), 3, "f4")
    with h5py.File(path) as h5:
        assert h5["half"][:, 0].tolist() == [3, *[1] * 5, 2, 3, 2, 2, *[0] * 6]
