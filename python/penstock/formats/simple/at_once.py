"""New files of some KiB that hold arrays of NumPy as they are: made on the calling thread, by system calls.

A context, a transfer and its record take ten times as long as the few KiB that save() is mostly given. What must stay
true: the file is the same, byte for byte, and so are its name, its rights and all errors, which the format's own writer
makes; what this does not take goes the long way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from penstock._api import Outcome
from penstock._arrays.dtype import DType
from penstock.formats import registry
from penstock.formats.model import NewDataset
from penstock.formats.reading.record import outcome_at_once
from penstock.formats.simple.single_write import ContiguousWriter

MOST_BYTES = 1 << 20  # of all arrays
_FORMATS = ("npy", "raw", "safetensors")


def saved_at_once(name: str, format: str | None, arrays: Mapping[str, Any], durable: bool) -> Outcome | None:
    """`name`: the whole path. None: the caller has to save it the long way. Raises Error as that would."""
    started = time.perf_counter()
    kind = registry.by_suffix(name) if format is None else registry.FORMATS.get(format)
    if kind is None or kind.name not in _FORMATS:
        return None
    new = _described(arrays)
    if new is None:
        return None
    writer: ContiguousWriter = registry.function(kind, "writer", name)(name)
    try:
        writer.put(new, list(arrays.values()))
        writer.publish(durable)
    except BaseException:
        writer.abandon()
        raise
    bytes = sum(value.nbytes for value in arrays.values())
    return outcome_at_once(bytes, len(new), time.perf_counter() - started)


def _described(arrays: Mapping[str, Any]) -> list[NewDataset] | None:
    """None unless all are plain numbers in order, under plain names, and few."""
    numpy = sys.modules.get("numpy")
    left, new = MOST_BYTES, []
    for name, value in arrays.items():
        if type(value) is not getattr(numpy, "ndarray", None) or type(name) is not str:
            return None
        left -= value.nbytes
        is_plain = value.dtype.isnative and value.dtype.kind in "biufc" and value.flags.c_contiguous
        if not is_plain or left < 0 or value.nbytes == 0 or not name.isascii():
            return None
        try:
            new.append(NewDataset(name, value.shape, DType.of(value.dtype).native).checked())
        except (TypeError, ValueError):  # said better where it names the file
            return None
    return new or None
