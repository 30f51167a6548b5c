"""Penstock reads what each format's own library reads, bit by bit: every type x layout x filter x selection.

Hypothesis draws datasets, the library writes and reads them, and each selection of Penstock is compared with NumPy's of
the library's array. PENSTOCK_STOCK_EXAMPLES is how many datasets of each format; without it a few, always the same.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings, strategies as st
from stock_kit.cases import Case, cases, selections, taken
from stock_kit.stores import NAME, STORES, Store

import penstock as ps

_EXAMPLES = os.environ.get("PENSTOCK_STOCK_EXAMPLES")
_SELECTIONS = 6
_LIBRARIES = {"hdf5": "h5py", "netcdf4": "netCDF4", "netcdf3": "netCDF4", "zarr2": "zarr", "zarr3": "zarr"}

budget = settings(
    deadline=None,
    derandomize=_EXAMPLES is None,
    max_examples=int(_EXAMPLES or 25),
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def same_bits(found: Any, expected: np.ndarray, told: object) -> None:
    got = np.asarray(found)
    native = expected.dtype if expected.dtype.names else expected.dtype.newbyteorder("=")
    assert got.shape == expected.shape, told
    assert got.dtype == native, told
    assert got.tobytes() == np.ascontiguousarray(expected.astype(native)).tobytes(), told


def _same_members(dataset: Any, expected: np.ndarray, case: Case) -> None:
    for name in expected.dtype.names or ():
        if expected[name].dtype.names is None:
            same_bits(dataset[name][...], expected[name], (case, name))


def _compare(store: Store, case: Case, data: Any, covered: Counter[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{store.suffix}"
        store.write(path, case)
        expected = store.read(path)
        with ps.open(path, device="host") as file:
            dataset = file["data" if store.format == "npy" else NAME]
            assert dataset.shape == expected.shape
            same_bits(dataset[...], expected, case)
            _same_members(dataset, expected, case)
            for _ in range(_SELECTIONS):
                picked = data.draw(selections(expected.shape))
                same_bits(dataset[picked.index], taken(expected, picked.index), (case, picked))
                covered[store.format, "selection", picked.kind] += 1
    for aspect in ("type", "layout", "filter", "variant", "written"):
        covered[store.format, aspect, str(getattr(case, aspect))] += 1
    event(f"{store.format}: {case.layout}, {case.filter}")


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.format)
def test_every_selection_is_that_of_the_stock_library(store: Store, covered: Counter[tuple[str, str, str]]) -> None:
    if store.format in _LIBRARIES:
        pytest.importorskip(_LIBRARIES[store.format])

    @budget
    @given(case=cases(store), data=st.data())
    def compare(case: Case, data: Any) -> None:
        _compare(store, case, data, covered)

    compare()
