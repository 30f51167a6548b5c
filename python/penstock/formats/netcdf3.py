"""Classic netCDF (CDF-1, CDF-2, CDF-5) as a container: where the bytes of its variables lie.

Data are big-endian and never encoded, so everything can go to a device as it is. A variable without the record
dimension is one contiguous range; one with it has a row for each record, `Header.record_bytes` apart, because records
of all variables are interleaved. What must stay true: before a table is made, its last byte is compared with the file's
size, so a hostile count makes an error and no large array.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock._dtype import DType
from penstock._error import Error
from penstock.formats.faults import damaged, unknown, unsupported
from penstock.formats.model import Box, ChunkTable, DatasetInfo
from penstock.formats.netcdf3_header import Attribute, Header, Variable, kChar, kTypes, read_header

kMostRank = 32  # of an array; the format allows 1024


class NetCDF3:
    """A classic netCDF file, opened for reading."""

    format = "netcdf3"

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self.header = read_header(self.name)
        self._variables = {variable.name: variable for variable in self.header.variables}

    def names(self) -> Sequence[str]:
        return tuple(self._variables)

    def info(self, name: str) -> DatasetInfo:
        variable = self.variable(name)
        return variable_info(self.header, variable, self.header.records_in(self._file_bytes()))

    def table(self, name: str, box: Box) -> ChunkTable:
        return variable_table(self.header, self.variable(name), box, (self.name, self._file_bytes()))

    def decode(self, name: str, box: Box) -> bytes:
        raise unsupported(self.name, "classic netCDF encodes nothing", "read the ranges of its table", name)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if group not in ("", "/"):
            raise KeyError(f"{self.name}: classic netCDF has no groups, so no {group!r}")
        return values(self.header.attributes)

    def variable(self, name: str) -> Variable:
        found = self._variables.get(name.removeprefix("/"))
        if found is None:
            raise unknown(self.name, name, self._variables)
        return found

    def close(self) -> None:
        """Nothing is held open."""

    def _file_bytes(self) -> int:
        try:
            return Path(self.name).stat().st_size
        except OSError as error:
            raise Error.of(error, "look at", self.name, "it was there when it was opened") from error


def stored_type(variable: Variable) -> DType:
    if variable.type == kChar:
        return DType(kTypes[kChar].name, 1, "V")
    plain = DType.of(kTypes[variable.type].name)
    return DType(plain.name, plain.itemsize, plain.kind, plain.itemsize > 1)


def variable_info(header: Header, variable: Variable, records: int) -> DatasetInfo:
    is_record = header.is_record(variable)
    row = header.row_shape(variable)
    shape = (records, *row) if is_record else row
    largest = (None, *row) if is_record else None
    many = len(shape) > kMostRank
    return DatasetInfo(
        name=variable.name,
        shape=shape,
        dtype=stored_type(variable),
        chunk_shape=(1, *row) if is_record else row,
        fill=fill_of(variable),
        resizable=largest,
        dimensions=tuple(header.dimensions[index].name for index in variable.dimensions),
        layout="record" if is_record else "contiguous",
        refusal=f"it has {len(shape)} dimensions; Penstock handles {kMostRank}" if many else "",
        attributes=values(variable.attributes),
    )


def variable_table(header: Header, variable: Variable, box: Box, file: tuple[str, int]) -> ChunkTable:
    """`file`: its name and size. Raises penstock.Error where the box lies beyond its end."""
    is_record = header.is_record(variable)
    first, last = (box.start[0], box.stop[0]) if is_record else (0, 1)
    if any(start >= stop for start, stop in zip(box.start, box.stop, strict=True)):
        last = first
    stride, length = header.record_bytes, header.row_bytes(variable)
    if last > first:
        _check_inside(header, variable, variable.begin + (last - 1) * stride + length, file)
    index = np.arange(first, last, dtype=np.int64)
    origin = np.zeros((len(index), len(variable.dimensions)), np.int64)
    if is_record:
        origin[:, 0] = index
    return ChunkTable(
        files=(file[0],),
        file_index=np.zeros(len(index), np.int32),
        origin=origin,
        offset_bytes=variable.begin + index * stride,
        bytes=np.full(len(index), length, np.int64),
        encoded=np.zeros(len(index), bool),
    )


def _check_inside(header: Header, variable: Variable, end: int, file: tuple[str, int]) -> None:
    name, file_bytes = file
    if variable.begin < header.bytes:
        cause = f"its data begin at {variable.begin}, inside the header of {header.bytes} bytes"
        raise damaged(name, cause, variable.name)
    if end > file_bytes:
        raise damaged(name, f"its data end at {end}, the file at {file_bytes}", variable.name)


def fill_of(variable: Variable) -> bytes:
    """What elements never written hold: `_FillValue` where it fits, else the format's value for the type."""
    kind = kTypes[variable.type]
    for attribute in variable.attributes:
        if attribute.name == "_FillValue" and attribute.type == variable.type:
            return attribute.payload if len(attribute.payload) == kind.itemsize else kind.fill_bytes
    return kind.fill_bytes


def values(attributes: Sequence[Attribute]) -> dict[str, Any]:
    return {attribute.name: value(attribute) for attribute in attributes}


def value(attribute: Attribute) -> Any:
    """Text as str; one number as a NumPy scalar; several as an array."""
    if attribute.type == kChar:
        raw = attribute.payload.rstrip(b"\0")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("latin-1")  # what older writers used; never fails
    kind = kTypes[attribute.type]
    numbers = np.frombuffer(attribute.payload, ">" + np.dtype(kind.name).str[1:]).astype(kind.name)
    return numbers[0] if len(numbers) == 1 else numbers
