"""Parts of compressed chunks and shards of Zarr are written: NumPy then holds the same, and zarr-python reads it."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from places import examples

import penstock as ps

zarr = pytest.importorskip("zarr", minversion="3")
ROWS, COLUMNS = 50, 33
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunk_shape": (16, 10), "compression": "zstd"},
    "rows": {"chunk_shape": (8, COLUMNS), "compression": "gzip", "shuffle": True},
    "shards": {"chunk_shape": (4, 11), "shard_shape": (16, 22), "compression": "zstd"},
}


def numbers(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1000, shape).astype("f4")


def made(path: Path, layout: str, dtype: str = "f4") -> np.ndarray:
    array = numbers(0, (ROWS, COLUMNS))
    with ps.create(path, device="host") as file:
        one = file.create_dataset("a", array.shape, dtype, resizable=(None, COLUMNS), **LAYOUTS[layout])
        one[...] = array.astype(dtype)
    return array


def one_chunk(path: Path, shape: tuple[int, ...]) -> Path:
    """A store with zeros in one chunk."""
    with ps.create(path, device="host") as file:
        file.create_dataset("a", shape, "f4", chunk_shape=shape, compression="zstd")[...] = np.zeros(shape, "f4")
    return path


@st.composite
def part(draw: st.DrawFn, rows: int) -> Any:
    kind = draw(st.sampled_from(["row", "box", "box", "list", "order", "backwards", "mask"]))
    first = draw(st.integers(0, rows - 1))
    if kind == "row":
        return first
    if kind == "order":
        return draw(st.permutations(range(rows)))[: draw(st.integers(1, rows))]
    if kind == "list":
        return draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6, unique=True))
    if kind == "mask":
        mask = np.zeros((rows, COLUMNS), bool)
        mask[numbers(first, (9,)).astype(int) % rows, numbers(rows, (9,)).astype(int) % COLUMNS] = True
        return mask
    left = draw(st.integers(0, COLUMNS - 1))
    columns = slice(left, draw(st.integers(left + 1, COLUMNS)), draw(st.sampled_from([1, 2])))
    last = draw(st.integers(first + 1, rows))
    if kind == "backwards":
        return slice(last - 1, first - 1 if first else None, -draw(st.sampled_from([1, 3]))), columns
    return slice(first, last, draw(st.sampled_from([1, 4]))), columns


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_parts_leave_what_numpy_holds(tmp_path: Path, layout: str) -> None:
    number = iter(range(1 << 30))

    @settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        path = tmp_path / f"{next(number)}.zarr"
        held = made(path, layout)
        with ps.open(path, write=True, device="host") as file:
            dataset = file["a"]
            for step in range(data.draw(st.integers(1, 6))):
                what = data.draw(st.sampled_from(["write", "write", "background", "append"]))
                if what == "append":
                    more = numbers(step, (data.draw(st.integers(1, 20)), COLUMNS))
                    dataset.append(more)
                    held = np.concatenate([held, more])
                    continue
                index = data.draw(part(len(held)))
                value = numbers(step, held[index].shape)
                if what == "write":
                    dataset[index] = value
                else:
                    dataset.start_write(value, index)
                held[index] = value
                assert np.array_equal(dataset[...], held)
        assert np.array_equal(zarr.open(path)["a"][...], held)

    check()


INDICES: dict[str, Any] = {
    "backwards": slice(36, 3, -1),
    "all rows but some, in no order": [*range(30, 47), *range(29, 2, -1)],
    "columns backwards": (slice(5, 40), slice(30, None, -1)),
    "both backwards": (slice(40, None, -1), slice(None, None, -1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_whole_chunks_beside_parts_have_their_elements_in_order(tmp_path: Path, layout: str, index: Any) -> None:
    path = tmp_path / "x.zarr"
    held = made(path, layout)
    value = numbers(1, held[index].shape)
    with ps.open(path, write=True, device="host") as file:
        file["a"][index] = value
    held[index] = value
    assert np.array_equal(zarr.open(path)["a"][...], held)


def test_chunks_that_are_not_there_are_made_with_the_fill_value(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a", shape=(20, 20), chunks=(10, 10), dtype="i4", fill_value=7)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][3, 4:6] = np.array([1, 2], "i4")
    expected = np.full((20, 20), 7, "i4")
    expected[3, 4:6] = 1, 2
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], expected)
    assert [one.name for one in (tmp_path / "x.zarr/a/c").rglob("*") if one.is_file()] == ["0"], "the others stay away"


def test_threads_that_change_one_chunk_lose_nothing(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", "rows")
    together = threading.Barrier(4)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:

        def write(first: int) -> None:
            for row in range(first, 48, 4):
                together.wait(60)
                file["a"][row] = np.full(COLUMNS, row, "f4")

        threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = zarr.open(tmp_path / "x.zarr")["a"][:48]
    assert np.array_equal(found, np.repeat(np.arange(48, dtype="f4")[:, None], COLUMNS, 1))


def in_threads(*works: Any) -> None:
    failed: list[BaseException] = []

    def run(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_threads_that_append_and_write_lose_nothing(tmp_path: Path) -> None:
    for number in range(10):
        path = tmp_path / f"{number}.zarr"
        made(path, "rows")
        with ps.open(path, write=True, device="host") as file:
            dataset = file["a"]

            def append(value: int, dataset: Any = dataset) -> None:
                for _ in range(5):
                    dataset.append(np.full((3, COLUMNS), value, "f4"))

            def write(dataset: Any = dataset) -> None:
                for row in range(40, 50):
                    dataset[row] = np.full(COLUMNS, row, "f4")

            in_threads(lambda: append(-1), lambda: append(-2), write)  # noqa: B023 - they end in this round
        found = zarr.open(path)["a"][...]
        assert found.shape[0] == ROWS + 30
        assert (found[ROWS:, 0] == -1).sum() == (found[ROWS:, 0] == -2).sum() == 15
        assert np.array_equal(found[40:50, 0], np.arange(40, 50))


def test_a_write_that_began_before_an_append_leaves_its_rows(tmp_path: Path) -> None:
    from penstock._arrays.selection import select
    from penstock.formats.reading.request import Request

    made(tmp_path / "x.zarr", "rows")
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        before = file["a"].info
        file["a"].append(np.full((3, COLUMNS), 7, "f4"))
        late = Request(before, select(before.shape, 49), np.full(COLUMNS, 5, "f4"))
        file["a"]._file.start_write([late], None, {}, background=False).result()
    found = zarr.open(tmp_path / "x.zarr")["a"][48:]
    assert (found[1] == 5).all() and (found[2:] == 7).all()


@pytest.mark.parametrize("background", [False, True])
def test_a_part_and_the_whole_come_one_after_the_other(tmp_path: Path, background: bool) -> None:
    shape = (8, 20_000)
    for number in range(6):
        path = one_chunk(tmp_path / f"{number}.zarr", shape)
        with ps.open(path, write=True, device="host") as file:
            dataset = file["a"]

            def whole(dataset: Any = dataset) -> None:
                values = np.full(shape, 2, "f4")
                if background:
                    dataset.start_write(values).result()
                else:
                    dataset[...] = values

            def part(dataset: Any = dataset) -> None:
                dataset[0] = np.ones(shape[1], "f4")

            def read(dataset: Any = dataset) -> None:
                for _ in range(5):
                    assert dataset[5].to_numpy()[0] in (0, 2)

            in_threads(whole, part, read)
        found = zarr.open(path)["a"][...]
        assert (found[1:] == 2).all() and len(np.unique(found[0])) == 1 and found[0, 0] in (1, 2)


@pytest.mark.parametrize("columns", [40, 20_000])  # a chunk that its caller writes, and one that cores do
def test_two_writes_of_a_whole_chunk_leave_one_of_them(tmp_path: Path, columns: int) -> None:
    shape = (8, columns)
    for number in range(6):
        path = one_chunk(tmp_path / f"{number}.zarr", shape)
        with ps.open(path, write=True, device="host") as file:
            dataset = file["a"]

            def write(value: int, dataset: Any = dataset) -> None:
                values = np.random.default_rng(value).integers(0, 1 << value, shape).astype("f4")
                for _ in range(4):
                    dataset[...] = values + 1
                    dataset.start_write(values).result()

            def read(dataset: Any = dataset) -> None:
                for _ in range(8):
                    dataset[5].to_numpy()

            in_threads(lambda: write(3), lambda: write(12), read)  # noqa: B023 - they end in this round
        found = zarr.open(path)["a"][...]
        assert any(
            np.array_equal(found, np.random.default_rng(one).integers(0, 1 << one, shape).astype("f4"))
            for one in (3, 12)
        )


def test_rows_far_apart_leave_the_chunks_between_them_alone(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a", shape=(4000, 8), chunks=(8, 8), dtype="f4", fill_value=0)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][[3999, 0]] = np.ones((2, 8), "f4")
        file["a"][800:1600:400] = np.ones((2, 8), "f4")
        mask = np.zeros((4000, 8), bool)
        mask[[2000, 3000], [1, 7]] = True
        file["a"][mask] = np.array([5, 6], "f4")
        assert file.evidence()["formats"]["host_decoded_bytes"] == 0, "nothing was stored"
    found = zarr.open(tmp_path / "x.zarr")["a"][...]
    assert found.sum() == 4 * 8 + 11 and found[2000, 1] == 5 and found[3000, 7] == 6
    files = {one.parent.name for one in (tmp_path / "x.zarr/a/c").rglob("*") if one.is_file()}
    assert files == {"0", "100", "150", "250", "375", "499"}


def test_whole_chunks_among_parts_are_not_read(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", "rows")
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][4:44] = numbers(1, (40, COLUMNS))
        assert file.evidence()["formats"]["host_decoded_bytes"] == 2 * 8 * COLUMNS * 4, "the first chunk and the last"
    held = numbers(0, (ROWS, COLUMNS))
    held[4:44] = numbers(1, (40, COLUMNS))
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)


def test_readers_see_the_old_elements_until_it_is_published(tmp_path: Path) -> None:
    held = made(tmp_path / "x.zarr", "chunks")
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        file["a"][0] = np.zeros(COLUMNS, "f4")
        assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)
        assert not np.asarray(file["a"][0]).any()
        file.abandon()
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)


@pytest.mark.parametrize("dtype", [">f4", "<f8"])
def test_values_of_another_type_are_refused_and_the_byte_order_is_the_files(tmp_path: Path, dtype: str) -> None:
    held = made(tmp_path / "x.zarr", "rows", dtype).astype(dtype)
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file:
        with pytest.raises(TypeError, match="the value has elements of int16"):
            file["a"][0] = np.zeros(COLUMNS, "i2")
        with pytest.raises(ValueError, match="has shape"):
            file["a"][0] = np.zeros(COLUMNS - 1, dtype)
        file["a"][1] = np.arange(COLUMNS).astype(dtype)
        file["a"][2] = np.arange(COLUMNS).astype(np.dtype(dtype).newbyteorder())
    held[1:3] = np.arange(COLUMNS)
    assert np.array_equal(zarr.open(tmp_path / "x.zarr")["a"][...], held)
