"""A disk that gets full while chunks are compressed: the error says so, the older file stays, and nothing is left."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mounts import Mounted

import penstock as ps

pytest.importorskip("h5py")

ROWS, CHUNKS = 512, 40  # chunks of 64 KiB that no codec shortens: 2.5 MiB


def values(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 62, (CHUNKS * ROWS, 16))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as place:
        yield place


def at_once(path: Path, codec: Any) -> None:
    ps.save(path, {"x": values()}, device="host", compression=codec, chunk_shape=(ROWS, 16))


def one_by_one(path: Path, codec: Any) -> None:
    array = values()
    with ps.create(path, device="host") as file:
        one = file.create_dataset("x", array.shape, array.dtype, chunk_shape=(ROWS, 16), compression=codec)
        for start in range(0, len(array), ROWS):
            one[start : start + ROWS] = array[start : start + ROWS]


def by_append(path: Path, codec: Any) -> None:
    array = values()
    with ps.create(path, device="host") as file:
        layout: Any = {"chunk_shape": (ROWS, 16), "compression": codec, "resizable": (None, 16)}
        file.create_dataset("x", (0, 16), array.dtype, **layout)
        for start in range(0, len(array), 4 * ROWS):
            file["x"].append(array[start : start + 4 * ROWS])


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])
@pytest.mark.parametrize("suffix", ["h5", "nc", "zarr"])
@pytest.mark.parametrize("write", [at_once, one_by_one, by_append])
def test_a_disk_that_gets_full_keeps_the_older_file(write: Any, suffix: str, codec: str, small: Path) -> None:
    path, older = small / f"x.{suffix}", np.arange(1000)
    ps.save(path, {"x": older}, device="host", compression=codec)
    before = sorted(one.name for one in small.rglob("*"))
    with pytest.raises(ps.Error) as caught:
        write(path, codec)
    assert caught.value.system_code == errno.ENOSPC
    assert str(small) in str(caught.value), "the error names a file"
    assert sorted(one.name for one in small.rglob("*")) == before, "nothing is left behind"
    assert np.array_equal(np.asarray(ps.load(path, device="host")["x"]), older)
    newer = np.arange(2000)
    ps.save(path, {"x": newer}, device="host", compression=codec)
    assert np.array_equal(np.asarray(ps.load(path, device="host")["x"]), newer), "what fits is written again"
