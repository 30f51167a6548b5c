"""Plans of lists and masks: what NumPy takes, whatever the layout; what is named twice is read once."""

from __future__ import annotations

import random
from typing import Any

import formats_rig as rig
import numpy as np
import pytest
from formats_rig import index_at_random, shrink, swapped

from penstock._arrays.array import c_strides
from penstock._arrays.dtype import DType
from penstock._arrays.selection import Selection, select
from penstock.formats.model import Box, ChunkTable, DatasetInfo
from penstock.formats.reading import picked
from penstock.formats.reading.pieces import Wanted
from penstock.formats.reading.plan import BatchPlan
from penstock.formats.simple.single import extent_table

__all__ = ["shrink"]  # a fixture


def picks_at_random(chance: random.Random, shape: tuple[int, ...]) -> Any:
    """An index with one list or mask, as NumPy takes it in the same order."""
    kind = chance.random()
    if kind < 0.2:
        return np.random.default_rng(chance.randrange(1 << 30)).random(shape) < chance.random()
    axis = chance.randrange(len(shape))
    parts = list(index_at_random(chance, shape))
    parts = [part if isinstance(part, slice) else slice(None) for part in parts]
    n = shape[axis]
    if kind < 0.4:
        parts[axis] = np.array([chance.random() < 0.5 for _ in range(n)], bool)
    else:
        numbers = [chance.randrange(-n, n) for _ in range(chance.randrange(12))] if n else []
        run = [*range(chance.randrange(n), n)] if n else []  # that pieces may join
        parts[axis] = chance.choice([numbers, sorted(numbers), run + numbers, run[::-1]])
        if chance.random() < 0.5:
            parts[axis] = np.array(parts[axis], chance.choice(["int64", "int16"]))
    return tuple(parts)


@pytest.mark.parametrize("seed", range(0, 800, 20))
def test_reads_bring_what_numpy_takes(seed: int, shrink: Any) -> None:
    for one in range(seed, seed + 20):
        chance = random.Random(one)
        shrink(chance)
        stored = rig.stored_at_random(chance)
        info = stored.info
        if not info.ndim:
            continue
        index = picks_at_random(chance, info.shape)
        selection, base = select(info.shape, index), chance.choice([0, 8])
        made = BatchPlan()
        strides = c_strides(selection.counts, info.dtype.itemsize)
        made.add(Wanted(info, selection, 0, base, strides), stored.table if selection.size else None)
        memory = np.zeros(base + selection.size * info.dtype.itemsize, np.uint8)
        rig.read(made, stored, memory)
        taken = stored.content[index] if isinstance(index, tuple) else stored.content[index, :]
        expected = swapped(np.ascontiguousarray(taken), info.dtype)
        assert np.array_equal(memory[base:].reshape(expected.shape), expected), one


def planned(info: DatasetInfo, table: ChunkTable, index: Any) -> BatchPlan:
    selection, made = select(info.shape, index), BatchPlan()
    made.add(Wanted(info, selection, 0, 0, c_strides(selection.counts, info.dtype.itemsize)), table)
    return made


def contiguous(shape: tuple[int, ...], dtype: str) -> tuple[DatasetInfo, ChunkTable]:
    info = DatasetInfo("x", shape, DType.of(dtype), shape)
    return info, extent_table("a", len(shape), 4096, int(np.prod(shape)) * info.dtype.itemsize)


@pytest.mark.parametrize("row", [100, 1 << 20])
def test_rows_that_are_named_twice_are_read_once(row: int) -> None:
    info, table = contiguous((1000, row), "float32")
    (batch,) = planned(info, table, [7, 900, 7, 7, 900]).batches()
    assert batch.bytes == 2 * row * 4
    assert batch.ranges == 2


def test_a_row_within_rows_of_another_read_is_read_with_them() -> None:
    info, table = contiguous((1000, 512), "float32")
    made = BatchPlan()
    for target, numbers in enumerate(([10, 11, 12, 13], [11])):
        made.add(Wanted(info, select(info.shape, numbers), target, 0, (2048, 4)), table)
    (batch,) = made.batches()
    assert batch.staged[:, [1, 3]].tolist() == [[4096 + 10 * 2048, 4 * 2048]]


def test_rows_near_each_other_are_one_request() -> None:
    info, table = contiguous((1000, 512), "float32")
    (batch,) = planned(info, table, [2, 9, 0, 4]).batches()  # holes of one row, and one of four
    assert sorted(batch.staged[:, 1].tolist() + batch.direct[0][:, 1].tolist()) == [4096, 4096 + 9 * 2048]
    assert batch.bytes == 6 * 2048


