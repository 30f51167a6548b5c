"""What HDF5 costs with Penstock's driver and without: python hdf5_driver_cost.py [MiB] [repeats] [folder] [--judge]

Prints medians of repeats, in which the two take turns, each in a new process. Files are in the page cache, and all
bytes are compared. With CuPy and a GPU there are rows of its memory too: without the driver h5py reads into memory of
the host, from which CuPy copies. Rows with H5Dread call that function of h5py's library, as programs in C do.

With --judge, what is promised of a row is held against the least of its times, which other programs disturb least; a
promise that is missed ends it with 1.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

PIECE = 16384  # elements of 4 bytes: 64 KiB
PIECES = 200
TABLE = (200_000, 4)
TILE = 256  # elements of a side: 256 KiB, which fits HDF5's chunk cache


# Promised: at most so many times as long as without the driver, and GB/s into a GPU of what lies in the page cache.
# A clock and a scheduler are no part of the promise: NOISE of it is let pass.
MOST_TIMES = {"200 of 64 KiB, H5Dread": 1.0, "three of four columns": 1.5}
LEAST_GB_PER_S, OF_AT_LEAST_MIB = 35.0, 256
NOISE = 0.1


def main(mebibytes: float, repeats: int, folder: Path, judge: bool) -> int:
    file = folder / "x.h5"
    make(file, max(PIECE, int(mebibytes * 2**20) // 4))
    ask = [sys.executable, "-m", "penstock", "vfd-path"]
    variables = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    taken: dict[str, dict[str, list[float]]] = {"without": {}, "with": {}}
    for _ in range(repeats):
        for way, of_way in taken.items():
            for name, seconds in measured(file, variables if way == "with" else ""):
                of_way.setdefault(name, []).append(seconds)
    print(f"{'':32} {'without, ms':>12} {'with, ms':>12} {'times':>7}")
    for name, times in taken["without"].items():
        without, with_it = (statistics.median(one) * 1e3 for one in (times, taken["with"][name]))
        print(f"{name:32} {without:12.2f} {with_it:12.2f} {with_it / without:7.2f}")
    broken = missed(mebibytes, taken) if judge else []
    if judge:
        print(f"BROKEN: {'; '.join(broken)}" if broken else "as promised")
    return 1 if broken else 0


def missed(mebibytes: float, taken: dict[str, dict[str, list[float]]]) -> list[str]:
    """What is promised of rows and not kept."""
    broken = []
    for name, seconds_with in taken["with"].items():
        least, promised = min(seconds_with), MOST_TIMES.get(name.rpartition(", ")[0])
        times = least / min(taken["without"][name])
        if promised is not None and times > promised * (1 + NOISE):
            broken.append(f"{name} took {times:.2f} times as long, promised {promised}")
        rate = mebibytes * 2**20 / least / 1e9
        if name == "all, contiguous, GPU" and mebibytes >= OF_AT_LEAST_MIB and rate < LEAST_GB_PER_S:
            broken.append(f"{name} {rate:.1f} GB/s, promised {LEAST_GB_PER_S}")
    return broken


def make(file: Path, elements: int) -> None:
    chance = np.random.default_rng(0)
    with h5py.File(file, "w") as target:
        values = chance.random(elements, dtype="f4")
        target["whole"] = values
        target["written"] = values
        target.create_dataset("chunks", data=values, chunks=(min(elements, 1 << 18),))
        target["table"] = chance.random(TABLE, dtype="f4")
        side = max(TILE, int((elements // 2) ** 0.5) // TILE * TILE)  # half as large as the others
        target.create_dataset("tiles", data=chance.random((side, side), dtype="f4"), chunks=(TILE, TILE))


def measured(file: Path, variables: str) -> Iterator[tuple[str, float]]:
    """The rows of one process, whose environment a shell sets."""
    command = [sys.executable, __file__, "--process", str(file)]
    script = f'{variables}\nexec "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", *command], stdout=subprocess.PIPE, text=True, check=True)
    yield from json.loads(done.stdout).items()


def process(name: str) -> None:
    rows: dict[str, float] = {}
    gpu = GpuMemory.of_this_machine(bool(os.environ.get("HDF5_DRIVER")))
    places = [("host", HostMemory()), *([("GPU", gpu)] if gpu is not None else [])]
    with h5py.File(name, "r+") as file:
        for place, memory in places:
            rows |= timed_rows(file, place, memory)
            rows |= timed_tiles(file, f"tiles, {place}", memory)
    with h5py.File(name, "r", rdcc_nbytes=0) as file:
        for place, memory in places:
            rows |= timed_tiles(file, f"tiles, no cache, {place}", memory)
    print(json.dumps(rows))


class HostMemory:
    """Of NumPy."""

    def empty(self, shape: tuple[int, ...]) -> Any:
        return np.zeros(shape, "f4")

    def read(self, dataset: h5py.Dataset, array: Any, part: Any) -> None:
        dataset.read_direct(array, part)

    def read_piece(self, call: "DatasetRead", array: Any, start: int) -> None:
        call(array.ctypes.data, start)

    def write(self, dataset: h5py.Dataset, array: Any) -> None:
        dataset.write_direct(array)

    def to_host(self, array: Any) -> np.ndarray:
        return np.asarray(array)


class GpuMemory:
    """Of CuPy."""

    def __init__(self, cupy: Any, driver: bool) -> None:
        self.cupy, self.driver = cupy, driver
        self.bounce = np.zeros(PIECE, "f4")

    @staticmethod
    def of_this_machine(driver: bool) -> "GpuMemory | None":
        try:
            import cupy

            return GpuMemory(cupy, driver) if cupy.cuda.runtime.getDeviceCount() else None
        except Exception:  # no CuPy, no driver of CUDA, no GPU: each has its own
            return None

    def empty(self, shape: tuple[int, ...]) -> Any:
        return self.cupy.zeros(shape, "f4")

    def read(self, dataset: h5py.Dataset, array: Any, part: Any) -> None:
        if not self.driver:
            array.set(dataset[part])
            return
        from penstock.gpu.hdf5_view import hdf5_view

        dataset.read_direct(hdf5_view(array, dataset), part)

    def read_piece(self, call: "DatasetRead", array: Any, start: int) -> None:
        if self.driver:
            call(array.data.ptr, start)
            return
        call(self.bounce.ctypes.data, start)
        runtime = self.cupy.cuda.runtime
        runtime.memcpy(array.data.ptr, self.bounce.ctypes.data, self.bounce.nbytes, runtime.memcpyHostToDevice)

    def write(self, dataset: h5py.Dataset, array: Any) -> None:
        if not self.driver:
            dataset.write_direct(array.get())
            return
        from penstock.gpu.hdf5_view import hdf5_view

        dataset.write_direct(hdf5_view(array, dataset))

    def to_host(self, array: Any) -> np.ndarray:
        return np.asarray(array.get())


class DatasetRead:
    """H5Dread of one piece of a dataset, of the library that h5py has loaded."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        names = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libhdf5" in line}
        library = ctypes.CDLL(next(name for name in names if "_hl" not in name))
        self._read = library.H5Dread
        self._read.argtypes = [ctypes.c_int64] * 5 + [ctypes.c_void_p]
        self._dataset, self._type = dataset.id, h5py.h5t.NATIVE_FLOAT
        self._file_space = dataset.id.get_space()
        self._memory_space = h5py.h5s.create_simple((PIECE,))

    def __call__(self, memory: int, start: int) -> None:
        self._file_space.select_hyperslab((start,), (PIECE,))
        spaces = (self._memory_space.id, self._file_space.id)
        if self._read(self._dataset.id, self._type.id, *spaces, 0, memory) < 0:
            raise OSError("H5Dread failed")


