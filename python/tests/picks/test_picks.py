"""Lists and masks of datasets: what NumPy takes, from files of every format; and what is refused in clear words."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import formats_rig as rig
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from places import examples

import penstock
from penstock import _core
from penstock._error import Error

h5py = pytest.importorskip("h5py")

SHAPE = (40, 6, 10)


def values(dtype: str = "<f8") -> np.ndarray:
    return np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with the same elements, stored in many ways."""
    made = tmp_path_factory.mktemp("picks")
    with h5py.File(made / "x.h5", "w") as file:
        file["contiguous"] = values()
        file["foreign"] = values(">i4")
        file.create_dataset("chunked", data=values(), chunks=(3, 6, 4), maxshape=(None, 6, 10))
        file.create_dataset("packed", data=values(">i4"), chunks=(3, 6, 4), compression="gzip", shuffle=True)
        _of_the_library(file)
        space = h5py.h5s.create_simple(SHAPE)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F64LE, space, plist).write(
            h5py.h5s.ALL, h5py.h5s.ALL, values()
        )
        file.create_dataset("holes", shape=SHAPE, dtype="<f8", chunks=(4, 6, 10), fillvalue=-1)[8:24] = values()[8:24]
        layout = h5py.VirtualLayout(shape=SHAPE, dtype="<f8")
        layout[:] = h5py.VirtualSource(file["chunked"])
        file.create_virtual_dataset("virtual", layout)
    np.save(made / "c.npy", values())
    np.save(made / "f.npy", np.asfortranarray(values(">f4")))
    values().tofile(made / "x.bin")
    for suffix in ("nc", "nc3", "safetensors", "zarr"):
        with penstock.create(made / f"x.{suffix}", device="host") as file:
            file["contiguous"] = values()
    with penstock.create(made / "chunked.zarr", device="host") as file:
        file.create_dataset("chunked", SHAPE, "<f8", chunk_shape=(3, 6, 4))
        file["chunked"][...] = values()
    return made


def _of_the_library(file: h5py.File) -> None:
    """Floats of 63 bits, which only the HDF5 library makes numbers of."""
    short, plist = h5py.h5t.IEEE_F64LE.copy(), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    short.set_fields(62, 51, 11, 0, 51)
    short.set_precision(63)
    plist.set_chunk((7, 6, 4))
    space = h5py.h5s.create_simple(SHAPE)
    h5py.h5d.create(file.id, b"library", short, space, plist).write(h5py.h5s.ALL, h5py.h5s.ALL, values())


DATASETS = [
    ("x.h5", "contiguous", "<f8"),
    ("x.h5", "foreign", ">i4"),
    ("x.h5", "chunked", "<f8"),
    ("x.h5", "packed", ">i4"),
    ("x.h5", "library", "<f8"),
    ("x.h5", "compact", "<f8"),
    ("x.h5", "holes", "<f8"),
    ("x.h5", "virtual", "<f8"),
    ("c.npy", None, "<f8"),
    ("f.npy", None, ">f4"),
    ("x.bin", None, "<f8"),
    ("x.nc", "contiguous", "<f8"),
    ("x.nc3", "contiguous", "<f8"),
    ("x.safetensors", "contiguous", "<f8"),
    ("x.zarr", "contiguous", "<f8"),
    ("chunked.zarr", "chunked", "<f8"),
]


def opened(folder: Path, name: str) -> penstock.DataFile:
    options: Any = {"shape": SHAPE, "dtype": "<f8"} if name.endswith(".bin") else {}
    return penstock.open(folder / name, device="host", **options)


def find(file: penstock.DataFile, name: str | None) -> tuple[penstock.Dataset, np.ndarray]:
    dataset = file[name or next(iter(file))]
    whole = values(dataset.info.dtype.dtype.str)
    if name == "holes":
        whole[:8] = whole[24:] = -1
    return dataset, whole


some = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


def picks(extent: int) -> st.SearchStrategy[Any]:
    numbers = st.lists(st.integers(-extent, extent - 1), max_size=9)
    runs = st.builds(range, st.integers(0, extent), st.integers(0, extent), st.sampled_from([1, 2, -1]))
    arrays = st.builds(np.array, numbers.filter(bool), st.sampled_from(["i1", "i4", "i8"]))
    masks = st.lists(st.booleans(), min_size=extent, max_size=extent)
    return numbers | numbers.map(sorted) | runs | arrays | masks | masks.map(np.array)


