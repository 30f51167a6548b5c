"""Datasets of a file as C programs have them: the C ABI called by ctypes; the structs are those of penstock.h."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

LIBRARY = Path(ps.__file__).parent / "lib" / "libpenstock.so.0"

_SYSTEM = 3
_RANK = 16
_U64, _I64, _I32, _TEXT, _ANY = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p


class _Struct(ctypes.Structure):
    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        if hasattr(self, "struct_size"):
            self.struct_size = ctypes.sizeof(self)


class _Error(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("code", _I32), ("system_code", _I32), ("offset_bytes", _U64), ("length_bytes", _U64)),
        *(("operation", ctypes.c_char * 64), ("file", ctypes.c_char * 1024), ("cause", ctypes.c_char * 512)),
        *(("advice", ctypes.c_char * 512), ("message", ctypes.c_char * 2048)),
    )


class _ContextOptions(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("device", _TEXT), ("path", _TEXT), ("budget_bytes", _U64), ("workers", _I32)),
        *(("strict", _I32), ("bandwidth", ctypes.c_double), ("latency", _U64), ("profile", _TEXT)),
        *(("adaptive", _I32), ("reserved", _I32)),
    )


class _Request(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("data", _ANY), ("bytes", _U64), ("kind", _I32), ("memory_reserved", _I32)),
        *(("offset_bytes", _U64), ("path", _TEXT), ("chunk_bytes", _U64), ("workers", _I32), ("depth", _I32)),
        *(("strict", _I32), ("durable", _I32), ("full_evidence", _I32), ("reserved", _I32), ("timeout_ms", _I64)),
        *(("progress", _ANY), ("user", _ANY)),
    )


class _Options(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("format", _TEXT), ("writable", _I32), ("rank", ctypes.c_uint32), ("dtype", _TEXT)),
        *(("shape", _ANY), ("offset_bytes", _U64)),
    )


class _Info(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("dtype", ctypes.c_char * 64), ("format", ctypes.c_char * 32), ("item_bytes", _U64)),
        *(("rank", _U64), ("bytes", _U64), ("is_encoded", _I32), ("is_swapped", _I32)),
        *(("shape", _U64 * _RANK), ("chunk_shape", _U64 * _RANK)),
    )


class _Selection(_Struct):
    _fields_ = (
        *(("struct_size", _U64), ("rank", _U64), ("start", ctypes.POINTER(_U64)), ("count", ctypes.POINTER(_U64))),
        *(("step", ctypes.POINTER(_U64)), ("strides_bytes", _ANY)),
    )


class _Name(_Struct):
    _fields_ = (("data", _ANY), ("capacity", _U64), ("needed", _U64))


class CError(Exception):
    """What penstock_error says."""


class CDatasets:
    """The datasets of one file."""

    def __init__(self, library: Path, name: Path, *, writable: bool = False, format: bytes | None = None) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.penstock_context_destroy.argtypes = [_ANY]
        self._library.penstock_datafile_close.argtypes = [_ANY]
        self._library.penstock_dataset_close.argtypes = [_ANY]
        options = None if format is None and not writable else ctypes.byref(_Options(format=format, writable=writable))
        self._context, self._file = _ANY(), _ANY()
        self._call("context_create", ctypes.byref(_ContextOptions(device=b"host")), ctypes.byref(self._context))
        try:
            self._call("datafile_open", self._context, str(name).encode(), options, ctypes.byref(self._file))
        except Exception:
            self._library.penstock_context_destroy(self._context)
            raise

    def _call(self, function: str, *arguments: Any) -> None:
        error = _Error()
        if getattr(self._library, f"penstock_{function}")(*arguments, ctypes.byref(error)) != 0:
            raise CError(error.message.decode())

    def names(self) -> list[str]:
        count, found = _U64(), []
        self._call("datafile_count", self._file, ctypes.byref(count))
        for index in range(count.value):
            room = ctypes.create_string_buffer(1000)
            text = _Name(data=ctypes.cast(room, _ANY), capacity=1000)
            self._call("datafile_name", self._file, _U64(index), ctypes.byref(text))
            found.append(room.value.decode())
        return found

    def describe(self, name: str) -> dict[str, Any]:
        with self._dataset(name) as dataset:
            return self._described(dataset)

    def _described(self, dataset: Any) -> dict[str, Any]:
        info = _Info()
        self._call("dataset_describe", dataset, ctypes.byref(info))
        shapes = {one: tuple(getattr(info, one)[: info.rank]) for one in ("shape", "chunk_shape")}
        plain = {one: getattr(info, one) for one in ("item_bytes", "bytes", "is_encoded", "is_swapped")}
        return {**shapes, **plain, "dtype": info.dtype.decode(), "format": info.format.decode()}

    @contextlib.contextmanager
    def _dataset(self, name: str) -> Iterator[Any]:
        dataset = _ANY()
        self._call("dataset_open", self._file, name.encode(), ctypes.byref(dataset))
        try:
            yield dataset
        finally:
            self._library.penstock_dataset_close(dataset)

    def read(self, name: str, dtype: np.dtype[Any], box: Sequence[tuple[int, int, int]] | None = None) -> np.ndarray:
        """`box`: (start, count, step) of each dimension; None: all."""
        with self._dataset(name) as dataset:
            info = self._described(dataset)
            assert info["item_bytes"] == dtype.itemsize
            out = np.full(info["shape"] if box is None else tuple(count for _, count, _ in box), 0, dtype)
            self._move("dataset_read", dataset, out, box)
            return out

    def write(self, name: str, array: np.ndarray, box: Sequence[tuple[int, int, int]] | None = None) -> None:
        with self._dataset(name) as dataset:
            self._move("dataset_write", dataset, array, box)

    def _move(self, function: str, dataset: Any, array: np.ndarray, box: Sequence[tuple[int, int, int]] | None) -> None:
        selection = None
        if box is not None:
            columns = [(_U64 * max(1, len(box)))(*column) for column in zip(*box, strict=True)] or [None] * 3
            selection = ctypes.byref(_Selection(rank=len(box), start=columns[0], count=columns[1], step=columns[2]))
        request = _Request(data=array.ctypes.data, bytes=array.nbytes, kind=_SYSTEM)
        self._call(function, dataset, selection, ctypes.byref(request), None)

    def close(self) -> None:
        self._library.penstock_datafile_close(self._file)
        self._library.penstock_context_destroy(self._context)
