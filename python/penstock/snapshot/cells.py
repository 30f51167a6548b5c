"""The cells of a snapshot of several processes: what each of them counted, and what all counted together.

What must stay true: a process sends the cells that it has particles of, and no others, so that all messages together
are as long as one table of all cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from penstock.snapshot.values import box_of, cells_of, particle_type, positions_of

_TOTALS, _EXTREMES = 2, 8  # numbers of a cell
Positions = tuple[int, str, Any]  # of one type: its number, the name of the type of numbers, memory


class CellGrid(NamedTuple):
    """The cells of all types, one type behind the other. Each process gives the same."""

    cells: list[int]  # along each dimension
    box_size: list[float]
    types: list[int]

    def __str__(self) -> str:
        return f"cells {self.cells} of a box {self.box_size} for the types {self.types}"


class CellCalls(NamedTuple):
    """How the core makes cells."""

    act: str  # processes that do another one are told
    alone: Callable[[tuple[list[int], list[float]], list[Positions]], None]
    count_own: Callable[[tuple[list[int], list[float]], list[Positions]], tuple[bytes, bytes]]  # of several processes


class CountedCells(NamedTuple):
    """What one process counted: of cells that have particles."""

    cells: Any
    totals: Any  # of each of these
    extremes: Any


def given_cells(
    cells: Sequence[int], box_size: float | Sequence[float], positions: Mapping[int, Any]
) -> tuple[CellGrid, list[Positions]]:
    """What a user gives, as the core takes it."""
    if not isinstance(positions, Mapping):
        raise TypeError(f"positions are a dict of types and arrays, not {type(positions).__name__}")
    by_type = {particle_type(kind): one for kind, one in positions.items()}
    types = [(kind, *positions_of(by_type[kind])) for kind in sorted(by_type)]
    return CellGrid(cells_of(cells), box_of(box_size), [kind for kind, _, _ in types]), types


def counted(call: CellCalls, grid: CellGrid, types: list[Positions]) -> CountedCells:
    import numpy as np

    all_totals, all_extremes = call.count_own((grid.cells, grid.box_size), types)
    totals = np.frombuffer(all_totals, "i8").reshape(-1, _TOTALS)
    extremes = np.frombuffer(all_extremes, "f8").reshape(-1, _EXTREMES)
    cells = np.flatnonzero(totals[:, 0])
    return CountedCells(cells, totals[cells], extremes[cells])


def together(grid: CellGrid, all_counted: Sequence[CountedCells]) -> tuple[Any, Any]:
    """The sums of all totals, and the greatest of all extremes, as arrays."""
    import numpy as np

    count = prod(grid.cells) * len(grid.types)
    totals = np.zeros((count, _TOTALS), "i8")
    extremes = np.full((count, _EXTREMES), -np.finfo("f8").max)
    for one in all_counted:
        totals[one.cells] += one.totals
        extremes[one.cells] = np.maximum(extremes[one.cells], one.extremes)
    return totals, extremes
