"""Creates classic netCDF files, and appends records to them in place.

A new file is laid out by `netcdf3/layout`, with room in the header for later attributes and variables. Appending
writes the new records behind the old ones, and last the number of records, in one write of four or eight bytes. What
must stay true: however early a writer dies, a reader of the file sees the old records or the new ones, whole.

All record variables share the number of records. Those that were not extended get their fill value at publish.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock._error import Error
from penstock._files.descriptor import flush, write_at
from penstock._files.open_files import with_room
from penstock.formats.faults import refused, told, unknown
from penstock.formats.model import Box, ChunkTable, DatasetInfo, NewDataset, Shape, Watch, Writer
from penstock.formats.netcdf3.encode import encode, encode_records
from penstock.formats.netcdf3.header import Header, Variable, read_header
from penstock.formats.netcdf3.layout import (
    PAGE_BYTES,
    aligned,
    declare,
    file_bytes,
    need_version,
    place,
    with_attributes,
)
from penstock.formats.netcdf3.reader import fill_of, values, variable_info, variable_table
from penstock.formats.new_file import NewFile, WriterLock, reserve

HEADER_ROOM_BYTES = 16 << 10  # for variables and attributes that come later
_MOST_RECORDS = (1 << 31) - 1  # in CDF-1 and CDF-2
_FILL_BYTES = 4 << 20  # written at a time
_UNHARMED = "the file has its old records"
_NOT_STABLE = "the new records are in the file, but may not outlast a power failure: check the disk, write them again"


class NetCDF3Writer(Writer):
    """`append`: the file exists and is changed in place; otherwise a new one is made. `version`: 2 or 5."""

    format = "netcdf3"

    def __init__(self, name: str | os.PathLike[str], *, append: bool = False, version: int = 5) -> None:
        self.name = os.fspath(name)
        self._rows: dict[str, int] = {}  # records that each record variable has been given
        self._named: tuple[Header | None, dict[str, Variable]] = (None, {})  # its variables by name
        self._lost: Error | None = None  # storage failed in it
        self._lock: WriterLock | None = None
        if append:
            self._new: NewFile | None = None
            self._lock = WriterLock(self.name)
            try:
                self._adopt(read_header(self.name))
                self._need_whole()
            except BaseException:
                self._lock.release()
                raise
        else:
            self._header = Header(need_version(self.name, version), 0, (), (), ())
            self._stored = self._header
            self._data_start = self._published_bytes = self._grown = 0
            self._streamed = False
            self._new = NewFile(self.name)

    def names(self) -> Sequence[str]:
        return tuple(variable.name for variable in self._header.variables)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if group.strip("/"):
            raise KeyError(f"{self.name}: classic netCDF has no groups, so no {group!r}")
        return values(self._header.attributes)

    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable]:
        if self._new is None:
            advice = "name all variables when the file is created, or use netCDF-4"
            raise refused(self.name, "a classic netCDF file cannot get new variables in place", advice)
        first = len(self._header.variables)
        declared = declare(self.name, self._header, datasets)
        added = declared.variables[first:]
        if any(self._rows.values()) and added:
            advice = "create all variables in one call, or those with records last"
            raise refused(self.name, "its records are laid out already", advice, added[0].name)
        if not first:
            self._data_start = aligned(len(encode(declared)) + HEADER_ROOM_BYTES)
        header = place(declared, first, self._data_start)
        rows = {one.name: data.shape[0] for one, data in zip(added, datasets, strict=True) if header.is_record(one)}
        header = replace(header, records=self._records_of(header, rows.values()))
        self._check_room(header)
        self._reserve(header)
        self._header, self._rows = header, self._rows | rows
        return [self.table(one.name, _whole(data.shape)) for one, data in zip(added, datasets, strict=True)]

    def extend(self, name: str, shape: Shape) -> ChunkTable:
        variable = self._variable(name)
        old = self._rows.get(variable.name)
        row = self._header.row_shape(variable)
        if old is None or tuple(shape[1:]) != row or len(shape) != len(row) + 1:
            cause = f"shape {tuple(shape)}: only the first dimension of a record variable grows"
            raise refused(self.name, cause, dataset=name)
        if shape[0] < old:
            raise refused(self.name, f"it has {old} records; fewer than that ({shape[0]}) cannot be made", "", name)
        header = replace(self._header, records=self._records_of(self._header, [self._header.records or 0, shape[0]]))
        self._reserve(header)
        self._header = header
        self._rows[variable.name] = shape[0]
        return self.table(variable.name, Box((old, *(0 for _ in row)), tuple(shape)))

    def table(self, name: str, box: Box) -> ChunkTable:
        return variable_table(self._header, self._variable(name), box, (self._path, Path(self._path).stat().st_size))

    def info(self, name: str) -> DatasetInfo:
        variable = self._variable(name)
        return variable_info(self._header, variable, self._rows.get(variable.name, 0))

    def watch(self, name: str) -> Watch:
        if self._lock is not None:
            found = self._lock.status()
        else:
            found = os.fstat(self._new.descriptor) if self._new is not None else os.stat(self._path)
        return Watch(self._path, found.st_dev, found.st_ino)

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        plain = self._variable(name).name if name.strip("/") else ""
        if not plain and any(not one.name for one in self._header.variables):
            cause = "it has a variable with an empty name, whose attributes cannot be told from those of the file"
            raise refused(self.name, cause)
        try:
            header = with_attributes(self._header, plain, dict(attributes))
        except ValueError as error:
            raise refused(self.name, str(error), dataset=plain) from None
        self._check_room(header)
        self._header = header

    def publish(self, durable: bool) -> None:
        """The file may be extended again afterwards, and published again, unless storage failed in it."""
        if self._lost is not None:
            raise self._lost
        try:
            self._fill_up()
            if self._new is not None:
                self._publish_new(self._new, durable)
            else:
                with self._changing("append to", _UNHARMED) as descriptor:
                    self._publish_in_place(descriptor, durable)
                self._adopt(read_header(self.name))
        except Error as error:
            if error.system_code:
                self._lost = error
            raise

    def need_same(self) -> None:
        """Error when another file has the name now."""
        if self._lock is not None:
            self._lock.need_named()

    def abandon(self) -> None:
        if self._new is not None:
            self._new.abandon()
        elif self._lock is not None:
            try:
                self._shrink()
            finally:
                self._lock.release()
                self._lock = None

    def _shrink(self) -> None:
        if self._grown <= self._published_bytes:
            return
        with suppress(Error), self._changing("cut", _UNHARMED) as descriptor:  # space behind the end does no harm
            os.ftruncate(descriptor, self._published_bytes)
        self._grown = self._published_bytes

    @contextmanager
    def _changing(self, operation: str, advice: str) -> Iterator[int]:
        """A descriptor for writing. What the system refuses, at its end too, is an Error."""
        with told(operation, self.name, advice):
            descriptor = self._opened()
            try:
                yield descriptor
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                raise
            os.close(descriptor)

    def _opened(self) -> int:
        """For writing: the new file, whatever has its temporary name by now, or the file that was locked."""
        if self._new is not None:
            return os.dup(self._new.descriptor)
        try:
            descriptor = with_room(lambda: os.open(self._path, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            raise Error.of(error, "open for writing", self.name, "check the name and its permissions") from error
        try:
            if self._lock is not None:
                self._lock.need_same(descriptor, self.name)
        except Error:
            os.close(descriptor)
            raise
        return descriptor

    @property
    def _path(self) -> str:
        return self._new.temporary if self._new is not None else self.name

    def _variable(self, name: str) -> Variable:
        if self._named[0] is not self._header:
            self._named = (self._header, {one.name: one for one in self._header.variables})
        found = self._named[1].get(name) or self._named[1].get(name.removeprefix("/"))  # it may be part of the name
        if found is not None:
            return found
        raise unknown(self.name, name, self.names())

    def _adopt(self, header: Header) -> None:
        """An existing file, as it is on disk."""
        size = os.stat(self.name).st_size
        self._streamed = header.records is None
        self._header = replace(header, records=header.records_in(size))
        self._stored = self._header
        self._data_start = min((one.begin for one in header.variables), default=size)
        self._rows = {one.name: self._header.records or 0 for one in header.record_variables}
        self._published_bytes = self._grown = size

    def _need_whole(self) -> None:
        """What is missing at the end would become zeros without a word when the file grows."""
        size, need = self._published_bytes, self._header.end_of_data
        if size < need:
            cause = f"the file was cut short: it has {size} bytes, its variables and records need {need}"
            advice = "restore it, or copy what can be read into a new file"
            raise Error(code="damaged", operation="open for writing", file=self.name, cause=cause, advice=advice)

    def _records_of(self, header: Header, rows: Iterable[int]) -> int:
        records = max([*rows, 0])
        if header.version != 5 and records > _MOST_RECORDS:
            raise refused(self.name, f"CDF-{header.version} has at most {_MOST_RECORDS} records", "use CDF-5")
        return records

    def _reserve(self, header: Header) -> None:
        end = file_bytes(header, self._data_start)
        with self._changing("reserve space in", _UNHARMED) as descriptor:
            size = os.fstat(descriptor).st_size
            if end > size:
                if self._streamed:  # else the file's size would say that there are records before they are written
                    write_at(descriptor, encode_records(self._stored), 4)
                    self._streamed = False
                reserve(descriptor, self.name, size, end - size)
            self._grown = max(end, size)

    def _check_room(self, header: Header) -> None:
        need = len(encode(header))
        if need > self._data_start and header.variables:
            cause = f"the header would have {need} bytes; there is room for {self._data_start}"
            raise refused(self.name, cause, "set attributes when the file is created")
        same = replace(header, records=self._stored.records)
        if self._new is None and not _in_one_page(encode(self._stored), encode(same)):
            cause = "these attributes would rewrite more than a page of the header of an existing file"
            raise refused(self.name, cause, "set attributes when the file is created")

    def _publish_new(self, new: NewFile, durable: bool) -> None:
        raw = encode(self._header)
        size = max(file_bytes(self._header, self._data_start), len(raw))
        with told("write the header of", self.name, "nothing was left behind"):
            os.ftruncate(new.descriptor, size)
            write_at(new.descriptor, raw, 0)
        new.publish(durable)
        self._new = None
        try:
            self._adopt(read_header(self.name))
        except Error as error:  # the file is there, whole; only going on with it fails
            self._lost = error

    def _publish_in_place(self, descriptor: int, durable: bool) -> None:
        """The records are on stable storage, or what is known of their errors is told, before the header tells of them.
        From then on the file is not cut back."""
        self._settle(descriptor, durable, _UNHARMED)
        old, raw = encode(self._stored), encode(self._header)
        kept = slice(4, 4 + len(encode_records(self._header)))  # the number of records comes last, alone
        pending = raw[: kept.start] + old[kept] + raw[kept.stop :]
        self._published_bytes = self._grown
        if pending != old:
            write_at(descriptor, pending, 0)
        if raw[kept] != old[kept]:
            write_at(descriptor, raw[kept], kept.start)
        self._settle(descriptor, durable, _NOT_STABLE)

    def _settle(self, descriptor: int, durable: bool, advice: str) -> None:
        with told("fsync" if durable else "flush", self.name, advice):
            if durable:
                os.fsync(descriptor)
            else:
                flush(descriptor)

    def _fill_up(self) -> None:
        """Records of variables that were not extended as far as others."""
        records = self._header.records or 0
        behind = {name: rows for name, rows in self._rows.items() if rows < records}
        if not behind:
            return
        with self._changing("fill records of", _UNHARMED) as descriptor:
            for name, rows in behind.items():
                _fill(descriptor, self._variable(name), self.table(name, _whole(self._shape(name, records), rows)))
                self._rows[name] = records

    def _shape(self, name: str, records: int) -> Shape:
        return (records, *self._header.row_shape(self._variable(name)))


def _fill(descriptor: int, variable: Variable, table: ChunkTable) -> None:
    element = fill_of(variable)
    for offset, length in zip(table.offset_bytes.tolist(), table.bytes.tolist(), strict=True):
        piece = element * (min(length, _FILL_BYTES) // len(element))
        for at in range(0, length, len(piece)):
            write_at(descriptor, piece[: length - at], offset + at)


def _whole(shape: Shape, first: int = 0) -> Box:
    return Box((first, *(0 for _ in shape[1:])) if shape else (), tuple(shape))


def _in_one_page(old: bytes, new: bytes) -> bool:
    """Whether writing `new` over `old` changes bytes of one page only: such a write is not seen half done."""
    length = max(len(old), len(new))
    old, new = old.ljust(length, b"\0"), new.ljust(length, b"\0")
    changed = [at for at in range(0, length, PAGE_BYTES) if old[at : at + PAGE_BYTES] != new[at : at + PAGE_BYTES]]
    return len(changed) <= 1
