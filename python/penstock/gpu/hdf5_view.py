"""Memory of a GPU for h5py's `read_direct` and `write_direct`, with HDF5's bytes moved by the driver of Penstock.

h5py takes NumPy arrays only, and HDF5 converts, fills and scatters elements with the CPU: on memory of a GPU the
process then ends with a segmentation fault, before the driver is asked. What must stay true: `hdf5_view` refuses what
HDF5 would do so.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from penstock._error import Error


def hdf5_view(array: Any, dataset: Any) -> np.ndarray[Any, Any]:
    """The memory of `array` (CuPy's, PyTorch's: with `__cuda_array_interface__`) as h5py takes it, for `dataset`.

    Use it in `dataset.read_direct(hdf5_view(array, dataset))` and nothing else: the CPU cannot read it. Raises Error
    where HDF5 would touch the memory with the CPU.
    """
    facts = array.__cuda_array_interface__
    _check(facts, dataset)
    return np.asarray(_AsOfTheHost(facts))


class _AsOfTheHost:
    def __init__(self, facts: dict[str, Any]) -> None:
        self.__array_interface__ = {name: facts[name] for name in ("shape", "typestr", "data")} | {"version": 3}


def _check(facts: dict[str, Any], dataset: Any) -> None:
    dtype = np.dtype(facts["typestr"])
    strides = facts.get("strides")
    nearest = dtype.itemsize
    packed: list[int] = []
    for extent in reversed(facts["shape"]):
        packed.insert(0, nearest)
        nearest *= extent
    if os.environ.get("HDF5_DRIVER") != "penstock":
        _refuse(dataset, "HDF5 moves its bytes by another driver", "set the variables of penstock vfd-path")
    stored = dataset.id  # its dtype is kept; that of h5py's Dataset is asked anew, in 5 us or more
    if dtype != stored.dtype:
        _refuse(dataset, f"HDF5 would convert {stored.dtype} and {dtype} with the CPU", "use the same dtype")
    if _has_fewer_bits(stored, dtype):
        cause = f"its integers have fewer bits than {dtype}, and HDF5 would convert them with the CPU"
        _refuse(dataset, cause, "read it into the host")
    if strides is not None and tuple(strides) != tuple(packed):
        _refuse(dataset, "the array has gaps or another order", "use a C-contiguous array")
    chunks = dataset.chunks  # of a property list that h5py keeps
    if not chunks and dataset.is_virtual:
        _refuse(dataset, "it is made of datasets of other files", "read those")
    if stored.get_storage_size() == 0 or (chunks and stored.get_num_chunks() < _chunks(stored.shape, chunks)):
        _refuse(dataset, "parts of it are not stored, and HDF5 would fill them with the CPU", "write all of it first")


def _has_fewer_bits(stored: Any, dtype: np.dtype[Any]) -> bool:
    """Of integers, which NumPy knows by their bytes only. The question takes some microseconds."""
    precision = getattr(stored.get_type(), "get_precision", None) if dtype.kind in "iu" else None
    return precision is not None and precision() < 8 * dtype.itemsize


def _chunks(shape: tuple[int, ...], chunks: tuple[int, ...]) -> int:
    return math.prod(-(-extent // chunk) for extent, chunk in zip(shape, chunks, strict=True))


def _refuse(dataset: Any, cause: str, advice: str) -> None:
    file = str(dataset.file.filename)
    raise Error(code="unsupported", operation=f"view memory for {dataset.name}", file=file, cause=cause, advice=advice)
