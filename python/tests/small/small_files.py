"""What the tests of small reads read: the same elements in files of many formats, stored in many ways."""

from __future__ import annotations

import numpy as np

import penstock

SHAPE = (40, 6, 10)


def values(dtype: str = "<f8") -> np.ndarray:
    return np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)


DATASETS = [
    ("x.h5", "contiguous", "<f8"),
    ("x.h5", "foreign", ">i4"),
    ("x.h5", "chunked", "<f8"),
    ("x.h5", "packed", ">i4"),
    ("x.h5", "summed", "<f8"),
    ("c.npy", None, "<f8"),
    ("f.npy", None, ">f4"),
    ("x.nc", "contiguous", "<f8"),
    ("x.nc3", "contiguous", "<f8"),
    ("x.safetensors", "contiguous", "<f8"),
    ("x.zarr", "contiguous", "<f8"),
]


def find(file: penstock.DataFile, name: str | None) -> penstock.Dataset:
    return file[name or next(iter(file))]
