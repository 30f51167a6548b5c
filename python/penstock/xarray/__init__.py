"""xarray's engine "penstock": `xarray.open_dataset("x.nc", engine="penstock", device="cuda:0")`.

Variables are lazy. With a GPU as device they become CuPy arrays, read straight into its memory; on "host" NumPy arrays.
CF conventions are decoded by xarray. What must stay true: attributes mean to xarray what they mean in the file; what
CuPy cannot hold (times, text) and what xarray needs on the host (indices) comes as NumPy.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

try:
    from xarray import Dataset as XarrayDataset, DataTree, Variable, conventions
    from xarray.backends import BackendEntrypoint
    from xarray.coding import strings
    from xarray.core.indexing import LazilyIndexedArray
except ModuleNotFoundError as absent:
    if absent.name != "xarray":
        raise
    raise ModuleNotFoundError("penstock.xarray needs xarray: pip install xarray", name="xarray") from None

from penstock._error import Error
from penstock._files.file_name import file_name
from penstock.formats.datafile import DataFile
from penstock.formats.dataset import Dataset
from penstock.formats.loading import UnreadableWarning
from penstock.formats.reference import Reference
from penstock.formats.registry import FORMATS, loaded
from penstock.xarray.decode import decoding_of
from penstock.xarray.lazy import LazyArray, SharedFile, unchanged

# Attributes by which HDF5 and netCDF-4 keep dimensions; they are not the user's.
_INTERNAL = {
    *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"),
    *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties", "_NOFILL"),
}
_DURATIONS = {"days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"}


class PenstockBackendEntrypoint(BackendEntrypoint):
    """What xarray calls for engine="penstock"."""

    description = "netCDF, Zarr and HDF5 with dimension scales, lazily into GPU or host memory"
    open_dataset_parameters = (
        *("filename_or_obj", "drop_variables", "mask_and_scale", "decode_times", "concat_characters"),
        *("decode_coords", "use_cftime", "decode_timedelta", "group", "device", "context", "format"),
    )

    def open_dataset(  # noqa: PLR0913 - xarray's signature
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str = "",
        device: str = "host",
        context: Any = None,
        format: str | None = None,
    ) -> XarrayDataset:
        """Opens one group of a file (`group`: "" is the root) with its variables lazy.

        Args:
            device: where values are read to: "host", "cuda:0", ...
            context, format: as of penstock.open.
            others: as of xarray.open_dataset.
        """
        options = {"device": device, "context": context, "format": format}
        file = SharedFile(_name(filename_or_obj), {key: value for key, value in options.items() if value})
        try:
            plain = _Group(file, group.strip("/"), drop_variables)
            variables, attributes, names = conventions.decode_cf_variables(
                plain.variables(decode_times, decode_timedelta, mask_and_scale),
                plain.attributes(),
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
            dataset = XarrayDataset(variables, attrs=attributes)
            dataset = dataset.set_coords(names & set(variables))
        except BaseException:
            file.close()
            raise
        dataset.encoding = {"source": file.name, "unlimited_dims": plain.unlimited()}
        dataset.set_close(file.close)
        return dataset

    supports_groups = True

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: str | None = None, **options: Any
    ) -> dict[str, XarrayDataset]:
        """The groups from `group` on that have variables, or have such groups below: Datasets by "/", "/a", "/a/b", as
        they lie below it. Options: as of open_dataset()."""
        own = {key: options[key] for key in ("device", "context", "format") if options.get(key)}
        file, top = SharedFile(_name(filename_or_obj), {"device": "host"} | own), (group or "").strip("/")
        try:
            paths = _groups(file.get(), top)
        finally:
            file.close()
        found: dict[str, XarrayDataset] = {}
        try:
            for path in paths:
                found[f"/{path}"] = self.open_dataset(
                    filename_or_obj, group=f"{top}/{path}" if top else path, **options
                )
        except BaseException:
            for one in found.values():
                one.close()
            raise
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """The same groups as a tree. Options: as of open_dataset()."""
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        try:
            tree = DataTree.from_dict(groups)
        except BaseException:
            for one in groups.values():
                one.close()
            raise
        for path, one in groups.items():
            tree[path].set_close(one.close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Never: which engine opens a netCDF file by default is not ours to change."""
        return False


