"""A pair of calls that the suite `data` compares: one of Penstock's, and the one that people make today."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock_bench.suites.data.files import ROW_BYTES

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

Call = Callable[[int], Any]  # turn -> what was read
_LIGHT = 0.05  # calls for each one of the definition's
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

    @property
    def is_heavy(self) -> bool:
        """Whether a call of the other side takes about a second."""
        return self.calls < _LIGHT


def row_of(run: Run, turn: int) -> int:
    return turn * _STRIDE % (run.bytes // ROW_BYTES)


def beside_here(run: Run) -> tuple[str, tuple[str, ...]]:
    """What people read HDF5 with to where the run's device computes, and the modules that this takes."""
    return ("h5py", ("h5py",)) if run.emulated else ("h5py and CuPy", ("h5py", "cupy"))


def on_device(run: Run, values: np.ndarray) -> Any:
    """An array where the run's device computes: CuPy's on a GPU."""
    if run.emulated:
        return values
    import cupy

    return cupy.asarray(values)


def wait_for(array: Any) -> None:
    """Until an array of CuPy has arrived."""
    array.device.synchronize()


def put_here(run: Run, read: Callable[[int], np.ndarray]) -> Call:
    """What is read lies where the run's device computes, and is there when the call returns."""
    if run.emulated:
        return read

    def read_and_copy(turn: int) -> Any:
        found = on_device(run, read(turn))
        wait_for(found)
        return found

    return read_and_copy
