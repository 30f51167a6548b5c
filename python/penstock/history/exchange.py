"""Elements of an array of all ranks, from the boxes that a model has to the boxes of which a store can be made.

What must stay true: all ranks refuse a division, or none does, so that none waits for another that left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from penstock._error import Error
from penstock._files.communicator import Communicator


class RankBox(NamedTuple):
    """Elements [start, start + shape) of the array of all ranks."""

    start: tuple[int, ...]
    shape: tuple[int, ...]

    def common(self, other: RankBox) -> RankBox:
        starts = tuple(map(max, self.start, other.start))
        ends = [min(a + n, b + m) for a, n, b, m in zip(self.start, self.shape, other.start, other.shape, strict=True)]
        return RankBox(starts, tuple(max(0, end - start) for start, end in zip(starts, ends, strict=True)))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def within(self, whole: RankBox) -> tuple[slice, ...]:
        """Where it lies in an array that has the elements of another one."""
        rows = zip(self.start, self.shape, whole.start, strict=True)
        return tuple(slice(start - first, start - first + count) for start, count, first in rows)


class Exchange:
    """Moves elements of an array of all ranks from the boxes that they have to the boxes that they get.

        start, rows = penstock.history_split(1000, comm.size, comm.rank)
        exchange = penstock.Exchange(comm, has=((first, 0), field.shape), gets=((start, 0), (rows, 60)))
        ...
        history.put("T", exchange.move(field))

    For models whose division is fixed, and of whose boxes no compressed store of all ranks can be made. Each rank gives
    its own boxes as (start, shape), n integers each. Boxes that ranks have do not overlap, and have all elements of
    those that ranks get. `comm` is a communicator of mpi4py. Collective, as move() is: all ranks raise the same Error
    of a division that is none.
    """

    def __init__(
        self,
        comm: Communicator,
        has: tuple[Sequence[int], Sequence[int]],
        gets: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        self._comm = comm
        own: Any = None
        fault: str = ""
        try:
            own = RankBox(*(tuple(map(int, one)) for one in has)), RankBox(*(tuple(map(int, one)) for one in gets))
            fault = _fault_of(*own)
        except (TypeError, ValueError) as error:
            fault = f"a box is (start, shape), integers each: {error}"
        told = comm.allgather((own, fault))
        faults = [(rank, fault) for rank, (_, fault) in enumerate(told) if fault]
        faults = faults or self._divided([boxes for boxes, _ in told])
        if faults:
            rank, fault = faults[0]
            advice = "give each element of the array to one rank"
            raise Error(
                code="invalid_argument", operation="exchange boxes", cause=f"rank {rank}: {fault}", advice=advice
            )
        self._has, self._gets = own
        self._sends = [self._has.common(gets) for (_, gets), _ in told]
        self._comes = [has.common(self._gets) for (has, _), _ in told]

    def _divided(self, boxes: list[tuple[RankBox, RankBox]]) -> list[tuple[int, str]]:
        """What is wrong with the boxes of all ranks, by rank."""
        if len({len(box.start) for pair in boxes for box in pair}) > 1:
            return [(self._comm.size - 1, "the ranks have different numbers of dimensions")]
        gets = boxes[self._comm.rank][1]
        comes = [common for has, _ in boxes if (common := has.common(gets)).size]
        fault = ""
        if any(one.common(other).size for one, other in combinations(comes, 2)):
            fault = "two ranks have an element that it gets"
        elif sum(one.size for one in comes) != gets.size:
            fault = "no rank has an element that it gets"
        return [(rank, fault) for rank, fault in enumerate(self._comm.allgather(fault)) if fault]

    def move(self, array: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The elements of the box that this rank gets.

        Args:
            array: of the shape of the box that it has. The types of all ranks are one, also where a box is empty.
            out: of the shape of the box that it gets, to be filled; a new array without it.
        """
        if array.shape != self._has.shape:
            raise ValueError(f"the array has shape {array.shape}, the box of this rank {self._has.shape}")
        out = np.empty(self._gets.shape, array.dtype) if out is None else out
        if out.shape != self._gets.shape or out.dtype != array.dtype:
            raise ValueError(f"out is {out.dtype} {out.shape}, what comes is {array.dtype} {self._gets.shape}")
        sent = [np.ascontiguousarray(array[box.within(self._has)]) if box.size else None for box in self._sends]
        for box, part in zip(self._comes, self._comm.alltoall(sent), strict=True):
            if part is None:
                continue
            if part.dtype != out.dtype:
                raise ValueError(f"another rank sent {part.dtype}, the array of this one is {out.dtype}")
            out[box.within(self._gets)] = part
        return out


def _fault_of(*boxes: RankBox) -> str:
    for box in boxes:
        if not box.start or len(box.start) != len(box.shape):
            return f"a box begins at {box.start} and has shape {box.shape}"
        if min((*box.start, *box.shape)) < 0:
            return f"a box has a negative number: {box.start}, {box.shape}"
    return ""
