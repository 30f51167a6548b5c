"""Classic netCDF (CDF-1, CDF-2, CDF-5) as a container: where the bytes of its variables lie.

Data are big-endian and never encoded, so everything can go to a device as it is. A variable without the record
dimension is one contiguous range. With it, a file's only one is contiguous too, cut into blocks; several have a row for
each record, `Header.record_bytes` apart, because their records are interleaved. Many small records are gathered on the
host, which takes a twentieth of the time. What must stay true: before a table is made, its last byte is compared with
the file's size, so a hostile count makes an error and no large array.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock.formats.faults import cut_short, damaged, unknown
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, Watch
from penstock.formats.netcdf3.header import CHAR, TYPES, Attribute, Header, Variable, read_header
from penstock.formats.simple.single import identity_of, look_at, need_same, reading

MOST_RANK = 32  # of an array; the format allows 1024
_BLOCK_BYTES = 4 << 20  # of contiguous records that are one row of a table
_SMALL_BYTES, _NEAR_BYTES, _MANY = 1024, 4096, 256  # records: as long at most, as far apart at most, so many at least
_GATHER_BYTES = 8 << 20  # read at a time


class NetCDF3(Container):
    """A classic netCDF file, opened for reading."""

    format = "netcdf3"

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self._identity = identity_of(look_at(self.name))
        self.header = read_header(self.name)
        self._variables = {variable.name: variable for variable in self.header.variables}

    def names(self) -> Sequence[str]:
        return tuple(self._variables)

    def info(self, name: str) -> DatasetInfo:
        variable = self.variable(name)
        return variable_info(self.header, variable, self.header.records_in(self._file_bytes()))

    def table(self, name: str, box: Box) -> ChunkTable:
        variable = self.variable(name)
        table = variable_table(self.header, variable, box, (self.name, self._file_bytes()))
        stride = self.header.record_bytes
        is_small = self.header.row_bytes(variable) <= _SMALL_BYTES and stride <= _NEAR_BYTES
        if is_small and self.header.is_interleaved(variable) and len(table.bytes) >= _MANY:
            return replace(table, encoded=np.ones(len(table.bytes), bool))
        return table

    def decode(self, name: str, box: Box) -> memoryview:
        """Records that `table` calls encoded, gathered from between those of other variables."""
        variable = self.variable(name)
        self.table(name, box)  # that the box lies in the file
        first, last = box.start[0], box.stop[0]
        kind, row = np.dtype(stored_type(variable)), self.header.row_shape(variable)
        out = np.empty((last - first, *(b - a for a, b in zip(box.start[1:], box.stop[1:], strict=True))), kind)
        inner = tuple(slice(a, b) for a, b in zip(box.start[1:], box.stop[1:], strict=True))
        length, step = self.header.row_bytes(variable), max(1, _GATHER_BYTES // self.header.record_bytes)
        with reading(self.name) as (descriptor, _):
            for start in range(first, last, step):
                count = min(step, last - start)
                raw = self._records(descriptor, variable, start, count)
                rows = np.ascontiguousarray(raw[:, :length]).view(kind).reshape(count, *row)
                out[start - first : start - first + count] = rows[(slice(None), *inner)]
        return memoryview(out.reshape(-1).view(np.uint8))

    def _records(self, descriptor: int, variable: Variable, first: int, count: int) -> np.ndarray:
        """Bytes of whole records, from where this variable begins in each: uint8 [count, record bytes]."""
        stride, length = self.header.record_bytes, self.header.row_bytes(variable)
        raw = np.zeros(count * stride, np.uint8)  # what follows the last one need not be in the file
        at, end = 0, (count - 1) * stride + length
        while at < end:
            got = os.preadv(descriptor, [memoryview(raw)[at:end]], variable.begin + first * stride + at)
            if got == 0:
                raise Error.cut_short(self.name, variable.begin + first * stride, end, at)
            at += got
        return raw.reshape(count, stride)

    def watch(self, name: str) -> Watch | None:
        """Records lie where the header says, and a program may add some: only of a file of that size and time."""
        self.variable(name)
        status = need_same(self.name, self._identity)
        return Watch(self.name, *self._identity, status.st_size, status.st_mtime_ns)

    def place(self, name: str) -> int | None:
        """None where the variable has records, or is cut short."""
        variable = self.variable(name)
        if self.header.is_record(variable):
            return None
        end = variable.begin + self.header.row_bytes(variable)
        return variable.begin if end <= self._file_bytes() else None

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if group not in ("", "/"):
            raise KeyError(f"{self.name}: classic netCDF has no groups, so no {group!r}")
        return values(self.header.attributes)

    def variable(self, name: str) -> Variable:
        found = self._variables.get(name) or self._variables.get(name.removeprefix("/"))  # it may be part of the name
        if found is None:
            raise unknown(self.name, name, self._variables)
        return found

    def close(self) -> None:
        """Nothing is held open."""

    def _file_bytes(self) -> int:
        return need_same(self.name, self._identity).st_size


def stored_type(variable: Variable) -> DType:
    if variable.type == CHAR:
        return DType.of("S1")
    plain = DType.of(TYPES[variable.type].name)
    return DType(plain.name, plain.itemsize, plain.kind, plain.itemsize > 1)


def variable_info(header: Header, variable: Variable, records: int) -> DatasetInfo:
    is_record = header.is_record(variable)
    row = header.row_shape(variable)
    shape = (records, *row) if is_record else row
    largest = (None, *row) if is_record else None
    many = len(shape) > MOST_RANK
    return DatasetInfo(
        name=variable.name,
        shape=shape,
        dtype=stored_type(variable),
        chunk_shape=(block_rows(header, variable), *row) if is_record else row,
        fill=fill_of(variable),
        edge_cut=is_record,
        resizable=largest,
        dimensions=tuple(header.dimensions[index].name for index in variable.dimensions),
        layout="record" if is_record else "contiguous",
        refusal=f"it has {len(shape)} dimensions; Penstock handles {MOST_RANK}" if many else "",
        attributes=values(variable.attributes),
    )


def block_rows(header: Header, variable: Variable) -> int:
    """Records in a row of a table."""
    if header.is_interleaved(variable):
        return 1
    return max(1, _BLOCK_BYTES // header.row_bytes(variable))


def variable_table(header: Header, variable: Variable, box: Box, file: tuple[str, int]) -> ChunkTable:
    """`file`: its name and size. Raises penstock.Error where the box lies beyond its end."""
    row, stride = header.row_bytes(variable), header.record_bytes
    is_empty = any(start >= stop for start, stop in zip(box.start, box.stop, strict=True))
    if not header.is_record(variable):
        first, last, rows, end = 0, int(not is_empty), 1, 1
    else:
        rows = block_rows(header, variable)
        first, last = box.start[0] // rows, box.start[0] // rows if is_empty else -(-box.stop[0] // rows)
        end = max(box.stop[0], min(last * rows, header.records_in(file[1])))  # of records that the last block has
    if last > first:
        _check_inside(header, variable, variable.begin + (end - 1) * stride + row, file)
    index = np.arange(first, last, dtype=np.int64) * rows
    origin = np.zeros((len(index), len(variable.dimensions)), np.int64)
    if header.is_record(variable):
        origin[:, 0] = index
    return ChunkTable(
        files=(file[0],),
        file_index=np.zeros(len(index), np.int32),
        origin=origin,
        offset_bytes=variable.begin + index * stride,
        bytes=(np.minimum(index + rows, end) - index) * row,
        encoded=np.zeros(len(index), bool),
    )


def _check_inside(header: Header, variable: Variable, end: int, file: tuple[str, int]) -> None:
    name, file_bytes = file
    if variable.begin < header.bytes:
        cause = f"its data begin at {variable.begin}, inside the header of {header.bytes} bytes"
        raise damaged(name, cause, variable.name)
    if end > file_bytes:
        raise cut_short(name, f"its data end at {end}, the file at {file_bytes}", variable.name)


def fill_of(variable: Variable) -> bytes:
    """What elements never written hold: `_FillValue` where it fits, else the format's value for the type."""
    kind = TYPES[variable.type]
    for attribute in variable.attributes:
        if attribute.name == "_FillValue" and attribute.type == variable.type:
            return attribute.payload if len(attribute.payload) == kind.itemsize else kind.fill_bytes
    return kind.fill_bytes


def values(attributes: Sequence[Attribute]) -> dict[str, Any]:
    """Attributes by name. If one is there twice, the first counts, as for the netCDF library."""
    found: dict[str, Any] = {}
    for attribute in attributes:
        if attribute.name not in found:
            found[attribute.name] = value(attribute)
    return found


def value(attribute: Attribute) -> Any:
    """Text as str; one number as a NumPy scalar; several as an array."""
    if attribute.type == CHAR:
        raw = attribute.payload.rstrip(b"\0")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("latin-1")  # what older writers used; never fails
    kind = TYPES[attribute.type]
    numbers = np.frombuffer(attribute.payload, ">" + np.dtype(kind.name).str[1:]).astype(kind.name)
    return numbers[0] if len(numbers) == 1 else numbers
