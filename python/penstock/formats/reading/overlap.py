"""Memory of several `out` of one call must not overlap: what lands there last would win, and the order is unknown.

Pure but for asking objects where their memory is. What must stay true: two that share a byte are refused before
anything moves, with the names of their datasets; two that touch are not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise

from penstock import _core
from penstock.formats.reading.target import Target


def check_apart(outs: Sequence[tuple[str, Target]]) -> None:
    """ValueError names the datasets of two targets that share memory. The targets have no gaps."""
    if len(outs) < 2:
        return
    spans = sorted((address_of(one), one.nbytes, name) for name, one in outs if one.nbytes)
    for (address, size, name), (behind, _, other) in pairwise(spans):
        if address + size > behind:
            raise ValueError(f"out for dataset {name!r} and out for dataset {other!r} share memory from {behind:#x} on")


def address_of(target: Target) -> int:
    """Address of the first byte of a target that has one and can be written."""
    memory = target.memory
    if isinstance(memory, _core.Buffer):
        return memory.address + target.base
    if isinstance(memory, _core.DLPackMemory):
        return memory.pointer + target.base
    if isinstance(memory, ctypes.Array):
        return ctypes.addressof(memory) + target.base
    if hasattr(memory, "__cuda_array_interface__"):
        return memory.__cuda_array_interface__["data"][0] + target.base
    return ctypes.addressof(ctypes.c_ubyte.from_buffer(memory)) + target.base
