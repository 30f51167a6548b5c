"""What readers find in a file of which only the first writes were done: the log that the samples program leaves beside
a file that grows, replayed into another file, and stock readers that look at it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import hdf5_samples
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4", reason="what netCDF-C reads is asked of the package netCDF4")

HEAD = struct.Struct("<QQQ")


@dataclass(frozen=True)
class Write:
    """One line of the log."""

    kind: str  # w metadata, d data, b barrier, p from here on readers see `offset` steps
    offset: int
    bytes: bytes


def recorded(path: Path, **options: object) -> list[Write]:
    """The writes of a file that the samples program made at `path`."""
    hdf5_samples.run("grow", path, *(f"{name}={value}" for name, value in options.items()))
    log = Path(f"{path}.log").read_bytes()
    writes = []
    at = 0
    while at < len(log):
        kind, offset, length = HEAD.unpack_from(log, at)
        at += HEAD.size
        writes.append(Write(chr(kind), offset, log[at : at + length]))
        at += length
    return writes


def replayed(writes: list[Write], path: Path) -> Iterator[int]:
    """Does one write after the other, from the first moment on at which the file was made. Yields the number of
    steps that were published by then.
    """
    published = -1
    with path.open("wb", buffering=0) as file:
        for write in writes:
            if write.kind == "p":
                published = write.offset
            elif write.kind != "b":
                file.seek(write.offset)
                file.write(write.bytes)
            if published >= 0 and write.kind != "b":
                yield published


def expected(name: str, number: int, steps: int, shape: tuple[int, ...]) -> np.ndarray:
    """Element i of variable v at step s is 1000 s + 10 v + i."""
    each = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    return 1000 * np.arange(steps).reshape(-1, *[1] * len(shape)) + 10 * number + each


GROWING = {"time": 0, "time_bnds": 1, "field0": 6, "field1": 7, "field2": 8}


def check_h5py(path: Path, published: int) -> None:
    with h5py.File(path, "r") as file:
        for name, number in GROWING.items():
            data = file[name]
            assert len(data) >= published, name
            np.testing.assert_array_equal(data[:], expected(name, number, len(data), data.shape[1:]), err_msg=name)
            assert data.id.get_num_chunks() >= published


def check_netcdf4(path: Path, published: int) -> None:
    with netCDF4.Dataset(path) as file:
        steps = len(file.dimensions["time"])
        assert steps >= published
        for name, number in GROWING.items():
            got = file[name][:]
            assert not np.ma.is_masked(got), name
            np.testing.assert_array_equal(got, expected(name, number, steps, got.shape[1:]), err_msg=name)
