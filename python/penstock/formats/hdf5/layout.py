"""How a new dataset of HDF5 is to lie in its file: its extents, its chunks and what they go through.

What must stay true: chunks, and space for the elements of contiguous datasets, are given out when Penstock asks for it;
what HDF5 cannot store is refused before anything is made.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from h5py import h5d, h5p, h5s

from penstock.formats.faults import refused
from penstock.formats.hdf5.changing.place import MOST_CHUNK_BYTES, default_chunk
from penstock.formats.hdf5.filters import set_filters
from penstock.formats.model import NewDataset
from penstock.formats.packing.compression import chunk_of


def lay_out(create: h5p.PropDCID, new: NewDataset, page_bytes: int) -> None:
    """Layout, filters, and when space is given out."""
    chunk = new.chunk_shape
    if new.compression is not None and 0 in (new.resizable or new.shape):
        new, chunk = replace(new, compression=None), None  # HDF5 has no chunks where there is never an element
    if chunk is None and new.compression is not None:
        chunk = chunk_of(new)
    if chunk is None and new.resizable is not None:
        chunk = default_chunk(new.shape, new.resizable, new.dtype.itemsize, page_bytes)
    if chunk is None:
        create.set_layout(h5d.CONTIGUOUS)
        create.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        if not new.dtype.host_only:  # what was not written there leads nowhere
            create.set_fill_time(h5d.FILL_TIME_NEVER)
    else:
        most = new.resizable or new.shape  # beyond a fixed end HDF5 wants no chunk
        create.set_chunk(
            tuple(size if end is None else max(1, min(size, end)) for size, end in zip(chunk, most, strict=True))
        )
        set_filters(create, new)
        create.set_alloc_time(h5d.ALLOC_TIME_INCR)  # each chunk gets its space from us, when it is wanted


def need_possible(file: str, new: NewDataset, name: str) -> None:
    """Error of chunks, and of growth, that HDF5 does not have."""
    if new.resizable is not None and len(new.resizable) != len(new.shape):
        raise refused(file, f"resizable {new.resizable} does not fit shape {new.shape}", "", name)
    sides = zip(new.chunk_shape or (), new.resizable or new.shape, strict=False)
    size_bytes = prod(size if most is None else min(size, most) for size, most in sides) * new.dtype.itemsize
    if new.chunk_shape is not None and size_bytes > MOST_CHUNK_BYTES:
        cause = f"a chunk of shape {tuple(new.chunk_shape)} has {size_bytes} bytes, and HDF5 has none of 4 GiB or more"
        raise refused(file, cause, "give a smaller chunk_shape", name)
    if (new.resizable is not None or new.chunk_shape is not None) and not new.shape:
        raise refused(file, "a dataset without dimensions has no chunks and does not grow", "", name)


def space_of(new: NewDataset) -> h5s.SpaceID:
    if not new.shape:
        return h5s.create(h5s.SCALAR)
    if new.resizable is None:
        return h5s.create_simple(new.shape)
    return h5s.create_simple(new.shape, tuple(h5s.UNLIMITED if most is None else most for most in new.resizable))
