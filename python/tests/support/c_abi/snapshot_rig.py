"""A snapshot of fields of the host, written through the C ABI by ctypes.

The structs are those of penstock_snapshot.h.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

LIBRARY = Path(ps.__file__).parent / "lib" / "libpenstock.so.0"
SYSTEM = 3
U64, I32, TEXT, ANY = ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p


class Struct(ctypes.Structure):
    """One that tells its size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        if hasattr(self, "struct_size"):
            self.struct_size = ctypes.sizeof(self)


class _Error(Struct):
    _fields_ = (
        *(("struct_size", U64), ("code", I32), ("system_code", I32), ("offset_bytes", U64), ("length_bytes", U64)),
        *(("operation", ctypes.c_char * 64), ("file", ctypes.c_char * 1024), ("cause", ctypes.c_char * 512)),
        *(("advice", ctypes.c_char * 512), ("message", ctypes.c_char * 2048)),
    )


class _ContextOptions(Struct):
    _fields_ = (
        *(("struct_size", U64), ("device", TEXT), ("path", TEXT), ("budget_bytes", U64), ("workers", I32)),
        *(("strict", I32), ("bandwidth", ctypes.c_double), ("latency", U64), ("profile", TEXT)),
        *(("adaptive", I32), ("reserved", I32)),
    )


class _Options(Struct):
    _fields_ = (
        *(("struct_size", U64), ("path", TEXT), ("memory", I32), ("durable", I32)),
        *(("refuse_existing", I32), ("reserved", I32)),
    )


class _Dataset(Struct):
    _fields_ = (
        *(("struct_size", U64), ("path", TEXT), ("dtype", TEXT), ("shape", ctypes.POINTER(U64))),
        ("rank", U64),
    )


class _Attribute(Struct):
    _fields_ = (
        *(("struct_size", U64), ("name", TEXT), ("dtype", TEXT), ("values", ANY), ("texts", ctypes.POINTER(TEXT))),
        *(("shape", ctypes.POINTER(U64)), ("rank", ctypes.c_uint32), ("text_bytes", ctypes.c_uint32)),
        *(("any_length", I32), ("reserved", I32)),
    )


class _Field(ctypes.Structure):
    _fields_ = (("dataset", TEXT), ("data", ANY), ("bytes", U64))


class CError(Exception):
    """What penstock_error says."""


class CSnapshot:
    """A snapshot of fields of the host."""

    def __init__(self, name: Path, **options: int) -> None:
        self._library = ctypes.CDLL(str(LIBRARY))
        self._library.penstock_context_destroy.argtypes = [ANY]
        self._library.penstock_snapshot_free.argtypes = [ANY]
        self._context, self._snapshot = ANY(), ANY()
        self._call("context_create", ctypes.byref(_ContextOptions(device=b"host")), ctypes.byref(self._context))
        wanted = _Options(memory=SYSTEM, **options)
        self._call("snapshot_open", self._context, str(name).encode(), ctypes.byref(wanted), self._place())

    def _place(self) -> Any:
        return ctypes.byref(self._snapshot)

    def _call(self, function: str, *arguments: Any) -> None:
        error = _Error()
        if getattr(self._library, f"penstock_{function}")(*arguments, ctypes.byref(error)) != 0:
            raise CError(error.message.decode())

    def group(self, path: str) -> None:
        self._call("snapshot_add_group", self._snapshot, path.encode())

    def link(self, path: str, target: str) -> None:
        self._call("snapshot_add_link", self._snapshot, path.encode(), target.encode())

    def dataset(self, path: str, array: np.ndarray) -> None:
        shape = (U64 * max(1, array.ndim))(*array.shape)
        told = _Dataset(path=path.encode(), dtype=array.dtype.name.encode(), shape=shape, rank=array.ndim)
        self._call("snapshot_add_dataset", self._snapshot, ctypes.byref(told))

    def numbers(self, path: str, name: str, value: Any) -> None:
        array = np.asarray(value)
        shape = (U64 * max(1, array.ndim))(*array.shape)
        told = _Attribute(name=name.encode(), dtype=array.dtype.name.encode(), shape=shape, rank=array.ndim)
        told.values = array.ctypes.data
        self._call("snapshot_set_attribute", self._snapshot, path.encode(), ctypes.byref(told))

    def text(self, path: str, name: str, value: str | list[str], any_length: int = 0, text_bytes: int = 0) -> None:
        all_texts = [value] if isinstance(value, str) else value
        texts = (TEXT * max(1, len(all_texts)))(*(one.encode() for one in all_texts))
        told = _Attribute(name=name.encode(), texts=texts, any_length=any_length, text_bytes=text_bytes)
        if not isinstance(value, str):
            told.shape, told.rank = (U64 * 1)(len(value)), 1
        self._call("snapshot_set_attribute", self._snapshot, path.encode(), ctypes.byref(told))

    def preset(self, told: ctypes.Structure) -> None:
        self._call("snapshot_use_preset", self._snapshot, ctypes.byref(told))

    def write(self, fields: dict[str, np.ndarray]) -> None:
        given = (_Field * len(fields))(*(_Field(k.encode(), v.ctypes.data, v.nbytes) for k, v in fields.items()))
        self._call("snapshot_write", self._snapshot, given, U64(len(fields)), None)

    def close(self) -> None:
        self._library.penstock_snapshot_free(self._snapshot)
        self._library.penstock_context_destroy(self._context)
