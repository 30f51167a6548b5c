"""External storage: a dataset whose bytes lie in files of their own, one after the other.

What must stay true: files are found as HDF5 finds them (relative to its prefix, else to the working directory). Where
one is missing or too short, HDF5 decides what that means.
"""

from __future__ import annotations

import errno
import os
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from h5py import h5d

from penstock._error import Error
from penstock.formats.hdf5.runs import Block, Runs, c_strides, runs_from
from penstock.formats.model import Box, DatasetInfo

if TYPE_CHECKING:
    from penstock.formats.hdf5.stored import Stored


def runs_of(stored: Stored) -> Runs | None:
    """None: HDF5 must read it."""
    info = stored.info
    create, folder = stored.dataset.get_create_plist(), _prefix(stored.dataset, stored.home)
    row_bytes = prod(info.shape[1:]) * info.dtype.itemsize
    total_bytes = prod(info.shape) * info.dtype.itemsize
    blocks, at = [], 0
    for index in range(create.get_external_count()):
        name, offset, size = create.get_external(index)
        path = str(Path(folder, os.fsdecode(name)))
        size = min(size, total_bytes - at)
        if size <= 0:
            break
        if not info.shape or size % row_bytes or not _holds(path, offset + size):
            return None
        start, counts = (at // row_bytes, *(0 for _ in info.shape[1:])), (size // row_bytes, *info.shape[1:])
        blocks.append(Block(start, counts, c_strides(info.shape, info.dtype.itemsize), path, offset))
        at += size
    return runs_from(blocks, info.shape, info.dtype.itemsize) if at == total_bytes else None


def need_there(stored: Stored, box: Box) -> tuple[str, ...]:
    """Checks the external files of a dataset that HDF5 reads. Raises Error for a file that the box needs and that is
    not there. Returns those that are too short, because HDF5 then gives zeros."""
    info, found, at = stored.info, [], 0
    create, folder = stored.dataset.get_create_plist(), _prefix(stored.dataset, stored.home)
    first, last = _span(info, box)
    for index in range(create.get_external_count()):
        name, offset, size = create.get_external(index)
        path = str(Path(folder, os.fsdecode(name)))
        low, high = max(first, at), min(last, at + size)
        at += size
        if low >= high:
            continue
        try:
            there = Path(path).stat().st_size
        except OSError as error:
            raise _absent(stored, path, error) from error
        end = offset + high - (at - size)
        if there < end:
            found.append(f"its external file {path!r} has {there} bytes, the read needs {end}: the rest is zeros")
    return tuple(found)


def _span(info: DatasetInfo, box: Box) -> tuple[int, int]:
    """Bytes of the dataset from the first element of the box to its last."""
    steps = c_strides(info.shape, info.dtype.itemsize)
    low = sum(at * step for at, step in zip(box.start, steps, strict=True))
    return low, sum((at - 1) * step for at, step in zip(box.stop, steps, strict=True)) + info.dtype.itemsize


def _absent(stored: Stored, path: str, error: OSError) -> Error:
    return Error(
        code="not_found" if error.errno == errno.ENOENT else "io_error",
        operation=f"read dataset {stored.info.name!r} of",
        file=stored.home,
        cause=f"its elements lie in the external file {path!r}: {error.strerror}",
        advice="put that file there, or name its folder in HDF5_EXTFILE_PREFIX",
        system_code=error.errno or 0,
    )


def _prefix(dataset: h5d.DatasetID, home: str) -> str:
    given = os.environ.get("HDF5_EXTFILE_PREFIX") or os.fsdecode(dataset.get_access_plist().get_efile_prefix())
    origin = str(Path(home).absolute().parent)
    return given.replace("${ORIGIN}", origin, 1) if given.startswith("${ORIGIN}") else given


def _holds(path: str, size_bytes: int) -> bool:
    try:
        return Path(path).stat().st_size >= size_bytes
    except OSError:
        return False
