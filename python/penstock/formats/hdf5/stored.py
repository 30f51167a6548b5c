"""One dataset of an HDF5 file as HDF5 describes it, turned into a DatasetInfo.

What must stay true: the description is complete without reading an element, and what makes a dataset unreadable is
its `refusal`, not an exception: other datasets of the file are still of use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5d, h5p, h5s, h5t

from penstock._arrays.dtype import DType
from penstock.formats.hdf5.filters import filters_of, pipeline_of, recipe_of
from penstock.formats.hdf5.runs import Runs
from penstock.formats.hdf5.types import UnreadableType, dtype_of, raw
from penstock.formats.hdf5.values import Converted, converted, odd_integers
from penstock.formats.model import Box, DatasetInfo, Filter, Shape

NO_CHUNKS = "its layout has no chunks"  # so nothing decodes them
_LAYOUTS = {h5d.COMPACT: "compact", h5d.CONTIGUOUS: "contiguous", h5d.CHUNKED: "chunked", h5d.VIRTUAL: "virtual"}


@dataclass(frozen=True)
class Stored:
    """A dataset, and where it was found."""

    dataset: h5d.DatasetID
    home: str  # file that holds it
    info: DatasetInfo
    item_dims: Shape  # dimensions that an array type adds to those of the dataset
    runs: Runs | None = None  # of virtual and external layouts, where they are plain
    how: Converted | None = None  # what HDF5 makes of elements whose bytes are not their values

    @property
    def rank(self) -> int:
        """Dimensions that HDF5 knows of."""
        return self.info.ndim - len(self.item_dims)

    def read(self, box: Box) -> memoryview:
        """The box in C order and stored type, by the HDF5 library."""
        rank = self.rank
        start, stop = box.start[:rank], box.stop[:rank]
        counts = tuple(high - low for low, high in zip(start, stop, strict=True))
        inner = np.array(self.item_dims, np.int64).prod(dtype=np.int64)
        elements = np.zeros((*counts, int(inner) * self.info.dtype.itemsize), np.uint8)  # HDF5 may leave parts out
        if elements.size:
            space = self.dataset.get_space()
            memory = h5s.create(h5s.SCALAR) if not rank else h5s.create_simple(counts)
            if rank:
                space.select_hyperslab(start, counts)
            kind = (
                self.dataset.get_type() if self.how is None else self.how.memory
            )  # kept: h5py forgets an object in a callback, where an interrupt gets lost
            self.dataset.read(memory, space, elements, kind)
        return self._trimmed(elements, counts, box)

    def _trimmed(self, elements: np.ndarray, counts: Shape, box: Box) -> memoryview:
        """HDF5 reads whole elements; a box may want a part of an array element."""
        if not self.item_dims:
            return elements.reshape(-1).data
        inside = tuple(slice(*bounds) for bounds in zip(box.start[len(counts) :], box.stop[len(counts) :], strict=True))
        shaped = elements.reshape(*counts, *self.item_dims, self.info.dtype.itemsize)
        wanted = shaped[(*(slice(None) for _ in counts), *inside)]
        return np.ascontiguousarray(wanted).reshape(-1).data


def describe(name: str, dataset: h5d.DatasetID, home: str, attributes: Mapping[str, Any]) -> Stored:
    stored, create = dataset.get_type(), dataset.get_create_plist()
    refusal, dims, how = "", (), None
    try:
        dtype, dims, how = _type_of(stored)
        fill = None if dtype.host_only else _fill_of(create, stored, dtype)
    except UnreadableType as cause:
        dtype, fill, refusal = raw(stored.get_size()), None, str(cause)
    is_chunked = create.get_layout() == h5d.CHUNKED
    shape, largest = _extent(dataset, is_chunked)
    layout = _layout(create, shape)
    is_chunked = layout == "chunked"
    why = NO_CHUNKS if how is None else how.why
    info = DatasetInfo(
        name=name,
        shape=(0,) if shape is None else (*shape, *dims),
        dtype=dtype,
        chunk_shape=(*(create.get_chunk() if is_chunked else shape or ((0,) if shape is None else ())), *dims),
        fill=fill,
        resizable=(*largest, *dims) if is_chunked and largest != shape else None,
        filters=filters_of(create) if is_chunked else (),
        layout=layout,
        refusal=refusal,
        conversion="" if how is None else how.why,
        recipe=recipe_of(create) if is_chunked and how is None else why,
        pipeline=_pipeline(create, stored, how) if is_chunked else why,
        attributes=attributes,
    )
    return Stored(dataset, home, info, dims, how=how)


def _pipeline(create: h5p.PropDCID, stored: h5t.TypeID, how: Converted | None) -> tuple[Filter, ...] | str:
    """How the host's cores make the elements of chunks; or why only the HDF5 library can."""
    if how is None:
        return pipeline_of(create)
    odd, filters = odd_integers(stored), pipeline_of(create)
    if odd is None or isinstance(filters, str):
        return how.why
    return (odd, *filters)


def _type_of(stored: h5t.TypeID) -> tuple[DType, Shape, Converted | None]:
    """(of an element, dimensions that an array type adds, what HDF5 must do where bytes are not the values)."""
    try:
        return *dtype_of(stored), None
    except UnreadableType as cause:
        how = converted(stored, str(cause))
        return how.dtype, how.dims, how


def _layout(create: h5p.PropDCID, shape: Shape | None) -> str:
    if shape is None:
        return "empty"
    layout = _LAYOUTS.get(create.get_layout(), "unknown")
    return "external" if layout == "contiguous" and create.get_external_count() else layout


def _extent(dataset: h5d.DatasetID, may_grow: bool) -> tuple[Shape | None, tuple[int | None, ...]]:
    """(shape, largest shape); None for the empty dataspace, which holds no element at all."""
    plain = None if may_grow else dataset.shape
    if plain:  # that of an empty dataspace is (), as of a scalar
        return plain, plain
    space = dataset.get_space()
    if space.get_simple_extent_type() == h5s.NULL:
        return None, ()
    shape, largest = space.get_simple_extent_dims(), space.get_simple_extent_dims(maxdims=True)
    return shape, tuple(None if most == h5s.UNLIMITED else most for most in largest)


def _fill_of(create: h5p.PropDCID, stored: h5t.TypeID, dtype: DType) -> bytes | None:
    """One element as stored; None for zeros."""
    if create.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return None
    if dtype.kind == "E":
        return _small_fill(create, dtype)
    try:
        value = np.zeros((), stored.dtype)
        create.get_fill_value(value)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise UnreadableType(f"its fill value cannot be read ({error})") from error
    raw_bytes = value.tobytes()[: dtype.itemsize]
    return raw_bytes if any(raw_bytes) else None


def _small_fill(create: h5p.PropDCID, dtype: DType) -> bytes | None:
    """NumPy has no such type: HDF5 gives the value as float32, of which a bfloat16 is the upper half."""
    value = np.zeros((), "<f4")
    create.get_fill_value(value)
    if not any(value.tobytes()):
        return None
    if dtype.name != "bfloat16":
        raise UnreadableType(f"its fill value is not zero, which {dtype.name} cannot be given")
    upper = value.tobytes()[2:]
    return upper[::-1] if dtype.big_endian else upper
