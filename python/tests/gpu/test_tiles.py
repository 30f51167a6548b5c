"""Kernels that take tiles of a stored array find what lies in plain memory.

On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one, where a warp is a thread.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from array_rig import filled

import penstock as ps
from penstock._shared import shared_context
from penstock_bench import _measure

DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")


@pytest.mark.parametrize("tile", [1, 4, 36, 1024, 3000, 4096, 32768])
def test_kernels_find_the_elements_by_tiles_of_any_size(tmp_path: Path, tile: int) -> None:
    """Tiles of less than a page, of several, and of pages that are not there yet: the sum is that of plain memory."""
    items = 98304 if tile == 32768 else 120000 // max(tile, 32) * max(tile, 32)
    values = np.random.default_rng(tile).integers(0, 4, items).astype(np.float32)
    values.tofile(tmp_path / "x.bin")
    context = shared_context(DEVICE)
    memory = filled(context, values)
    how = {"rounds": 2, "tile": tile, "resident": 2}
    _, plain = _measure.time_loads(context._raw, 0, memory, items, **how)
    assert plain == 2 * values.sum(dtype=np.float64)
    for cache_bytes in (1 << 20, 64 << 10):
        with ps.gpu.open(tmp_path / "x.bin", "float32", (-1,), device=DEVICE, cache_bytes=cache_bytes) as array:
            for _ in range(2):  # of which the first finds nothing in the cache
                _, cached = _measure.time_loads(context._raw, array.ref, None, items, **how)
                assert cached == plain, cache_bytes
