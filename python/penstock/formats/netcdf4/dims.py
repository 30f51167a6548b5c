"""Dimensions of netCDF-4 files: HDF5 dimension scales, with the marks by which the netCDF library knows them.

A dimension is a dataset (a scale). If it has values it is a variable too, the coordinate variable; else its NAME says
that it is none. Variables refer to scales by DIMENSION_LIST, or, where they are scales of several dimensions
themselves, by numbers in _Netcdf4Coordinates. What must stay true: a dataset without such marks has no dimensions, and
is not given any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from h5py import h5a, h5d, h5f, h5i, h5o, h5r, h5s

from penstock.formats.hdf5.open import high_level, name_bytes, name_text, names_of
from penstock.formats.model import Shape

NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."
NOT_COORDINATE = "_nc4_non_coord_"  # before the name of a variable that is named like a dimension and is none
# What the netCDF library keeps in attributes for itself.
HIDDEN = frozenset(
    {
        "CLASS",
        "NAME",
        "DIMENSION_LIST",
        "REFERENCE_LIST",
        "DIMENSION_LABELS",
        "_Netcdf4Dimid",
        "_Netcdf4Coordinates",
        "_NCProperties",
        "_nc3_strict",
    }
)
Paths = dict[tuple[int, int], str]  # of objects, by the number of the file and the address


class Dimension(NamedTuple):
    """`length` is None while a dimension is unlimited and its length is that of the longest variable."""

    path: str  # of its scale
    length: int | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def is_scale(dataset: h5d.DatasetID) -> bool:
    """Asked of the attribute itself: H5DSis_scale writes beyond its buffer when a damaged file has another there."""
    return h5a.exists(dataset, b"CLASS") and _mark(dataset, "CLASS") == b"DIMENSION_SCALE"


def _mark(dataset: h5d.DatasetID, name: str) -> bytes:
    value = high_level(dataset).attrs[name]
    value = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return value.rstrip(b"\0") if isinstance(value, bytes) else b""


def is_bare(dataset: h5d.DatasetID) -> bool:
    """Whether it is a dimension and no variable."""
    if not h5a.exists(dataset, b"NAME") or not is_scale(dataset):
        return False
    return _mark(dataset, "NAME").startswith(NO_VARIABLE)


def dimensions_of(file: h5f.FileID, dataset: h5d.DatasetID, paths: Paths) -> tuple[Dimension, ...] | None:
    """Dimensions of a variable; None where it does not have them all. `paths`: of scales, as far as known."""
    rank = dataset.get_space().get_simple_extent_ndims()
    if is_scale(dataset):
        scales = [dataset] if rank == 1 else _numbered(file, dataset)
    elif not h5a.exists(dataset, b"DIMENSION_LIST"):
        return () if rank == 0 else None
    else:
        scales = [_first_scale(file, ones) for ones in high_level(dataset).attrs["DIMENSION_LIST"]]
    if len(scales) != rank or any(one is None for one in scales):
        return None
    return tuple(dimension(one, paths) for one in scales if one is not None)


def dimension(scale: h5d.DatasetID, paths: Paths) -> Dimension:
    """HDF5 searches the whole file for the name of what a reference leads to, so a name is asked for once."""
    found = h5o.get_info(scale)
    address = found.fileno, found.addr
    if address not in paths:
        paths[address] = name_text(h5i.get_name(scale) or b"").strip("/")
    path = paths[address]
    space = scale.get_space()
    most = space.get_simple_extent_dims(maxdims=True)[0]
    return Dimension(path, None if most == h5s.UNLIMITED else space.get_simple_extent_dims()[0])


def _first_scale(file: h5f.FileID, references: Sequence[h5r.Reference]) -> h5d.DatasetID | None:
    found = h5r.dereference(references[0], file) if len(references) else None
    return found if isinstance(found, h5d.DatasetID) else None


def _numbered(file: h5f.FileID, dataset: h5d.DatasetID) -> list[h5d.DatasetID]:
    """Scales by the numbers that a multi-dimensional coordinate variable notes."""
    if not h5a.exists(dataset, b"_Netcdf4Coordinates"):
        return []
    wanted = np.atleast_1d(high_level(dataset).attrs["_Netcdf4Coordinates"]).tolist()
    known = {}
    for name in names_of(file):
        one = h5o.open(file, name_bytes(name))
        if is_scale(one) and h5a.exists(one, b"_Netcdf4Dimid"):
            known[int(high_level(one).attrs["_Netcdf4Dimid"])] = one
    return [known[number] for number in wanted if number in known]


def unlimited_length(file: h5f.FileID, path: str) -> int:
    """Length of an unlimited dimension: the longest of its scale and of the variables that have it."""
    scale = h5o.open(file, name_bytes(path))
    length = scale.shape[0]
    if h5a.exists(scale, b"REFERENCE_LIST"):
        for reference, axis in high_level(scale).attrs["REFERENCE_LIST"]:
            user = h5r.dereference(reference, file)
            if isinstance(user, h5d.DatasetID):
                length = max(length, user.shape[axis])
    return length


def lengths_of(file: h5f.FileID, dimensions: tuple[Dimension, ...], known: dict[str, int]) -> Shape:
    """`known`: lengths of unlimited dimensions, by path, which hold while the file does not change. Each is looked for
    once, because all variables of the dimension are asked for it."""
    for one in dimensions:
        if one.length is None and one.path not in known:
            known[one.path] = unlimited_length(file, one.path)
    return tuple(known[one.path] if one.length is None else one.length for one in dimensions)