def test_rows_in_order_are_one_range() -> None:
    info, table = contiguous((1000, 512), "float32")
    (batch,) = planned(info, table, list(range(20, 60))).batches()
    assert batch.direct[0].tolist() == [[0, 4096 + 20 * 2048, 0, 40 * 2048]]


def test_all_rows_backwards_are_not_taken_for_the_whole() -> None:
    info, table = contiguous((3, 2), "float32")
    made = planned(info, table, [2, 1, 0])
    assert [move.table[:, 0].tolist() for batch in made.batches() for move in batch.moves] == [[16, 8, 0]]


def test_what_a_library_decodes_is_asked_for_once_a_chunk() -> None:
    info = DatasetInfo("x", (1000, 10), DType.of("float32"), (100, 10), filters=("odd",), layout="chunked")
    origin = np.array([[at, 0] for at in range(0, 1000, 100)], np.int64)
    columns = (np.zeros(10, np.int32), origin, np.arange(10) * 5000, np.full(10, 4000))
    made = planned(info, ChunkTable(("a",), *columns, np.ones(10, bool)), [950, 3, 901, 7, 3])
    boxes = [decode.box for decode in made.decodes]
    assert boxes == [Box((3, 0), (8, 10)), Box((901, 0), (951, 10))]


def test_what_has_no_chunks_is_not_decoded_from_the_first_to_the_last() -> None:
    info = DatasetInfo("x", (1 << 40, 10), DType.of("float32"), (1 << 40, 10), layout="virtual")
    zero = np.zeros(1, np.int64)
    table = ChunkTable(("a",), zero, np.zeros((1, 2), np.int64), zero, zero, np.ones(1, bool))
    made = planned(info, table, [1 << 39, 5, 6, 4])
    assert [decode.box.start[0] for decode in made.decodes] == [4, 1 << 39]
    assert made.decoded_bytes == 4 * 40


def asked(index: Any, cells: int = 1 << 20) -> list[Box]:
    """What a format with many chunks is asked for."""
    info, found = DatasetInfo("x", (cells * 10, 4), DType.of("float32"), (10, 4)), []

    def ask(box: Box) -> ChunkTable:
        found.append(box)
        rows = np.unique(np.arange(box.start[0] // 10, -(-box.stop[0] // 10)))
        origin = np.column_stack([rows * 10, 0 * rows])
        return ChunkTable((f"{box.start[0]}",), 0 * rows, origin, rows, 0 * rows + 160, rows < 0)

    selection = select(info.shape, index)
    table = picked.table_of(info, selection, ask)
    number = sorted({int(one) // 10 for one in selection.picks.numbers}) if selection.picks is not None else []
    assert set(number) <= set((table.origin[:, 0] // 10).tolist())
    assert len(table.files) == len(found)
    assert [table.files[one] for one in table.file_index.tolist()]
    return found


def test_few_rows_of_many_chunks_are_few_questions() -> None:
    assert asked([9_000_000, 12, 25]) == [Box((12, 0), (30, 4)), Box((9_000_000, 0), (9_000_001, 4))]
    assert asked([1, 800]) == [Box((1, 0), (801, 4))]  # few chunks lie between
    assert len(asked(list(range(0, 10_000_000, 10_000)))) == 1  # many would be asked for


def test_no_element_of_a_mask_is_lost_in_chunks_without_a_grid() -> None:
    info = DatasetInfo("x", (7, 3), DType.of("u1"), (4, 3))
    origin, offset = np.array([[0, 0], [3, 0]]), np.array([0, 9])
    table = ChunkTable(("a",), np.zeros(2, np.int32), origin, offset, np.array([12, 12]), np.zeros(2, bool))
    mask = np.zeros((7, 3), bool)
    mask[[1, 6], [2, 0]] = True
    part = picked.meet(info, select((7, 3), mask), table)
    assert part.rows.tolist() == [0, 1]
    assert part.inside.tolist() == [[1, 2], [3, 0]]


def test_selections_tell_whether_an_element_is_named_twice() -> None:
    assert picked.is_repeated(select((5,), [1, -4]))
    assert not picked.is_repeated(select((5,), [1, 4]))
    assert not picked.is_repeated(Selection.all_of((5,)))
