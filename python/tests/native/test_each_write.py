"""Files that grow over hundreds of steps, cut after each of their writes: a long one of test_growing."""

from pathlib import Path

import pytest
from hdf5_replay import check_h5py, check_netcdf4, recorded, replayed


@pytest.mark.parametrize(("half_entries", "at_once"), [(2, 1), (1, 7), (0, 1)])
def test_stock_readers_find_each_published_step(tmp_path: Path, half_entries: int, at_once: int) -> None:
    writes = recorded(tmp_path / "grown.nc", steps=140, half_entries=half_entries, at_once=at_once)
    for i, published in enumerate(replayed(writes, tmp_path / "cut.nc")):
        check_h5py(tmp_path / "cut.nc", published)
        if i % 7 == 0:
            check_netcdf4(tmp_path / "cut.nc", published)