@st.composite
def indices(draw: st.DrawFn) -> Any:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return np.random.default_rng(draw(st.integers(0, 99))).random(SHAPE) < draw(st.floats(0, 1))
    axis = draw(st.integers(0, 2)) if kind > 4 else 0
    ends = [st.none() | st.integers(-extent - 2, extent + 2) for extent in SHAPE]
    steps = st.sampled_from([None, 1, 1, 2, -2])
    index = [draw(st.builds(slice, end, end, steps)) for end in ends]
    index[axis] = draw(picks(SHAPE[axis]))
    if kind > 7 and axis > 0:  # where NumPy keeps the dimension in its place, too
        index[axis - 1] = draw(st.integers(-SHAPE[axis - 1], SHAPE[axis - 1] - 1))
    count = draw(st.integers(axis + 1, 3))
    return index[0] if count == 1 and draw(st.booleans()) else (*index[:count], *([...] if kind % 2 else []))


def taken(whole: np.ndarray, index: Any) -> np.ndarray:
    """NumPy takes neither a range nor an empty list for integers."""
    parts = index if isinstance(index, tuple) else (index,)
    plain = lambda part: isinstance(part, range) or (isinstance(part, list) and not part)  # noqa: E731
    return whole[tuple(np.array(part, int) if plain(part) else part for part in parts)]


@pytest.mark.parametrize(("file_name", "name", "dtype"), DATASETS)
def test_reads_are_what_numpy_takes(folder: Path, file_name: str, name: str | None, dtype: str) -> None:
    with opened(folder, file_name) as file:
        dataset, whole = find(file, name)

        @some
        @given(indices(), st.sampled_from(["index", "read", "out", "start"]))
        def check(index: Any, way: str) -> None:
            expected = taken(whole, index)
            if way == "out":
                order = "F" if dataset.info.order == "F" else "C"
                out = np.zeros(expected.shape, dataset.dtype.dtype, order)
                assert dataset.read(index, out=out) is out
                found: Any = out
            elif way == "start":
                found = dataset.start_read(index).result()
            else:
                found = dataset[index] if way == "index" else dataset.read(index)
            assert found.shape == expected.shape
            np.testing.assert_array_equal(np.asarray(found), expected)

        check()


@pytest.mark.parametrize(("file_name", "name", "dtype"), DATASETS)
def test_gather_takes_along_a_dimension(folder: Path, file_name: str, name: str | None, dtype: str) -> None:
    with opened(folder, file_name) as file:
        dataset, whole = find(file, name)
        for axis, numbers in ((0, [39, 3, 3, -40, 4]), (1, np.array([5, 0, 5])), (-1, [True] * 9 + [False])):
            expected = whole[(*(slice(None) for _ in range(axis % 3)), numbers)]
            np.testing.assert_array_equal(np.asarray(dataset.gather(numbers, axis=axis)), expected)
        out = np.zeros((2, 6, 10), dataset.dtype.dtype, "F" if dataset.info.order == "F" else "C")
        assert dataset.gather([7, 1], out) is out
        np.testing.assert_array_equal(out, whole[[7, 1]])


