"""Histories of several processes, which are all of this one, through the C ABI by ctypes: what ranks of MPI do.

The structs are those of penstock_history.h.
"""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import Any

import numpy as np
from c_abi.snapshot_rig import ANY, I32, LIBRARY, SYSTEM, TEXT, U64, CError, Struct, _ContextOptions, _Error

U32 = ctypes.c_uint32
NUMBERS = ctypes.POINTER(U64)


class _HistoryOptions(Struct):
    _fields_ = (
        *(("struct_size", U64), ("format", TEXT), ("time_units", TEXT), ("calendar", TEXT), ("path", TEXT)),
        *(("start_time", ctypes.c_double), ("slots", U32), ("memory", I32), ("durable", I32), ("refuse_existing", I32)),
        *(("process", U32), ("processes", U32), ("compression", TEXT), ("compression_level", U32)),
        *(("no_shuffle", I32), ("encode_threads", U32), ("reserved", I32)),
    )


class _Variable(Struct):
    _fields_ = (
        *(("struct_size", U64), ("name", TEXT), ("dtype", TEXT), ("source_dtype", TEXT)),
        *(("dimensions", ctypes.POINTER(TEXT)), ("shape", NUMBERS), ("halo_low", NUMBERS), ("halo_high", NUMBERS)),
        *(("strides_bytes", ANY), ("file_dimensions", ANY), ("global_shape", NUMBERS), ("start", NUMBERS)),
        *(("rank", U32), ("statistic", I32), ("keep_bits", U32), ("reserved", I32), ("compression", TEXT)),
        *(("chunk_shape", NUMBERS), ("compression_level", U32), ("no_shuffle", I32)),
    )


def _one(number: int) -> Any:
    return (U64 * 1)(number)


class CHistories:
    """One history of so many processes, whose variables have one dimension that they share out."""

    def __init__(self, name: Path, processes: int, format: str, durable: bool) -> None:
        self._library = ctypes.CDLL(str(LIBRARY))
        self._library.penstock_context_destroy.argtypes = [ANY]
        self._library.penstock_history_end_step.argtypes = [ANY, ctypes.c_double, ANY]
        self._context, self._steps = ANY(), 0
        self._call("context_create", ctypes.byref(_ContextOptions(device=b"host")), ctypes.byref(self._context))
        self._all = [ANY() for _ in range(processes)]
        for process, history in enumerate(self._all):
            wanted = _HistoryOptions(format=format.encode(), memory=SYSTEM, durable=durable, no_shuffle=1)
            wanted.process, wanted.processes = process, processes
            where = ctypes.byref(history)
            self._call("history_open", self._context, str(name).encode(), ctypes.byref(wanted), where)

    def _call(self, function: str, *arguments: Any) -> None:
        error = _Error()
        if getattr(self._library, f"penstock_{function}")(*arguments, ctypes.byref(error)) != 0:
            raise CError(error.message.decode())

    def define(self, name: str, length: int, compression: str) -> None:
        own = length // len(self._all)
        for process, history in enumerate(self._all):
            told = _Variable(name=name.encode(), dtype=b"float32", rank=1, compression=compression.encode())
            told.dimensions = (TEXT * 1)(b"x")
            told.shape, told.global_shape, told.start = _one(own), _one(length), _one(own * process)
            told.no_shuffle = 1
            self._call("history_define", history, ctypes.byref(told))

    def begin(self) -> None:
        cuts = []
        for history in self._all:
            numbers, count = NUMBERS(), U64()
            self._call("history_cuts", history, ctypes.byref(numbers), ctypes.byref(count))
            cuts.append((numbers, count.value))
        for i in range(cuts[0][1]):
            common = math.gcd(*(numbers[i] for numbers, _ in cuts))
            for numbers, _ in cuts:
                numbers[i] = common
        for history in self._all:
            self._call("history_begin", history)

    def step(self, time: float, fields: dict[str, np.ndarray]) -> None:
        """One more step, which readers see when this returns."""
        for name, values in fields.items():
            for history, part in zip(self._all, np.split(values, len(self._all)), strict=True):
                self._call("history_put", history, name.encode(), ANY(part.ctypes.data))
        for history in self._all:
            self._call("history_end_step", history, time)
        for history in self._all:
            self._call("history_wait", history)
        self._steps += 1
        for history in reversed(self._all):
            self._call("history_publish", history, U64(self._steps))

    def close(self) -> None:
        for history in self._all:
            self._call("history_close", history)
        self._library.penstock_context_destroy(self._context)
