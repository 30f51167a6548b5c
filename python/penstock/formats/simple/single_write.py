"""Writers of contiguous datasets of one file: raw files, NPY and safetensors.

The format says what the head of the file holds; the rest is the same. What must stay true: the head is written last, at
publish, so that no file under construction reads as a finished one.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock._error import Error
from penstock._files.descriptor import write_at
from penstock.formats.faults import refused, unknown
from penstock.formats.model import Box, ChunkTable, DatasetInfo, NewDataset, Shape, Writer
from penstock.formats.new_file import NewFile, reserve
from penstock.formats.simple.single import bytes_of, extent_table

if TYPE_CHECKING:
    import numpy as np

DATA_ALIGNMENT = 4096  # of the first byte of data, as O_DIRECT and cuFile like


def aligned(bytes: int) -> int:
    return -(-bytes // DATA_ALIGNMENT) * DATA_ALIGNMENT


def _info(one: NewDataset) -> DatasetInfo:
    return DatasetInfo(one.name, tuple(one.shape), one.dtype.native, tuple(one.shape))


class ContiguousWriter(Writer):
    """Datasets one behind the other; subclasses know where they go and what the head says."""

    format: str

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self._new = NewFile(self.name)
        self._datasets: dict[str, tuple[DatasetInfo, int]] = {}

    @abstractmethod
    def _place(self, datasets: Sequence[NewDataset]) -> list[int]:
        """File offsets of new datasets."""

    @abstractmethod
    def _head(self) -> bytes:
        """What is at the beginning of the finished file."""

    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable]:
        for one in datasets:
            self._check(one)
        for one, offset in zip(datasets, self._place(datasets), strict=True):
            info = _info(one)
            reserve(self._new.descriptor, self.name, offset, bytes_of(info))
            self._datasets[one.name] = (info, offset)
        for one in datasets:
            if one.attributes:
                self.set_attributes(one.name, one.attributes)
        return [self._table(one.name) for one in datasets]

    def put(self, datasets: Sequence[NewDataset], values: Sequence[np.ndarray]) -> None:
        """New datasets without attributes, with their values, which are in C order and of their type."""
        for one in datasets:
            self._check(one)
        for one, value, offset in zip(datasets, values, self._place(datasets), strict=True):
            self._datasets[one.name] = (_info(one), offset)
            try:
                write_at(self._new.descriptor, value.reshape(-1).view("u1").data, offset)
            except OSError as error:
                advice = "check the space of the file system"
                raise Error.of(error, f"write dataset {one.name!r} of", self.name, advice) from error

    def _check(self, one: NewDataset) -> None:
        if one.name in self._datasets:
            raise refused(self.name, "there is one of that name already", dataset=one.name)
        if one.resizable is not None and any(most != now for most, now in zip(one.resizable, one.shape, strict=True)):
            raise refused(self.name, f"{self.format} datasets do not grow", "use HDF5, netCDF or Zarr", one.name)
        if one.chunk_shape is not None and tuple(one.chunk_shape) != tuple(one.shape):
            raise refused(self.name, f"{self.format} has no chunks", "leave chunk_shape out", one.name)
        if one.dimensions is not None:
            cause = f"{self.format} keeps no names of dimensions"
            raise refused(self.name, cause, "leave dimensions out, or use HDF5, netCDF or Zarr", one.name)

    def _table(self, name: str) -> ChunkTable:
        info, offset = self._datasets[name]
        return extent_table(self._new.temporary, info.ndim, offset, bytes_of(info))

    def names(self) -> Sequence[str]:
        return tuple(self._datasets)

    def info(self, name: str) -> DatasetInfo:
        if name not in self._datasets:
            raise unknown(self.name, name, self._datasets)
        return self._datasets[name][0]

    def table(self, name: str, box: Box) -> ChunkTable:
        self.info(name)
        return self._table(name)

    def extend(self, name: str, shape: Shape) -> ChunkTable:
        raise refused(self.name, f"{self.format} datasets do not grow", "use HDF5, netCDF or Zarr", name)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return {}

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        raise refused(self.name, f"{self.format} keeps no attributes", "use HDF5, netCDF or Zarr", name)

    def publish(self, durable: bool) -> None:
        head = self._head()
        try:
            for at in range(0, len(head), 1 << 20):
                write_at(self._new.descriptor, head[at : at + (1 << 20)], at)
        except OSError as error:
            raise Error.of(error, "write the head of", self.name, "check the space of the file system") from error
        self._new.publish(durable)

    def abandon(self) -> None:
        self._new.abandon()