def timed_rows(file: Any, place: str, memory: Any) -> Iterator[tuple[str, float]]:
    whole, table = file["whole"][...], file["table"][...]
    cases: list[tuple[str, str, Any, np.ndarray]] = [
        ("all, contiguous", "whole", np.s_[:], whole),
        ("all, in chunks", "chunks", np.s_[:], whole),
        ("three of four columns", "table", np.s_[:, :3], table[:, :3]),
    ]
    for name, dataset, part, expected in cases:
        array = memory.empty(expected.shape)
        memory.read(file[dataset], array, part)  # the first has the page faults
        yield f"{name}, {place}", seconds(partial(memory.read, file[dataset], array, part))
        assert np.array_equal(memory.to_host(array), expected), name
    array, pieces = memory.empty((PIECE,)), [np.s_[at : at + PIECE] for at in starts(len(whole))]
    dataset = file["whole"]
    taken = seconds(lambda: [memory.read(dataset, array, piece) for piece in pieces])
    yield f"{len(pieces)} of 64 KiB, {place}", taken
    assert np.array_equal(memory.to_host(array), whole[pieces[-1]])
    array, call = memory.empty((PIECE,)), DatasetRead(dataset)
    taken = seconds(lambda: [memory.read_piece(call, array, piece.start) for piece in pieces])
    yield f"{len(pieces)} of 64 KiB, H5Dread, {place}", taken
    assert np.array_equal(memory.to_host(array), whole[pieces[-1]])
    source = memory.empty(whole.shape)
    source[...] = memory.cupy.asarray(whole) if place == "GPU" else whole
    yield f"all written, {place}", seconds(lambda: (memory.write(file["written"], source), file.flush()))
    assert np.array_equal(file["written"][...], whole)


def timed_tiles(file: Any, name: str, memory: Any) -> Iterator[tuple[str, float]]:
    """All of a dataset whose chunks have short rows, with HDF5's chunk cache or without."""
    dataset = file["tiles"]
    array = memory.empty(dataset.shape)
    memory.read(dataset, array, np.s_[:])  # the first has the page faults
    yield name, seconds(lambda: memory.read(dataset, array, np.s_[:]))
    assert np.array_equal(memory.to_host(array), dataset[...]), name


def starts(elements: int) -> list[int]:
    return [number * PIECE % (elements - PIECE + 1) for number in range(PIECES)]


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    if sys.argv[1:2] == ["--process"]:
        process(sys.argv[2])
    else:
        words = [word for word in sys.argv[1:] if word != "--judge"]
        size, count = float((words or ["128"])[0]), int((words[1:] or ["5"])[0])
        with tempfile.TemporaryDirectory(dir=words[2] if len(words) > 2 else None) as made:
            code = main(size, count, Path(made), "--judge" in sys.argv)
        sys.exit(code)