def _name(given: Any) -> str:
    """TypeError of what is no name, Error of a URL."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"engine 'penstock' opens local files by name, not a {type(given).__name__}")
    return file_name(given, "open")


def _groups(file: DataFile, top: str) -> list[str]:
    """Paths below `top` of groups in which variables lie, also those of groups between; "" is `top` itself."""
    found = {"": None}
    for name in file if not top else file[top]:
        parts = name.strip("/").split("/")[:-1] if FORMATS[file.format].has_groups else []
        found |= {"/".join(parts[:count]): None for count in range(1, len(parts) + 1)}
    return sorted(found, key=lambda path: path.split("/"))


class _Group:
    """The variables of one group, as xarray wants them before it decodes them."""

    def __init__(self, file: SharedFile, group: str, drop: str | Iterable[str] | None) -> None:
        self._shared, self._file, self._group = file, file.get(), group
        dropped = {drop} if isinstance(drop, str) else set(drop or ())
        head = f"{group}/" if group else ""
        self._format = FORMATS[self._file.format]
        is_flat = not self._format.has_groups
        names = [name[len(head) :] for name in self._names(is_flat) if name.startswith(head)]
        if group and not names:
            raise KeyError(f"{file.name} has no group {group!r} with variables in it")
        self._datasets: dict[str, Dataset] = {}
        self._refused: list[str] = []
        for name in names:
            if name not in dropped and (is_flat or "/" not in name):
                self._look_at(name)

    def _names(self, is_flat: bool) -> list[str]:
        return list(self._file) if is_flat else [name.lstrip("/") for name in self._file]

    def _look_at(self, name: str) -> None:
        """A variable that cannot be read does not hide the others."""
        try:
            dataset = self._dataset(name)
            why = dataset.info.refusal
            if self._file.device == "host":
                why = self._file._file.ask(lambda source: source.hindrance(dataset.name))
        except Error as error:
            why = error.cause
        if why:
            self._refused.append(f"{name} ({why})")
        else:
            self._datasets[name] = dataset

    def _dataset(self, name: str) -> Dataset:
        found = self._file[f"{self._group}/{name}" if self._group else name]
        assert isinstance(found, Dataset)
        return found

    def attributes(self) -> dict[str, Any]:
        values = self._file._file.attributes(self._group) if self._group else self._file.attrs
        return _users(values)

    def unlimited(self) -> set[str]:
        found = set()
        for dataset in self._datasets.values() if not self._format.always_grows else ():
            for dimension, most in zip(dataset.dims or (), dataset.info.resizable or (), strict=False):
                found |= {dimension} if most is None else set()
        return found

    def variables(self, decode_times: Any, decode_timedelta: Any, mask_and_scale: Any) -> dict[str, Variable]:
        datasets = self._datasets
        if self._refused:
            text = f"{self._file.name}: left out, because Penstock cannot read them: {'; '.join(self._refused)}"
            warnings.warn(f"{text}. drop_variables= silences this", UnreadableWarning, stacklevel=3)
        known = {name: self._attributes(name, dataset) for name, dataset in datasets.items()}
        times = _times(known, decode_times, decode_timedelta)
        found = {}
        for name, dataset in datasets.items():
            masked = mask_and_scale.get(name, True) if isinstance(mask_and_scale, Mapping) else mask_and_scale
            found[name] = self._variable(dataset, known[name], name in times, masked)
        return found

    def _attributes(self, name: str, dataset: Dataset) -> dict[str, Any]:
        values = _users(dataset.attrs)
        if self._format.fill_mark:
            folder = Path(self._file.name) / dataset.name
            values |= loaded(self._format.fill_mark)(values.get("_FillValue"), dataset.info, folder)
        return values

    def _variable(self, dataset: Dataset, attributes: dict[str, Any], is_time: bool, masked: bool) -> Variable:
        dims = _distinct(dataset.dims or tuple(f"phony_dim_{length}" for length in dataset.shape))
        dtype = np.dtype(dataset.dtype) if dataset.dtype.name != "text" else strings.create_vlen_dtype(str)
        is_text = dtype.kind == "V" and dtype.fields is None and self._format.has_text
        dtype = np.dtype(f"S{dtype.itemsize}") if is_text else dtype
        told = str if dataset.dtype.name == "text" else dtype  # by which xarray knows text
        encoding: dict[str, Any] = {"source": self._file.name, "original_shape": dataset.shape, "dtype": told}
        if dataset.chunks is not None and dataset.info.layout in ("chunked", "sharded"):
            encoding |= {"chunksizes": dataset.chunks, "preferred_chunks": dict(zip(dims, dataset.chunks, strict=True))}
        is_index = dims == (dataset.name.rpartition("/")[2],)
        decode: Any = None
        if self._file.device != "host" and not (is_time or is_index) and dtype.kind in "biufc":
            decode = unchanged
        if decode is not None and masked:
            made, example = decoding_of(dims, dtype, attributes)
            decode, dtype, attributes = made or unchanged, example.dtype, dict(example.attrs)
            encoding = example.encoding | encoding
        return Variable(dims, LazilyIndexedArray(LazyArray(self._shared, dataset, dtype, decode)), attributes, encoding)


def _users(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Without those by which formats keep dimensions, and without references, which xarray can neither follow nor
    write."""
    given = {name: value for name, value in attributes.items() if name not in _INTERNAL}
    return {name: value for name, value in given.items() if not _refers(value)}


def _refers(value: Any) -> bool:
    return isinstance(value, Reference) or (isinstance(value, list) and any(map(_refers, value)))


def _times(known: Mapping[str, Mapping[str, Any]], decode_times: Any, decode_timedelta: Any) -> set[str]:
    """Variables that xarray will make datetimes or durations of, and the bounds of those."""
    found = set()
    for name, attributes in known.items():
        units = attributes.get("units")
        if not isinstance(units, str) or decode_times is False:
            continue
        if " since " in units or (units in _DURATIONS and decode_timedelta is not False):
            found |= {name, attributes.get("bounds", name)}
    return found


def _distinct(dims: tuple[str, ...]) -> tuple[str, ...]:
    """xarray wants a dimension's name once in a variable."""
    return tuple(name if name not in dims[:place] else f"{name}_{place}" for place, name in enumerate(dims))
