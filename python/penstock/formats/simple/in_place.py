"""New elements for NPY, raw and safetensors files that are there: what the head of the file says stays as it is.

What must stay true: another writer is refused, and so is a file that took the name of the one that was opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from penstock._error import Error
from penstock._files.descriptor import flush
from penstock._files.open_files import with_room
from penstock.formats.faults import refused, told
from penstock.formats.model import Box, ChunkTable, DatasetInfo, NewDataset, Shape, Watch, Writer
from penstock.formats.new_file import WriterLock
from penstock.formats.simple.single import ContiguousFile, identity_of

_ANEW = "write the file anew, or use HDF5, netCDF or Zarr"


class InPlaceWriter(Writer):
    """`read` gives what the file holds."""

    def __init__(self, name: str | os.PathLike[str], read: Callable[[str], ContiguousFile]) -> None:
        self.name = os.fspath(name)
        self._lock = WriterLock(self.name)
        try:
            self._file = read(self.name)
            if self._file.identity != identity_of(self._lock.status()):
                cause = "another file took its name meanwhile"
                raise Error(code="io_error", operation="open", file=self.name, cause=cause, advice="open it again")
        except BaseException:
            self._lock.release()
            raise
        self.format = self._file.format
        self._bytes = self._lock.status().st_size

    def names(self) -> Sequence[str]:
        return self._file.names()

    def info(self, name: str) -> DatasetInfo:
        return self._file.info(name)

    def table(self, name: str, box: Box) -> ChunkTable:
        return self._file.table(name, box)

    def watch(self, name: str) -> Watch | None:
        found = self._file.watch(name)
        return None if found is None else found._replace(bytes=self._bytes)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return self._file.attributes(group)

    def create(self, datasets: Sequence[NewDataset]) -> NoReturn:
        raise self._fixed("get no new datasets", datasets[0].name if datasets else "")

    def extend(self, name: str, shape: Shape) -> NoReturn:
        raise self._fixed("do not grow", name)

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> NoReturn:
        raise self._fixed("get no new attributes", name)

    def _fixed(self, what: str, name: str) -> Error:
        return refused(self.name, f"{self.format} files that are there {what}: only their elements change", _ANEW, name)

    def publish(self, durable: bool) -> None:
        """The elements are in the file already: what the storage says of them late is told, and with `durable` they
        are on it."""
        with told("fsync" if durable else "flush", self.name, "check the disk, and write them again"):
            descriptor = with_room(lambda: os.open(self.name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
            try:
                self._lock.need_same(descriptor, self.name)
                (os.fsync if durable else flush)(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                raise
            os.close(descriptor)

    def need_same(self) -> None:
        """Error also of a file that was cut short: a write behind its end would fill the gap with zeros."""
        self._lock.need_named()
        bytes = self._lock.status().st_size
        if bytes < self._bytes:
            cause = f"the file was cut short while it was open: it has {bytes} bytes, and had {self._bytes}"
            raise Error(code="io_error", operation="write to", file=self.name, cause=cause, advice="restore it")

    def abandon(self) -> None:
        """What was written stays: there is no older state to go back to."""
        self._lock.release()
