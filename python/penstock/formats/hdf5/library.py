"""What h5py has no face for, asked of the HDF5 library that it brought along; and errors of that library.

What must stay true: where the library cannot be asked (h5py was linked differently), callers do something that is
right, if slower.
"""

from __future__ import annotations

import ctypes
import io
import os
from contextlib import suppress
from functools import cache
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5fd, h5i, h5p, h5s, h5t

from penstock._files.descriptor import close_read, read_at
from penstock.formats.model import Shape

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_EXTENSIBLE_ARRAY = 4  # H5D_chunk_index_t


@cache
def library_function(name: str) -> Any:
    """A function of the HDF5 library, or None."""
    return getattr(ctypes.CDLL(h5p.__file__), name, None)


def set_link_phase_change(create: h5p.PropGCID | h5p.PropFCID, most: int) -> None:
    """Groups keep up to `most` links in their header. Does nothing where the library cannot be asked."""
    call = library_function("H5Pset_link_phase_change")
    if call is not None:
        call.argtypes = [ctypes.c_int64, ctypes.c_uint, ctypes.c_uint]
        with h5py._objects.phil:
            call(create.id, most, most // 2)


def can_claim() -> bool:
    """Whether the library can be asked for space that nothing has."""
    return library_function("H5Oincr_refcount") is not None


def claim_space(file: h5f.FileID, bytes: int) -> int:
    """Space that HDF5 gives to nothing else; where that is in the file. HDF5 knows it as a dataset that no link leads
    to, and whose header says that one does, so that it is kept. Requires: can_claim()."""
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    create.set_fill_time(h5d.FILL_TIME_NEVER)
    create.set_obj_track_times(False)
    claimed = h5d.create(file, None, h5t.STD_U8LE, h5s.create_simple((bytes,)), create)
    call = library_function("H5Oincr_refcount")
    call.argtypes = [ctypes.c_int64]
    with h5py._objects.phil:
        done = call(claimed.id)
    place = place_of(claimed)
    if done < 0 or place is None:
        raise RuntimeError(f"HDF5 has no space of {bytes} bytes to give")
    return place


def is_extensible_array(dataset: h5d.DatasetID) -> bool | None:
    """Whether that is the kind of the chunk index; None: unknown."""
    call = library_function("H5Dget_chunk_index_type")
    if call is None:
        return None
    call.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_int)]
    kind = ctypes.c_int(-1)
    with h5py._objects.phil:
        done = call(dataset.id, ctypes.byref(kind))
    return kind.value == _EXTENSIBLE_ARRAY if done >= 0 else None


def place_of(dataset: h5d.DatasetID) -> int | None:
    """Where a contiguous dataset begins in its file; None: it has no space yet. H5Dget_offset alone does not tell: it
    adds the user block to the address that means "nowhere", which gives the last byte of that block."""
    return dataset.get_offset() if dataset.get_storage_size() else None


def user_block_of(dataset: h5d.DatasetID) -> int:
    """Bytes before the HDF5 part of the file that a dataset lies in."""
    return h5i.get_file_id(dataset).get_create_plist().get_userblock()


@cache
def _has_descriptors() -> bool:
    """Whether HDF5 opens files by descriptors of the system here, where its settings name no other way."""
    return h5p.create(h5p.FILE_ACCESS).get_driver() == h5fd.SEC2


def begins_the_file(name: str, file: h5f.FileID | None = None) -> bool:
    """Whether the HDF5 part begins with the file's first byte: HDF5 looks there first, and a user block is empty then.
    Asking HDF5 takes longer than opening the dataset. `file`: the open one, whose descriptor serves."""
    if file is not None and _has_descriptors():
        with suppress(OSError, RuntimeError, ValueError):
            return read_at(file.get_vfd_handle(), len(_SIGNATURE), 0) == _SIGNATURE
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return read_at(descriptor, len(_SIGNATURE), 0) == _SIGNATURE
    except OSError:
        return False
    finally:
        close_read(descriptor)


def user_block_left_out(dataset: h5d.DatasetID) -> int:
    """What must be added to the offsets of chunks: H5Dchunk_iter leaves out the user block before HDF5 1.14.3 or so."""
    block = user_block_of(dataset)
    return block if block and _leaves_out_user_block() else 0


@cache
def _leaves_out_user_block() -> bool:
    """Found out on a small file in memory."""
    content, mark = io.BytesIO(), np.frombuffer(b"penstock", np.uint8)
    with h5py.File(content, "w", userblock_size=512) as file:
        probe = file.create_dataset("x", data=mark, chunks=(8,)).id
        found: list[int] = []
        probe.chunk_iter(lambda row: found.append(row.byte_offset))
    return content.getvalue().find(mark.tobytes()) == found[0] + 512


class Misplaced(Exception):
    """HDF5 says wrong positions for chunks, and what is right cannot be found out."""


def true_origins(dataset: h5d.DatasetID, origin: np.ndarray, chunk: Shape) -> np.ndarray:
    """Positions of chunks, from those that H5Dchunk_iter says.

    An extensible array numbers chunks with the unlimited dimension first; H5Dchunk_iter and H5Dget_chunk_info (up to at
    least HDF5 2.0) turn the numbers into positions as if it were where it stands. Raises Misplaced.
    """
    most = dataset.get_space().get_simple_extent_dims(maxdims=True)
    unlimited = [axis for axis, extent in enumerate(most) if extent == h5py.h5s.UNLIMITED]
    if len(unlimited) != 1 or unlimited[0] == 0 or not len(origin) or not misplaces():
        return origin
    is_array = is_extensible_array(dataset)
    if is_array is None:
        raise Misplaced
    return _turned(origin, unlimited[0], most, chunk) if is_array else origin


def _turned(origin: np.ndarray, axis: int, most: Shape, chunk: Shape) -> np.ndarray:
    counts = [-(-extent // size) for extent, size in zip(most, chunk, strict=True)]
    scaled = origin // np.array(chunk, np.int64)
    number = scaled[:, axis]
    for later in range(axis + 1, len(counts)):
        number = number * counts[later] + scaled[:, later]
    found = np.empty_like(scaled)
    for other in reversed([one for one in range(len(counts)) if one != axis]):
        number, found[:, other] = np.divmod(number, counts[other])
    found[:, axis] = number
    return found * np.array(chunk, np.int64)


@cache
def misplaces() -> bool:
    """Whether this library has that error: found out on a small file in memory."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fapl_core(4096, False)
    access.set_libver_bounds(h5f.LIBVER_V110, h5f.LIBVER_V110)
    with h5py.File(h5f.create(b"penstock-probe", h5f.ACC_TRUNC, None, access)) as file:
        values = np.array([[1, 2], [3, 4]], "u1")
        probe = file.create_dataset("x", data=values, chunks=(1, 1), maxshape=(2, None)).id
        h5f.flush(file.id)
        image = file.id.get_file_image()
        found: list[Any] = []
        probe.chunk_iter(lambda row: found.append((row.chunk_offset, row.byte_offset)))
    return any(position not in _places(values, image[offset]) for position, offset in found)


def _places(values: np.ndarray, value: int) -> list[tuple[int, ...]]:
    return [tuple(one) for one in np.argwhere(values == value).tolist()]
