"""Files that grow over many steps, cut after each of their writes: a long one of test_growing."""

from pathlib import Path

import pytest
from hdf5_replay import check_h5py, check_netcdf4, recorded, replayed


@pytest.mark.parametrize(
    ("half_entries", "at_once", "steps", "every"),
    [(2, 1, 36, 1), (1, 7, 36, 1), (0, 1, 140, 9)],  # the nodes of indexes split early, and as they do in use
)
def test_stock_readers_find_each_published_step(
    tmp_path: Path, half_entries: int, at_once: int, steps: int, every: int
) -> None:
    writes = recorded(tmp_path / "grown.nc", steps=steps, half_entries=half_entries, at_once=at_once)
    for i, published in enumerate(replayed(writes, tmp_path / "cut.nc")):
        if i % every == 0:
            check_h5py(tmp_path / "cut.nc", published)
        if i % (7 * every) == 0:
            check_netcdf4(tmp_path / "cut.nc", published)