def test_a_dimension_with_a_list_stays_in_its_place_as_with_h5py(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file, h5py.File(folder / "x.h5") as stock:
        found = file["contiguous"][3, :, [1, 4]]
        assert found.shape == (6, 2)
        np.testing.assert_array_equal(np.asarray(found), stock["contiguous"][3, :, [1, 4]])


@pytest.mark.parametrize(
    ("index", "kind", "words"),
    [
        (([1], [2]), IndexError, "one list or mask: dimensions 0 and 1"),
        ([True] * 39, IndexError, "a mask of 39 elements does not fit dimension 0 of extent 40"),
        (np.ones((40, 6), bool), IndexError, r"a mask of shape \(40, 6\) does not fit the dataset, whose shape is"),
        ([1.5], TypeError, "indices are integers, those of dimension 0 are float64"),
        (["a"], TypeError, "indices are integers"),
        ([40], IndexError, "index 40 is out of bounds for dimension 0 of extent 40"),
        ((slice(None), [0, -7]), IndexError, "index -7 is out of bounds for dimension 1 of extent 6"),
        (np.array([2**64 - 1], np.uint64), IndexError, "out of bounds"),
        ([[1, 2]], IndexError, "has one dimension"),
        (np.ones((2, 2), int), IndexError, "name elements of one dimension"),
        ([[1], [2, 3]], TypeError, "no array on the host"),
        ({1, 2}, TypeError, "not of set"),
    ],
)
def test_what_names_no_elements_is_refused(folder: Path, index: Any, kind: type[Exception], words: str) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        for _ in range(2):
            with pytest.raises(kind, match=words):
                file["contiguous"][index]


@pytest.mark.parametrize("name", ["foreign", "packed"])
def test_out_has_the_order_of_this_machine(folder: Path, name: str) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        out = np.empty((2, 6, 10), ">i4")
        words = (
            f"^out has elements of big-endian int32, dataset '{name}' is read as int32, in the order of this machine$"
        )
        for read in (lambda: file[name].read([3, 1], out=out), lambda: file[name].gather([3, 1], out)):
            with pytest.raises(TypeError, match=words):
                read()
        with pytest.raises(TypeError, match=f"of float32, dataset '{name}' is read as int32$"):
            file[name].read([3, 1], out=out.astype("f4"))


def test_gather_refuses_what_is_no_list(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        with pytest.raises(TypeError, match="a list of integers or a mask, not int"):
            file["contiguous"].gather(3)
        with pytest.raises(IndexError, match="3 dimensions, and no dimension 3"):
            file["contiguous"].gather([3], axis=3)
        with pytest.raises(ValueError, match="out has shape"):
            file["contiguous"].gather([3], np.zeros((2, 6, 10)))


def test_the_array_of_a_list_is_an_array_as_all_others(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        found = file["contiguous"][[5, 1]]
        np.testing.assert_array_equal(found.to_numpy(), values()[[5, 1]])
        assert found[1, 0, 3].item() == values()[1, 0, 3]
        assert found.buffer.kind == file["contiguous"].start_read([5, 1]).result().buffer.kind
        again = np.zeros((2, 6, 10))
        whole = file["contiguous"][:2]
        assert file["contiguous"].read([5, 1], out=whole) is whole
        file["contiguous"].read([5, 1], out=again)
        np.testing.assert_array_equal(whole.to_numpy(), again)


def test_rows_are_told_in_the_evidence(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset = file["contiguous"]
        assert dataset[[30, 1, 2, 30]].shape == (4, 6, 10)
        told = file.evidence()
        assert told["formats"]["range_bytes"] == 3 * 480  # what is named twice is read once
        assert told["formats"]["requested_bytes"] == 4 * 480
        (share,) = told["paths"]
        assert (share["path"], share["bytes"], share["operations"]) == ("buffered", 1440, 2)
        dataset.start_read([30, 1, 2, 30]).result()
        assert file.evidence()["formats"]["requested_bytes"] == 8 * 480


def test_rows_that_lie_close_together_are_one_read(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset, rows = file["contiguous"], np.array([9, 1, 5, 3])
        for turn in range(1, 3):
            assert np.array_equal(np.asarray(dataset[rows]), values("float64")[rows])
            told = file.evidence()
            assert told["formats"]["range_bytes"] == turn * 9 * 480  # with what lies between them
            assert told["formats"]["requested_bytes"] == turn * 4 * 480
            assert told["formats"]["staged_bytes"] == turn * 9 * 480
            assert told["paths"][0]["operations"] == turn


def test_many_rows_are_the_same_for_any_number_of_cores(tmp_path: Path) -> None:
    array = np.random.default_rng(0).random((5000, 256))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = array
    rows = np.random.default_rng(1).integers(0, 5000, 4000)
    allowed, told = os.sched_getaffinity(0), []
    for cores in ({min(allowed)}, allowed):
        os.sched_setaffinity(0, cores)
        try:
            with penstock.open(tmp_path / "x.h5", device="host") as file:
                assert np.array_equal(np.asarray(file["x"][rows]), array[rows])
                told.append(file.evidence())
        finally:
            os.sched_setaffinity(0, allowed)
    assert told[0] == told[1]
    assert told[0]["formats"]["requested_bytes"] == 4000 * 2048, "by rows, and not by a plan"
    assert told[0]["formats"]["batches"] == 1


@pytest.mark.parametrize(
    "rows",
    [
        [3],
        [-1, 0, -40, 39],
        np.arange(39, -1, -3),
        np.array([7, 7, 7, 0], np.int32),
        np.arange(20, dtype=np.int64)[::-5],
        np.arange(40) % 3 == 0,
        (np.arange(80) % 3 == 0)[::2],
        [np.int64(3), 4],
        np.array([3, 5], np.uint8),
        np.array([3, 5], ">i8"),
    ],
    ids=str,
)
def test_the_first_and_the_later_reads_of_rows_are_alike(folder: Path, rows: Any) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        for name, dtype in (("contiguous", "float64"), ("chunked", "float32")):
            dataset = file[name]
            for _ in range(3):
                found = dataset[rows]
                assert found.dtype == dataset.dtype
                assert np.array_equal(np.asarray(found), values(dtype)[rows])


@pytest.mark.parametrize("rows", [[40], [-41], [1 << 70], np.array([0, 40]), np.ones(39, bool), [1.5], ["a"], [None]])
def test_later_reads_refuse_what_first_reads_refuse(folder: Path, rows: Any) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        with pytest.raises((IndexError, TypeError)) as first:
            file["contiguous"][rows]
        dataset = file["contiguous"]
        dataset[0], dataset[1]
        with pytest.raises(first.type, match=re.escape(str(first.value))):
            dataset[rows]


def test_rows_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(1000.0).reshape(100, 10))
    with penstock.open(tmp_path / "a.npy", device="host") as file:
        dataset = file["data"]
        assert np.asarray(dataset[[99, 0]])[0, 0] == 990
        assert np.asarray(dataset[[99, 0]])[0, 0] == 990
        with (tmp_path / "a.npy").open("r+b") as raw:
            raw.truncate(1000)
        with pytest.raises(Error, match=r"a\.npy"):
            dataset[[99, 0]]
        np.save(tmp_path / "b.npy", np.zeros((100, 10)))
        (tmp_path / "b.npy").replace(tmp_path / "a.npy")
        with pytest.raises(Error, match="replaced"):
            dataset[[99, 0]]
    with pytest.raises(ValueError, match="closed"):
        dataset[[99, 0]]


def test_extents_are_those_of_the_rows(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        extents = file["packed"].extents([39, 0, 0])
        assert sorted(extents) == sorted({*file["packed"].extents(slice(39, 40)), *file["packed"].extents(slice(0, 1))})
        (one,) = file["contiguous"].extents([0, 2])
        assert one.bytes == 3 * 480  # the hole is cheaper to read than to skip


def test_each_chunk_is_decoded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decode, chunks = _core.decode_chunks, []

    def counted(context: Any, pipeline: Any, source: Any, *others: Any) -> Any:
        chunks.append(len(source[1]))
        return decode(context, pipeline, source, *others)

    monkeypatch.setattr(_core, "decode_chunks", counted)
    with penstock.open(folder / "x.h5", device="host") as file:
        found = file["packed"][[39, 0, 0, 1, 38, 2], :, ::2]
        np.testing.assert_array_equal(np.asarray(found), values()[[39, 0, 0, 1, 38, 2], :, ::2])
    assert sum(chunks) == 3 * 3  # rows 0 to 2, 38 and 39, in three chunks each


def test_read_many_takes_lists(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        wanted = {"contiguous": [3, 1], "packed": (slice(None), range(2)), "chunked": None}
        found = file.read_many(wanted).result()
        np.testing.assert_array_equal(np.asarray(found["contiguous"]), values()[[3, 1]])
        np.testing.assert_array_equal(np.asarray(found["packed"]), values()[:, :2])


def test_rows_of_a_file_that_was_pickled(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        file["contiguous"][[1, 2]]
        again = pickle.loads(pickle.dumps(file["contiguous"]))
        np.testing.assert_array_equal(np.asarray(again[[4, 2]]), values()[[4, 2]])


@pytest.mark.parametrize("seed", range(12))
def test_datasets_at_random(tmp_path: Path, seed: int) -> None:
    import random

    stored = rig.stored_at_random(random.Random(seed))
    if not stored.info.ndim or min(stored.info.shape) == 0:
        return
    with rig.opened(tmp_path, stored) as file:
        numbers = np.random.default_rng(seed).integers(0, stored.info.shape[0], 7)
        found = np.asarray(file["x"][numbers])
        np.testing.assert_array_equal(found, rig.values(stored)[numbers].astype(found.dtype))


def test_elements_without_a_fixed_size_are_picked_too(tmp_path: Path) -> None:
    words = np.array([f"w{n}" for n in range(24)], object).reshape(4, 3, 2)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("t", data=words, dtype=h5py.string_dtype())
    with penstock.open(tmp_path / "t.h5", device="host") as file:
        for index in ([3, 1, 3], (2, [2, 0]), (slice(None, None, -2), [1, 0], 1), words > "w2"):
            assert file["t"][index].tolist() == words[index].tolist()
