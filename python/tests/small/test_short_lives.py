"""What a program that opens a file for one row leaves behind."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest
from small_files import DATASETS, find, values

import penstock


@pytest.fixture
def no_collector() -> object:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(("file", "name", "dtype"), DATASETS)
def test_a_file_that_was_closed_is_gone_at_once(
    folder: Path, no_collector: object, file: str, name: str | None, dtype: str
) -> None:
    """It stands in no circle, which only the collector would break, with all that HDF5 holds of it."""
    opened = penstock.open(folder / file, device="host")
    with opened:
        np.testing.assert_array_equal(np.asarray(find(opened, name)[3]), values(dtype)[3])
    state = weakref.ref(opened._file)
    del opened
    assert state() is None


@pytest.mark.parametrize("stored", [one for one in DATASETS if not {"x.zarr", "packed", "summed"} & {*one}])
def test_one_row_is_read_without_what_transfers_need(folder: Path, stored: tuple[str, str | None, str]) -> None:
    """To make a mover takes longer than the read. The evidence is whole all the same, before and after the end."""
    file, name, dtype = stored
    with penstock.open(folder / file, device="host") as opened:
        np.testing.assert_array_equal(np.asarray(find(opened, name)[3]), values(dtype)[3])
        told = opened.evidence()
        assert opened._file._made_mover is None
    assert opened._file._made_mover is None
    assert opened.evidence() == told
    assert told["formats"]["requested_bytes"] == values(dtype)[3].nbytes


def test_hdf5_keeps_nothing_of_a_file_that_was_closed(folder: Path, tmp_path: Path) -> None:
    """Also what an exception, or a caller, still holds of it; so it may be written at once."""
    from h5py import h5f

    place = tmp_path / "x.h5"
    place.write_bytes((folder / "x.h5").read_bytes())
    before = h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_ALL)
    with penstock.open(place, device="host") as opened:
        opened["contiguous"][3]
        container = opened._file._source._opened.container
        held = [container.stored("chunked").dataset, container._current()]
        assert all(one.valid for one in held)
        assert h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_ALL) > before
    assert not any(one.valid for one in held)
    assert h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_ALL) == before
    with penstock.open(place, device="host", write=True) as opened:
        opened["contiguous"][3] = np.zeros((6, 10))


@pytest.mark.parametrize("stored", [one for one in DATASETS if one[0] in ("x.h5", "c.npy", "x.safetensors")])
def test_a_file_that_was_replaced_before_its_first_read_is_not_read(
    folder: Path, tmp_path: Path, stored: tuple[str, str | None, str]
) -> None:
    file, name, _ = stored
    place, other = tmp_path / file, tmp_path / f"other-{file}"
    for each in (place, other):
        each.write_bytes((folder / file).read_bytes())
        os.utime(each, (1e9, 1e9))
    with penstock.open(place, device="host") as opened:
        dataset = find(opened, name)
        other.replace(place)
        with pytest.raises(penstock.Error, match="replaced"):
            dataset[3]
