"""A pair of calls that the suite `data` compares: one of Penstock's, and the one that people make today."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock_bench.suites.data.files import ROW_BYTES

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

Call = Callable[[int], Any]  # turn -> what was read
_STRIDE = 37  # rows between two turns: no row is read twice in a row


@dataclass(frozen=True)
class Pair:
    """`make`: both calls, ready; what they keep open goes on the stack."""

    name: str
    peer: str
    make: Callable[[ExitStack], tuple[Call, Call]]
    modules: tuple[str, ...] = ()
    calls: float = 1  # for each one of the definition's, where a call is short or long
    bytes: int = ROW_BYTES
    by_clock: bool = False  # else by the processor's time: the elements are to be NumPy's


def row_of(run: Run, turn: int) -> int:
    return turn * _STRIDE % (run.bytes // ROW_BYTES)
