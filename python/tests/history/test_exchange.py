"""Boxes of a model are exchanged for boxes of which a store can be made: random divisions, every element looked at.
Ranks are threads here; test_mpi_exchange.py has those of MPI."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks.threads import ThreadComm, on_ranks

import penstock

Box = tuple[tuple[int, ...], tuple[int, ...]]


def divided(chance: random.Random, shape: tuple[int, ...], ranks: int) -> list[Box]:
    """A cell of a grid of uneven boxes for each rank; those behind the last cell have none."""
    cuts, left = [], ranks
    for extent in shape:
        count = chance.randint(1, left)
        left //= count
        cuts.append(sorted([0, extent, *(chance.randint(0, extent) for _ in range(count - 1))]))
    cells: list[Box] = [((), ())]
    for axis in cuts:
        cells = [
            ((*start, low), (*counts, high - low))
            for start, counts in cells
            for low, high in zip(axis, axis[1:], strict=False)
        ]
    nothing = ((0,) * len(shape), (0,) * len(shape))
    return cells + [nothing] * (ranks - len(cells))


def part(whole: np.ndarray, box: Box) -> np.ndarray:
    return whole[tuple(slice(start, start + count) for start, count in zip(*box, strict=True))]


@pytest.mark.parametrize("seed", range(60))
def test_each_element_arrives(seed: int) -> None:
    chance = random.Random(seed)
    ranks, shape = chance.randint(1, 6), tuple(chance.randint(1, 9) for _ in range(chance.randint(1, 4)))
    whole = np.arange(np.prod(shape)).reshape(shape).astype(chance.choice(["i4", "f8", "u1"]))
    has, gets = divided(chance, shape, ranks), divided(chance, shape, ranks)
    chance.shuffle(has)

    def work(comm: ThreadComm) -> bool:
        exchange = penstock.Exchange(comm, has[comm.rank], gets[comm.rank])
        wanted = part(whole, gets[comm.rank])
        out = np.full(wanted.shape, 77, whole.dtype)
        assert exchange.move(part(whole, has[comm.rank]), out) is out
        again = exchange.move(part(whole, has[comm.rank]) * 0)
        return np.array_equal(out, wanted) and again.shape == wanted.shape and not again.any()

    assert on_ranks(ranks, work) == [True] * ranks


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ([((0,), (6,)), ((5,), (5,))], "rank 1: two ranks have an element that it gets"),
        ([((0,), (4,)), ((5,), (5,))], "rank 0: no rank has an element that it gets"),
        ([((0,), (5,)), ((5, 0), (5, 1))], "different numbers of dimensions"),
        ([((0,), (5,)), ((5,), ("x",))], "rank 1: a box is .start, shape."),
        ([((0,), (5,)), ((-1,), (5,))], "rank 1: a box has a negative number"),
        ([((0,), (5,)), ((5,), (5, 1))], "rank 1: a box begins at"),
    ],
)
def test_a_division_that_is_none_is_refused_by_all(boxes: list[Any], words: str) -> None:
    gets = [((0,), (5,)), ((5,), (5,))]

    def work(comm: ThreadComm) -> None:
        with pytest.raises(penstock.Error, match=words) as caught:
            penstock.Exchange(comm, boxes[comm.rank], gets[comm.rank])
        assert caught.value.code == "invalid_argument"

    assert on_ranks(2, work) == [None, None]


def test_arrays_of_other_shapes_are_refused() -> None:
    def work(comm: ThreadComm) -> None:
        exchange = penstock.Exchange(comm, ((0,), (4,)), ((0,), (4,)))
        with pytest.raises(ValueError, match=r"shape \(5,\), the box of this rank \(4,\)"):
            exchange.move(np.zeros(5))
        with pytest.raises(ValueError, match=r"out is float32 \(4,\), what comes is float64"):
            exchange.move(np.zeros(4), np.zeros(4, "f4"))

    assert on_ranks(1, work) == [None]


def test_ranks_whose_types_differ_are_told_and_none_waits() -> None:
    def work(comm: ThreadComm) -> None:
        exchange = penstock.Exchange(comm, ((4 * comm.rank,), (4,)), ((4 - 4 * comm.rank,), (4,)))
        with pytest.raises(ValueError, match=r"another rank sent float.., the array of this one is float"):
            exchange.move(np.zeros(4, ("f4", "f8")[comm.rank]))

    assert on_ranks(2, work) == [None, None]


def test_a_compressed_store_of_ranks_whose_boxes_divide_badly(tmp_path: Path) -> None:
    whole = np.arange(1000 * 60, dtype="f4").reshape(1000, 60)

    def work(comm: ThreadComm) -> None:
        first, end = 1000 * comm.rank // 7, 1000 * (comm.rank + 1) // 7
        start, rows = penstock.history_split(1000, comm.size, comm.rank)
        exchange = penstock.Exchange(comm, ((first, 0), (end - first, 60)), ((start, 0), (rows, 60)))
        options: dict[str, Any] = {"format": "zarr", "compression": "zstd", "encode_threads": 1, "device": "host"}
        with penstock.History(tmp_path / "run.zarr", comm=comm, **options) as history:
            history.define("T", ("y", "x"), shape=(rows, 60), global_shape=(1000, 60), start=(start, 0))
            for step in range(3):
                history.put("T", exchange.move(whole[first:end] + step))
                history.end_step(10.0 * step)

    assert on_ranks(7, work) == [None] * 7
    with penstock.open(tmp_path / "run.zarr", device="host") as file:
        for step in range(3):
            assert np.array_equal(file["T"][step].to_numpy(), whole + step)
