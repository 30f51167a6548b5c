"""Stored arrays for tests: rows of float32 through a cache that is smaller than their file, compared with NumPy.

On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from array_rig import filled

import penstock as ps
from penstock._shared import shared_context
from penstock.gpu import StoredArray

DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")
ROWS, WIDTH = 3000, 33  # rows of 132 bytes: some straddle pages


def make(path: Path, shape: Any = (-1, WIDTH), **options: Any) -> StoredArray:
    """Through a cache of a quarter of the file."""
    return ps.gpu.open(path, "float32", shape, **({"device": DEVICE, "cache_bytes": 96 << 10} | options))


def equal(array: ps.Array, expected: np.ndarray) -> bool:
    assert array.shape == expected.shape and array.dtype == expected.dtype
    return np.array_equal(array.to_numpy(), expected)


def on_device(values: Any) -> ps.Array:
    return filled(shared_context(DEVICE), np.ascontiguousarray(values))
