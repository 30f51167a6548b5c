"""Turns planned dimensions into HDF5 dimension scales, marked as the netCDF library marks them.

What must stay true: dimensions are numbered in the order in which they were named; a variable is attached to the scales
of all its dimensions, unless it is a scale itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from h5py import h5a, h5d, h5ds, h5f, h5g, h5o, h5p, h5s, h5t

from penstock.formats.faults import refused
from penstock.formats.hdf5.changing.session import shape_object
from penstock.formats.hdf5.faults import cause_of
from penstock.formats.hdf5.open import has, high_level, name_bytes
from penstock.formats.netcdf4.dims import NO_VARIABLE, Dimension, is_scale
from penstock.formats.netcdf4.plan import Planned, Registry


def make_scales(name: str, file: h5f.FileID, registry: Registry, planned: Mapping[str, Planned]) -> Iterator[str]:
    """Yields the paths of all objects that it makes, or is about to change."""
    number = max((_number(file, one) for one in registry.stored), default=-1) + 1
    try:
        for path, dimension in registry.new.items():
            _make_scale(name, file, dimension, planned.get(path))
            yield path
            _set_number(h5o.open(file, name_bytes(path)), number)
            number += 1
        for path, plan in planned.items():
            variable = h5o.open(file, name_bytes(path))
            if is_scale(variable):
                _note_several(file, variable, plan)
                continue
            for axis, dimension in enumerate(plan.dimensions):
                yield dimension.path
                h5ds.attach_scale(variable, h5o.open(file, name_bytes(dimension.path)), axis)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise refused(name, f"its dimensions cannot be noted: {cause_of(error)}") from error


def _make_scale(name: str, file: h5f.FileID, dimension: Dimension, plan: Planned | None) -> None:
    if plan is not None and plan.dimensions and plan.dimensions[0].path == dimension.path:
        h5ds.set_scale(h5o.open(file, name_bytes(dimension.path)), name_bytes(dimension.name))
        return
    if plan is not None or has(file, dimension.path):
        cause = f"variable {dimension.path!r} has the name of a dimension that is not its first"
        raise refused(name, cause, "give one of them another name")
    length = dimension.length or 0
    create = h5p.create(h5p.DATASET_CREATE)
    shape_object(create, ordered=True)
    space = h5s.create_simple((length,))
    if dimension.length is None:
        create.set_chunk((1024,))
        space = h5s.create_simple((0,), (h5s.UNLIMITED,))
    parent, _, leaf = dimension.path.rpartition("/")
    bare = h5d.create(h5g.open(file, name_bytes(parent) or b"/"), name_bytes(leaf), h5t.IEEE_F32BE, space, create)
    h5ds.set_scale(bare, NO_VARIABLE + b"%10d" % length)


def _note_several(file: h5f.FileID, variable: h5d.DatasetID, plan: Planned) -> None:
    """A coordinate variable of several dimensions cannot be attached to scales, being one: it has their numbers."""
    if len(plan.dimensions) > 1:
        numbers = [_number(file, one.path) for one in plan.dimensions]
        high_level(variable).attrs.create("_Netcdf4Coordinates", np.array(numbers, "<i4"))


def _number(file: h5f.FileID, path: str) -> int:
    scale = h5o.open(file, name_bytes(path))
    return int(high_level(scale).attrs["_Netcdf4Dimid"]) if h5a.exists(scale, b"_Netcdf4Dimid") else -1


def _set_number(scale: h5d.DatasetID, number: int) -> None:
    high_level(scale).attrs.create("_Netcdf4Dimid", np.int32(number))
