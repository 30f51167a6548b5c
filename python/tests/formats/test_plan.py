"""Plans: every selected byte comes to its place, whatever the layout, in batches that stay within their limits."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import formats_rig as rig
import numpy as np
import pytest
from formats_rig import index_at_random, shrink, swapped

from penstock._arrays.array import c_strides
from penstock._arrays.dtype import DType
from penstock._arrays.selection import select
from penstock._error import Error
from penstock.formats.model import Box, ChunkTable, DatasetInfo
from penstock.formats.reading import plan
from penstock.formats.reading.pieces import Wanted
from penstock.formats.reading.plan import BatchPlan
from penstock.formats.simple.single import extent_table

__all__ = ["shrink"]  # a fixture


@pytest.mark.parametrize("seed", range(0, 600, 20))
def test_reads_bring_what_numpy_selects(seed: int, shrink: Any) -> None:
    for one in range(seed, seed + 20):
        chance = random.Random(one)
        shrink(chance)
        stored = rig.stored_at_random(chance)
        info, index = stored.info, index_at_random(chance, stored.info.shape)
        selection, base = select(info.shape, index), chance.choice([0, 8])
        made = BatchPlan()
        strides = c_strides(selection.counts, info.dtype.itemsize)
        made.add(Wanted(info, selection, 0, base, strides), stored.table)
        memory = np.zeros(base + selection.size * info.dtype.itemsize, np.uint8)
        rig.read(made, stored, memory)
        expected = swapped(np.ascontiguousarray(stored.content[index]), info.dtype)
        assert np.array_equal(memory[base:].reshape(expected.shape), expected), one


@pytest.mark.parametrize("seed", range(0, 400, 20))
def test_writes_put_each_byte_where_a_reader_finds_it(seed: int, shrink: Any) -> None:
    for one in range(seed, seed + 20):
        chance = random.Random(one)
        shrink(chance)
        stored = rig.stored_at_random(chance)
        info = stored.info
        table = replace(stored.table, encoded=np.zeros(len(stored.table.bytes), bool))
        index = index_at_random(chance, info.shape) if chance.random() < 0.5 else (...,)
        selection = select(info.shape, index)
        made = BatchPlan(writes=True)
        strides = c_strides(selection.counts, info.dtype.itemsize)
        memory = np.frombuffer(chance.randbytes(selection.size * info.dtype.itemsize), np.uint8).copy()
        before = memory.copy()
        try:
            made.add(Wanted(info, selection, 0, 0, strides), table)
        except Error as error:
            assert "no place in the file" in str(error)  # a chunk that was not stored
            continue
        files = {name: file.copy() for name, file in stored.files.items()}
        rig.write(made, memory, files)
        assert np.array_equal(memory, before)
        back, again = np.zeros_like(memory), BatchPlan()
        again.add(Wanted(info, selection, 0, 0, strides), table)
        rig.read(again, replace(stored, files=files), back)
        assert np.array_equal(back, memory), one


def contiguous(shape: tuple[int, ...], dtype: str, offset: int = 4096) -> tuple[DatasetInfo, ChunkTable]:
    info = DatasetInfo("x", shape, DType.of(dtype), shape)
    return info, extent_table("a", len(shape), offset, int(np.prod(shape)) * info.dtype.itemsize)


def planned(info: DatasetInfo, table: ChunkTable, index: Any) -> BatchPlan:
    selection, made = select(info.shape, index), BatchPlan()
    made.add(Wanted(info, selection, 0, 0, c_strides(selection.counts, info.dtype.itemsize)), table)
    return made


def test_a_row_block_is_one_extent() -> None:
    info, table = contiguous((1_000_000, 3), "float32")
    (batch,) = planned(info, table, slice(10, 1000)).batches()
    assert batch.direct[0].tolist() == [[0, 4096 + 120, 0, 990 * 12]]
    assert batch.ranges == 1
    assert not batch.moves


def test_a_column_is_fetched_in_ranges_that_fit_scratch_and_gathered() -> None:
    info, table = contiguous((50_000_000, 3), "float32")
    made = planned(info, table, (slice(None), 1))
    found = list(made.batches())
    assert all(batch.scratch_bytes <= 1.25 * plan.SCRATCH_BYTES for batch in found)
    assert sum(batch.bytes for batch in found) < 600_000_000
    assert sum(batch.ranges for batch in found) < 20


def test_wide_steps_skip_what_lies_between() -> None:
    info, table = contiguous((1000, 100_000), "float32")
    made = planned(info, table, (slice(None, None, 2), slice(0, 10)))
    (batch,) = made.batches()
    assert batch.bytes == 500 * 40
    assert batch.ranges == 500


def test_ten_thousand_chunks_are_one_batch() -> None:
    count = 10_000
    info = DatasetInfo("x", (count * 100,), DType.of("float64"), (100,))
    shuffled = np.random.default_rng(1).permutation(count).astype(np.int64)
    table = ChunkTable(
        ("a",),
        np.zeros(count, np.int32),
        (np.arange(count) * 100).reshape(-1, 1),
        shuffled * 9000,  # holes of 8200 bytes: not worth reading
        np.full(count, 800, np.int64),
        np.zeros(count, bool),
    )
    (batch,) = planned(info, table, ...).batches()
    assert batch.ranges == count
    assert batch.bytes == count * 800


def test_small_chunks_next_to_each_other_are_one_range() -> None:
    count = 10_000
    info = DatasetInfo("x", (count * 100,), DType.of("float64"), (100,))
    shuffled = np.random.default_rng(1).permutation(count).astype(np.int64)
    columns = (np.zeros(count, np.int32), (np.arange(count) * 100).reshape(-1, 1), shuffled * 800)
    table = ChunkTable(("a",), *columns, np.full(count, 800, np.int64), np.zeros(count, bool))
    (batch,) = planned(info, table, ...).batches()
    assert batch.ranges == 1


def test_a_million_ranges_come_in_bounded_batches() -> None:
    info, table = contiguous((1_000_000, 4096), "float32")
    made = planned(info, table, (slice(None), 0))
    found = list(made.batches())
    assert max(batch.ranges for batch in found) <= plan.BATCH_PIECES
    assert sum(batch.bytes for batch in found) == 4_000_000


def test_large_datasets_are_direct_whatever_their_size() -> None:
    info, table = contiguous((1 << 20, 1 << 20), "float64")
    (batch,) = planned(info, table, ...).batches()
    assert batch.direct[0].tolist() == [[0, 4096, 0, 1 << 43]]
    assert batch.scratch_bytes == 0


def test_big_endian_is_swapped_in_place_when_it_came_straight() -> None:
    info, table = contiguous((1000, 1000), ">f8")
    (batch,) = planned(info, table, ...).batches()
    (move,) = batch.moves
    assert move.in_place
    assert (move.item_bytes, move.swap_bytes) == (8, 8)
    assert move.table.tolist() == [[0, 0, 1_000_000, 8, 8]]


def test_compressed_datasets_are_decoded_in_slabs_that_end_where_chunks_do() -> None:
    info = DatasetInfo(
        "x", (1000, 1000, 100), DType.of("float32"), (30, 1000, 100), filters=("gzip",), layout="chunked"
    )
    count = -(-1000 // 30)
    origin = np.zeros((count, 3), np.int64)
    origin[:, 0] = np.arange(count) * 30
    columns = (np.zeros(count, np.int32), origin, np.arange(count) * 5000, np.full(count, 4000))
    table = ChunkTable(("a",), *columns, np.ones(count, bool))
    made = planned(info, table, ...)
    assert max(decode.bytes for decode in made.decodes) <= plan.DECODE_BYTES
    assert sum(decode.bytes for decode in made.decodes) == 400_000_000
    assert all(decode.box.start[0] % 30 == 0 for decode in made.decodes)
    assert not made.pieces


def test_a_chunk_shorter_than_its_shape_is_damage() -> None:
    info, table = contiguous((1000,), "float64")
    short = replace(table, bytes=table.bytes - 1)
    with pytest.raises(Error, match="shorter"):
        planned(info, short, slice(0, 10))


def test_a_selection_of_nothing_needs_nothing() -> None:
    info, table = contiguous((1000, 3), "float64")
    made = planned(info, table, slice(5, 5))
    assert list(made.batches()) == []
    assert made.requested_bytes == 0


def test_boxes_name_the_bounding_box() -> None:
    assert select((10, 10), (slice(8, 2, -3), 4)).box == Box((5, 4), (9, 5))
