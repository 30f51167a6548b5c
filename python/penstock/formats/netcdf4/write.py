"""Writing netCDF-4: new files, and steps and variables in existing ones, which every netCDF library goes on with.

Variables are made as they come; their dimensions become scales when the file is published, because only then it is
known which dimensions have a coordinate variable. What must stay true: variables that name the same dimension agree on
its length; text is stored as netCDF stores it, not as h5py does; missing values are netCDF's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5g, h5p

from penstock._arrays.dtype import DType
from penstock._version import __version__
from penstock.formats.faults import refused
from penstock.formats.hdf5.attributes import write_attribute
from penstock.formats.hdf5.open import high_level, name_bytes
from penstock.formats.hdf5.stored import Stored
from penstock.formats.hdf5.write import PAGE_BYTES, Hdf5Writer
from penstock.formats.model import ChunkTable, NewDataset, Shape
from penstock.formats.netcdf4.dims import Dimension, dimensions_of
from penstock.formats.netcdf4.plan import Planned, Registry
from penstock.formats.netcdf4.reader import BOOL_ATTRIBUTE, NetCDFView
from penstock.formats.netcdf4.scales import make_scales
from penstock.formats.netcdf_names import check_length

# What the netCDF library writes where nothing was written.
_FILLS = {
    "int8": -127,
    "uint8": 255,
    "int16": -32767,
    "uint16": 65535,
    "int32": -2147483647,
    "uint32": 4294967295,
    "int64": -9223372036854775806,
    "uint64": 18446744073709551614,
    "float32": 9.969209968386869e36,
    "float64": 9.969209968386869e36,
}
_FILL_VALUE = "_FillValue"


class NetCDF4Writer(NetCDFView, Hdf5Writer):
    """Writes a netCDF-4 file; see Hdf5Writer. Dimensions without names are named after their length."""

    ordered = True  # the netCDF library wants to know the order in which things were made

    def __init__(self, name: str | os.PathLike[str], *, append: bool = False, page_bytes: int = PAGE_BYTES) -> None:
        self._begin_views()
        self._planned: dict[str, Planned] = {}  # variables whose dimensions are not yet in the file
        self._registry: Registry | None = None
        Hdf5Writer.__init__(self, name, append=append, page_bytes=page_bytes)

    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable]:
        wanted = [_as_netcdf(self.name, one) for one in datasets]
        registry = self._dimensions_known()
        plans = registry.plan(wanted)
        tables = Hdf5Writer.create(self, [plan.dataset for plan in plans])
        self._planned |= {plan.dataset.name: plan for plan in plans}
        return tables

    def extend(self, name: str, shape: Shape) -> ChunkTable:
        self._views.pop(name.strip("/"), None)
        return super().extend(name, shape)

    def publish(self, durable: bool) -> None:
        if self._session is not None and self._failed is None and (self._planned or self._new is not None):
            with self._all_or_nothing():
                self._finish_dimensions()
        self._forget()
        super().publish(durable)

    def abandon(self) -> None:
        self._forget()
        super().abandon()

    def _forget(self) -> None:
        self._planned.clear()
        self._views.clear()
        self._paths.clear()
        self._registry = None

    def _finish_dimensions(self) -> None:
        for path in make_scales(self.name, self._current(), self._dimensions_known(), self._planned):
            self._in_place.note_addition(self._session, path)
        if self._new is not None:
            text = f"version=2,penstock={__version__},hdf5={h5py.version.hdf5_version}"
            _write_text(h5g.open(self._current(), b"/"), "_NCProperties", text, "ascii")

    def _dimensions_known(self) -> Registry:
        if self._registry is None:
            self._registry = Registry(self.name, self._current())
        return self._registry

    def _dimensions(self, stored: Stored) -> tuple[Dimension, ...] | None:
        plan = self._planned.get(stored.info.name)
        return plan.dimensions if plan is not None else dimensions_of(self._current(), stored.dataset, self._paths)

    def _lengths(self, stored: Stored, dimensions: tuple[Dimension, ...]) -> Shape:
        return stored.info.shape[: stored.rank]  # while it is written: as far as it was written

    def _set_fill(self, create: h5p.PropDCID, new: NewDataset) -> None:
        value = new.attributes.get(_FILL_VALUE, _FILLS.get(new.dtype.name))
        if value is not None:
            create.set_fill_value(np.array(value, new.dtype.dtype))

    def _decorate(self, dataset: h5d.DatasetID, new: NewDataset) -> None:
        for key, value in new.attributes.items():
            self._write_attribute(dataset, key, value)

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        _check_attributes(self.name, name, attributes)
        super().set_attributes(name, attributes)

    def create_group(self, name: str) -> None:
        _check_names(self.name, name, "a group", name.split("/"))
        super().create_group(name)

    def _write_attribute(self, target: h5g.GroupID | h5d.DatasetID, key: str, value: Any) -> None:
        if key == _FILL_VALUE and isinstance(target, h5d.DatasetID):
            value = np.array([value], target.dtype).reshape(1)
        if isinstance(value, (bytes, str)):
            text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
            try:
                _write_text(target, key, text, "ascii" if text.isascii() else "utf-8")
            except (OSError, ValueError, RuntimeError) as error:
                raise refused(self.name, f"attribute {key!r} cannot be written: {error}") from error
            return
        if isinstance(value, (bool, np.bool_)) or (isinstance(value, np.ndarray) and value.dtype.kind == "b"):
            value = np.asarray(value, "i1")[()]
        write_attribute(self.name, target, key, value)

    def _object(self, path: bytes) -> h5g.GroupID:
        return super()._object(name_bytes(self._stored_name(path.decode("utf-8", "surrogateescape"))) or b"/")


def _as_netcdf(file: str, new: NewDataset) -> NewDataset:
    """The same in types that netCDF has."""
    new = replace(new, name=new.name.strip("/"))
    _check_names(file, new.name, "a variable or group", new.name.split("/"))
    _check_names(file, new.name, "a dimension", new.dimensions or ())
    _check_attributes(file, new.name, new.attributes)
    if new.dtype.kind == "b":
        return replace(new, dtype=DType.of("int8"), attributes={**new.attributes, BOOL_ATTRIBUTE: "bool"})
    if new.dtype.name not in _FILLS and new.dtype != DType.objects("text"):
        cause = f"netCDF has no elements of {new.dtype}"
        raise refused(file, cause, "store what it consists of (parts of numbers, members) as variables", new.name)
    if any(most is not None and most != extent for most, extent in zip(new.resizable or (), new.shape, strict=False)):
        raise refused(
            file, "a dimension of netCDF is fixed, or has no limit", f"resizable is {new.resizable}", new.name
        )
    return new


def _check_names(file: str, dataset: str, what: str, names: Sequence[str]) -> None:
    for name in names:
        try:
            check_length(name, what)
        except ValueError as error:
            raise refused(file, str(error), "give it a shorter name", dataset) from None


def _check_attributes(file: str, name: str, attributes: Mapping[str, Any]) -> None:
    """Before anything is made: the netCDF library fails at a file that has others."""
    _check_names(file, name, "an attribute", tuple(attributes))
    for key, value in attributes.items():
        try:
            found = np.asarray(value)
        except ValueError as error:
            raise refused(file, f"attribute {key!r} cannot be written: {error}", "", name) from None
        if found.dtype.kind == "c":
            raise refused(file, f"attribute {key!r} is complex, which netCDF does not have", "", name)
        if found.ndim > 1:
            cause = f"attribute {key!r} has {found.ndim} dimensions; netCDF has numbers, text, and lists of them"
            raise refused(file, cause, "store it flattened, or as a variable", name)


def _write_text(target: h5g.GroupID | h5d.DatasetID, name: str, text: str, encoding: str) -> None:
    """As the netCDF library writes text: of fixed length, in the header."""
    attributes = high_level(target).attrs
    raw: Mapping[str, Any] | Any = text.encode("utf-8", "surrogateescape")
    if not raw:
        attributes[name] = h5py.Empty("S1")
        return
    attributes.create(name, np.array(raw), dtype=h5py.string_dtype(encoding, len(raw)))
