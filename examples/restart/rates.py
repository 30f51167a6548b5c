"""What a restart costs beside plain writing and reading: python rates.py [MiB] [repeats] [folder]

Prints medians and the range of repeats, in which the ways take turns. Writes end with fsync: a plain file written and
renamed, h5py with a flush and an fsync, and a Restart with its checksums. Reads are of files in the page cache: a
quarter of the rows of what one process wrote, and with the checksums of all blocks that it touches.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np

import penstock as ps

MIB = float(sys.argv[1]) if len(sys.argv) > 1 else 512
REPEATS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
FOLDER = sys.argv[3] if len(sys.argv) > 3 else None


def synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def plain(folder: Path, data: np.ndarray, number: int) -> None:
    part = folder / "plain.part"
    with part.open("wb", buffering=0) as file:
        view = data.data.cast("B")
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())
    part.rename(folder / f"plain.{number % 2}")
    synced(folder)


def by_h5py(folder: Path, data: np.ndarray, number: int) -> None:
    part = folder / "h5py.part"
    with h5py.File(part, "w") as file:
        file["x"] = data
    synced(part)
    part.rename(folder / f"h5py.{number % 2}")
    synced(folder)


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main(folder: Path) -> None:
    rows = max(1, int(MIB * 2**20) // 64)
    data = np.random.default_rng(1).random((rows, 8))
    restart = ps.Restart(folder / "restart", device="host")
    writes = {
        "plain write + fsync": lambda number: plain(folder, data, number),
        "h5py + fsync": lambda number: by_h5py(folder, data, number),
        "Restart.write": lambda number: restart.write({"x": data}),
    }
    taken: dict[str, list[float]] = {name: [] for name in writes}
    for number in range(REPEATS):
        for name, write in writes.items():
            taken[name].append(seconds(partial(write, number)))
    restart.find()
    first, count = rows // 4 + 1, max(1, rows // 4)
    part = np.empty((count, 8)) if rows > 4 else data
    first = first if rows > 4 else 0
    box = {"x": ((rows, 8), (first, 0))}

    def plain_read() -> None:
        with (folder / "plain.0").open("rb", buffering=0) as file:
            file.seek(first * 64)
            file.readinto(part.data)

    reads = {"plain read": plain_read, "Restart.read": lambda: restart.read({"x": part}, boxes=box)}
    taken |= {name: [] for name in reads}
    for _ in range(REPEATS + 1):  # the first fills the page cache
        for name, read in reads.items():
            taken[name].append(seconds(read))
    for name, times in taken.items():
        times = times[1:] if name in reads else times
        moved = part.nbytes if name in reads else data.nbytes
        middle = statistics.median(times)
        spread = f"{min(times) * 1e3:.1f} to {max(times) * 1e3:.1f}"
        print(f"{name:20} {middle * 1e3:9.1f} ms ({spread}), {moved / middle / 1e6:8.1f} MB/s")


with tempfile.TemporaryDirectory(dir=FOLDER) as made:
    main(Path(made))
