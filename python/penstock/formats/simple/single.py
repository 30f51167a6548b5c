"""Containers of contiguous datasets of one file: what raw files, NPY and safetensors have in common.

What must stay true: every extent was compared with the size of the file when it was opened. A file that is cut short
after that is noticed by the engine, one that was replaced is noticed here.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock._files.descriptor import close_read, read_at
from penstock._files.open_files import with_room
from penstock.formats.faults import unknown
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, Watch

# Device, inode, first bytes, and by name type, shape and place: as _core.read_header gives it.
Header = tuple[int, int, bytes, Mapping[str, tuple[str, tuple[int, ...], int]]]


def extent_table(file: str, ndim: int, offset_bytes: int, bytes: int) -> ChunkTable:
    """The table of one plain range."""
    return ChunkTable(
        (file,),
        np.zeros(1, np.int32),
        np.zeros((1, ndim), np.int64),
        np.array([offset_bytes], np.int64),
        np.array([bytes], np.int64),
        np.zeros(1, bool),
    )


class Identity(NamedTuple):
    """Which file it is, whatever its name is by now. Its size and its time may change: programs append to files."""

    device: int
    inode: int


def identity_of(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino)


def need_same(name: str, identity: Identity) -> os.stat_result:
    """How the file is now. Raises Error when another one has its name: what was learned of it does not hold there."""
    status = look_at(name)
    if identity_of(status) != identity:
        cause = "the file was replaced after it was opened here"
        raise Error(code="unsupported", operation="read", file=name, cause=cause, advice="open it again")
    return status


def look_at(name: str) -> os.stat_result:
    try:
        status = os.stat(name)  # noqa: PTH116 - half the time, and small reads notice it
    except OSError as error:
        raise Error.of(error, "open", name, "check the name and its permissions") from error
    if status.st_size == 0 and stat.S_ISREG(status.st_mode):
        _need_empty(name)
    return status


def _need_empty(name: str) -> None:
    """Text that a system makes at each read, as in /proc, would be taken for no bytes."""
    with reading(name) as (descriptor, _):
        if read_at(descriptor, 1, 0):
            cause = "it has 0 bytes by its size, and reading gives some: they are made at each read, as in /proc"
            advice = "copy it into a file, with cat for example, and give that"
            raise Error(code="unsupported", operation="open", file=name, cause=cause, advice=advice)


class reading:  # noqa: N801 - reads as a function
    """(descriptor, how it is) of a regular file, opened for reading; what the system refuses is an Error."""

    __slots__ = ("_descriptor", "_name")

    def __init__(self, name: str) -> None:
        self._name, self._descriptor = name, -1

    def __enter__(self) -> tuple[int, os.stat_result]:
        try:
            # A pipe of this name does not block.
            self._descriptor = with_room(lambda: os.open(self._name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
            status = os.fstat(self._descriptor)
            if stat.S_ISREG(status.st_mode):
                return self._descriptor, status
            raise Error(code="not_a_regular_file", operation="open", file=self._name, cause="it is not a regular file")
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._descriptor >= 0:
            close_read(self._descriptor)
        if isinstance(error, OSError) and not isinstance(error, Error):
            raise Error.of(error, "open", self._name, "check the name and its permissions") from error


@dataclass
class ContiguousFile(Container):
    """A container made of (description, file offset) of each dataset."""

    name: str
    format: str
    datasets: Mapping[str, tuple[DatasetInfo, int]]
    file_attributes: Mapping[str, Any] = field(default_factory=dict)
    identity: Identity | None = None  # of the file that was looked at; None: bytes that are in no file
    in_one_file: ClassVar[bool] = True

    def names(self) -> Sequence[str]:
        return tuple(self.datasets)

    def info(self, name: str) -> DatasetInfo:
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[DatasetInfo, int]:
        if name not in self.datasets:
            raise unknown(self.name, name, self.datasets)
        return self.datasets[name]

    def table(self, name: str, box: Box) -> ChunkTable:
        info, offset = self._find(name)
        if self.identity is not None:
            need_same(self.name, self.identity)
        return extent_table(self.name, info.ndim, offset, bytes_of(info))

    def watch(self, name: str) -> Watch | None:
        self._find(name)
        return None if self.identity is None else Watch(self.name, *self.identity)

    def place(self, name: str) -> int | None:
        return self._find(name)[1]

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if group.strip("/"):
            raise KeyError(f"{self.name} has no group {group!r}")
        return self.file_attributes

    def close(self) -> None:
        """Nothing is held open."""


class FromHeader(ContiguousFile):
    """One whose header the core has read. A description is made when it is asked for: a file may have thousands."""

    datasets: dict[str, tuple[DatasetInfo, int]]

    def __init__(self, name: str, format: str, found: Header, attributes: Callable[[bytes], Mapping[str, Any]]) -> None:
        """`attributes`: of the file, from its first bytes."""
        self.name, self.format, self.datasets, self.file_attributes = name, format, {}, {}
        device, inode, self._begin, self._placed = found
        self.identity, self._attributes = Identity(device, inode), attributes

    def names(self) -> Sequence[str]:
        return tuple(self._placed)

    def _find(self, name: str) -> tuple[DatasetInfo, int]:
        known = self.datasets.get(name)
        if known is None:
            if name not in self._placed:
                raise unknown(self.name, name, self._placed)
            type, shape, offset = self._placed[name]
            known = self.datasets[name] = (DatasetInfo.plain(name, shape, DType.of(type)), offset)
        return known

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if not self.file_attributes:
            self.file_attributes = self._attributes(self._begin)
        return super().attributes(group)


def bytes_of(info: DatasetInfo) -> int:
    return math.prod(info.shape) * info.dtype.itemsize
