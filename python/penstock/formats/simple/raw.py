"""Raw files: elements and nothing else; the caller says which type and shape. The one dataset is called "data"."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock.formats.faults import refused
from penstock.formats.model import DatasetInfo, NewDataset, Writer
from penstock.formats.simple.in_place import InPlaceWriter
from penstock.formats.simple.single import ContiguousFile, bytes_of, identity_of, look_at
from penstock.formats.simple.single_write import ContiguousWriter

DATASET = "data"


def open_raw(
    name: str | os.PathLike[str], *, dtype: Any, shape: Sequence[int] | None = None, offset_bytes: int = 0
) -> ContiguousFile:
    """`shape`: one extent may be -1, and as a whole left out: as many elements as the file holds. Raises Error when the
    file is too short."""
    name = os.fspath(name)
    status = look_at(name)
    info = described(name, status.st_size, dtype=dtype, shape=shape, offset_bytes=offset_bytes)
    return ContiguousFile(name, "raw", {DATASET: (info, offset_bytes)}, identity=identity_of(status))


def described(
    name: str, all_bytes: int, *, dtype: Any, shape: Sequence[int] | int | None, offset_bytes: int
) -> DatasetInfo:
    """The one dataset of `all_bytes`, in a file or in several; `name` is for errors."""
    type, there = DType.of(dtype), all_bytes - offset_bytes
    if offset_bytes < 0 or there < 0:
        raise _bad(name, f"offset {offset_bytes} is not in the {all_bytes} bytes of the file")
    shape = (shape,) if isinstance(shape, int) else shape
    wanted = (-1,) if shape is None else tuple(operator.index(extent) for extent in shape)
    found = _solved(name, wanted, type, there)
    info = DatasetInfo(DATASET, found, type, found)
    if bytes_of(info) > there:
        raise _bad(name, f"shape {found} of {type} needs {bytes_of(info)} bytes at {offset_bytes}; there are {there}")
    return info


def _solved(name: str, shape: tuple[int, ...], type: DType, there: int) -> tuple[int, ...]:
    """Fills in the extent that is -1."""
    unknown = [axis for axis, extent in enumerate(shape) if extent == -1]
    if len(unknown) > 1 or min(shape, default=0) < -1:
        raise ValueError(f"shape {shape}: one extent may be -1, the others count elements")
    if not unknown:
        return shape
    row = type.itemsize
    for extent in shape:
        row *= extent if extent != -1 else 1
    if row == 0 or there % row:
        raise _bad(name, f"{there} bytes are not a whole number of rows of {row} bytes (shape {shape} of {type})")
    return tuple(there // row if extent == -1 else extent for extent in shape)


def _bad(name: str, cause: str) -> Error:
    return Error(operation="open", file=name, cause=cause, advice="check dtype, shape and offset_bytes")


def raw_writer(
    name: str | os.PathLike[str],
    *,
    append: bool = False,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    offset_bytes: int = 0,
) -> Writer:
    """What the elements are only a file that is there must be told."""
    if not append:
        return RawWriter(name)
    return InPlaceWriter(name, lambda there: open_raw(there, dtype=dtype, shape=shape, offset_bytes=offset_bytes))


class RawWriter(ContiguousWriter):
    """A file of the elements of one dataset."""

    format = "raw"

    def _place(self, datasets: Sequence[NewDataset]) -> list[int]:
        if len(self._datasets) + len(datasets) > 1:
            raise refused(self.name, "a raw file holds one dataset", "use HDF5, Zarr or safetensors for several")
        return [0 for _ in datasets]

    def _head(self) -> bytes:
        return b""
