"""Files of many formats with the same elements, made once, and one of them opened."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_files import SHAPE, values

import penstock


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with the same elements, stored in many ways."""
    h5py = pytest.importorskip("h5py")
    made = tmp_path_factory.mktemp("small")
    with h5py.File(made / "x.h5", "w") as file:
        file["contiguous"] = values()
        file["foreign"] = values(">i4")
        file.create_dataset("chunked", data=values(), chunks=(3, 6, 4), maxshape=(None, 6, 10))
        file.create_dataset("packed", data=values(">i4"), chunks=(3, 6, 4), compression="gzip", shuffle=True)
        file.create_dataset("summed", data=values(), chunks=(3, 6, 4), fletcher32=True)
        file.create_dataset("holes", shape=SHAPE, dtype="<f8", chunks=(4, 6, 10), fillvalue=-1)[8:24] = values()[8:24]
    np.save(made / "c.npy", values())
    np.save(made / "f.npy", np.asfortranarray(values(">f4")))
    for suffix in ("nc", "nc3", "safetensors", "zarr"):
        with penstock.create(made / f"x.{suffix}", device="host") as file:
            file["contiguous"] = values()
    long_ago = time.time() - 60  # of a file that changed just now no decoded chunk is kept
    os.utime(made / "x.h5", (long_ago, long_ago))
    while time.time_ns() - (made / "x.h5").stat().st_ctime_ns < 2_100_000_000:
        time.sleep(0.1)
    return made


@pytest.fixture
def opened(folder: Path) -> Iterator[tuple[penstock.DataFile, penstock.Dataset]]:
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset = file["contiguous"]
        dataset[0:1]
        dataset[0:1]
        assert file._file._tally.reads == 2, "the first read and all after it are native"
        yield file, dataset
