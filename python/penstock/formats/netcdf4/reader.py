"""netCDF-4 files: HDF5 files in which datasets are variables with named dimensions.

What must stay true: names, shapes, fill values and attributes are those that the netCDF library shows, and what it
keeps for itself (dimensions without variables, hidden attributes) does not appear. A variable that was written for
fewer steps than its unlimited dimension has ends in fill values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from h5py import h5a, h5d, h5f, h5o

from penstock._arrays.dtype import DType
from penstock.formats.hdf5.metadata import Metadata
from penstock.formats.hdf5.open import explained, has, name_bytes
from penstock.formats.hdf5.reader import Hdf5
from penstock.formats.hdf5.stored import Stored
from penstock.formats.hdf5.values import blank_of
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Shape, Watch
from penstock.formats.netcdf4.dims import (
    HIDDEN,
    NOT_COORDINATE,
    Dimension,
    Paths,
    dimensions_of,
    is_bare,
    lengths_of,
)

BOOL_ATTRIBUTE = "dtype"  # xarray's mark of a bool, which netCDF does not have


class VariableView(NamedTuple):
    """A variable as the netCDF library shows it, and its shape in HDF5."""

    info: DatasetInfo
    stored_shape: Shape


class NetCDFView(Metadata):
    """Metadata of an HDF5 file, as netCDF means it."""

    format = "netcdf4"
    hidden_attributes = HIDDEN

    def _begin_views(self) -> None:
        self._views: dict[str, VariableView] = {}
        self._renamed: dict[str, str] = {}
        self._paths: Paths = {}  # of dimensions
        self._unlimited: dict[str, int] = {}  # lengths of unlimited dimensions, each from all variables that have it

    def names(self) -> Sequence[str]:
        file = self._current()
        found, all_names = [], super().names()
        with explained(self.name, names_exist=True):
            for name in all_names:
                if _is_variable(file, name_bytes(name)):
                    found.append(name.replace(NOT_COORDINATE, ""))
        return tuple(found)

    def info(self, name: str) -> DatasetInfo:
        return self._view(name).info

    def stored(self, name: str) -> Stored:
        return super().stored(self._stored_name(name))

    def _described(self, name: str) -> Stored:
        return super()._described(self._stored_name(name))

    def close(self) -> None:
        self._views.clear()
        self._unlimited.clear()
        super().close()

    def _view(self, name: str) -> VariableView:
        name = name.strip("/")
        self._current()
        if name not in self._views:
            self._views[name] = self._look(name)
        return self._views[name]

    def _look(self, name: str) -> VariableView:
        stored = self.stored(name)
        info = replace(stored.info, name=name)
        with explained(self.name, name, names_exist=True):
            is_dimension = is_bare(stored.dataset)
        if is_dimension:
            raise KeyError(f"{self.name}: {name!r} is a dimension, and no variable has its name")
        with explained(self.name, name, names_exist=True):
            info = self._typed(stored, info)
            dimensions = self._dimensions(stored)
            if dimensions is None:
                return VariableView(info, info.shape)
            shape = self._lengths(stored, dimensions) + stored.item_dims
        names = tuple(one.name for one in dimensions)
        return VariableView(replace(info, shape=shape, dimensions=names), stored.info.shape)

    def _typed(self, stored: Stored, info: DatasetInfo) -> DatasetInfo:
        marked = info.dtype.name == "int8" and h5a.exists(stored.dataset, BOOL_ATTRIBUTE.encode())
        return replace(info, dtype=DType.of("bool")) if marked and info.attributes[BOOL_ATTRIBUTE] == "bool" else info

    def _dimensions(self, stored: Stored) -> tuple[Dimension, ...] | None:
        return dimensions_of(self._current(), stored.dataset, self._paths)

    def _lengths(self, stored: Stored, dimensions: tuple[Dimension, ...]) -> Shape:
        return lengths_of(self._current(), dimensions, self._unlimited)

    def _stored_name(self, name: str) -> str:
        """A variable that is named like a dimension without being its coordinate has another name in HDF5."""
        name = name.strip("/")
        if name not in self._renamed:
            path, _, leaf = name.rpartition("/")
            other = f"{path}/{NOT_COORDINATE}{leaf}".strip("/")
            self._renamed[name] = other if leaf and has(self._current(), other) else name
        return self._renamed[name]


def _is_variable(file: h5f.FileID, name: bytes) -> bool:
    """What is broken may be one, and is listed."""
    try:
        dataset = h5o.open(file, name)
        return isinstance(dataset, h5d.DatasetID) and not is_bare(dataset)
    except (KeyError, OSError, RuntimeError, ValueError):
        return True


class NetCDF4(NetCDFView, Hdf5):
    """A netCDF-4 file, opened for reading. `skip_checksums`: as of Hdf5."""

    def __init__(self, name: str | os.PathLike[str], *, skip_checksums: bool = False) -> None:
        self._begin_views()
        Hdf5.__init__(self, name, skip_checksums=skip_checksums)

    def table(self, name: str, box: Box) -> ChunkTable:
        view = self._view(name)
        if view.info.shape == view.stored_shape:
            return super().table(name, box)
        table = super().table(name, _within(box, view.stored_shape))
        beyond = (table.origin + np.array(view.info.chunk_shape) > np.array(view.stored_shape)).any(axis=1)
        host_only = beyond if table.host_only is None else beyond | table.host_only
        return replace(table, encoded=table.encoded | beyond, host_only=host_only)  # beyond the end it holds nothing

    def watch(self, name: str) -> Watch | None:
        view = self._view(name)
        return super().watch(name) if view.info.shape == view.stored_shape else None

    def values(self, name: str, box: Box) -> np.ndarray:
        view = self._view(name)
        inside = _within(box, view.stored_shape)
        found = super().values(name, inside)
        if inside == box:
            return found
        whole = np.empty([high - low for low, high in zip(box.start, box.stop, strict=True)], found.dtype)
        how = self.stored(name).how
        for at in np.ndindex(whole.shape) if how is not None else ():
            whole[at] = blank_of(how)
        whole[tuple(slice(0, count) for count in found.shape)] = found
        return whole

    def decode(self, name: str, box: Box) -> memoryview:
        view = self._view(name)
        inside = _within(box, view.stored_shape)
        if inside == box:
            return super().decode(name, box)
        item = np.dtype((np.void, view.info.dtype.itemsize))
        counts = [high - low for low, high in zip(box.start, box.stop, strict=True)]
        whole = np.full(counts, np.frombuffer(view.info.fill or bytes(item.itemsize), item)[0])
        part = tuple(slice(0, high - low) for low, high in zip(inside.start, inside.stop, strict=True))
        whole[part] = np.frombuffer(super().decode(name, inside), item).reshape(whole[part].shape)
        return whole.view(np.uint8).reshape(-1).data


def _within(box: Box, shape: Shape) -> Box:
    """The part of the box that is stored; its start stays."""
    stop = (max(low, min(high, end)) for low, high, end in zip(box.start, box.stop, shape, strict=True))
    return Box(box.start, tuple(stop))
