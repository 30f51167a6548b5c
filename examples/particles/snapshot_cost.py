"""What a snapshot costs, on stable storage: Penstock beside h5py and beside plain bytes.

    python examples/particles/snapshot_cost.py [FOLDER] [--mib 512] [--rounds 5]

A snapshot of gas particles in host memory: positions, velocities, masses, numbers. Ways take turns, and the median of
their rounds is told, in MB/s of the fields; then the same for a snapshot of 1 KiB, in microseconds. "as SWIFT" is
chunks of 8192 rows with Fletcher-32. Every file is on stable storage when its time ends, and h5py reads some of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import penstock

PARTICLE_BYTES = 48
CHUNK_ROWS = 8192
CONTEXT = penstock.Context("host")
Fields = dict[str, np.ndarray]


def particles(count: int) -> Fields:
    draw = np.random.default_rng(1)
    group = "PartType0/"
    return {
        group + "Coordinates": draw.random((count, 3)),
        group + "Velocities": draw.random((count, 3), "float32"),
        group + "Masses": draw.random(count, "float32"),
        group + "ParticleIDs": np.arange(count, dtype="uint64"),
    }


def plain(name: Path, fields: Fields) -> None:
    """The same bytes one behind the other, by the engine alone."""
    with CONTEXT.create(name, durable=True) as file:
        at = 0
        for array in fields.values():
            file.write(array, at)
            at += array.nbytes


def by_penstock(name: Path, fields: Fields, **options: object) -> None:
    penstock.Snapshot(name, fields, context=CONTEXT, durable=True, **options).write()  # type: ignore[arg-type]


def as_swift(name: Path, fields: Fields) -> None:
    by_penstock(name, fields, chunk_rows=CHUNK_ROWS, checksums=True)


def by_h5py(name: Path, fields: Fields, **options: object) -> None:
    new = name.with_suffix(".new")
    with h5py.File(new, "w") as file:
        for path, array in fields.items():
            chunks = (min(CHUNK_ROWS, len(array)), *array.shape[1:]) if options else None
            file.create_dataset(path, data=array, chunks=chunks, **options)
    descriptor = os.open(new, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    new.rename(name)


def by_h5py_as_swift(name: Path, fields: Fields) -> None:
    by_h5py(name, fields, fletcher32=True)


WAYS: dict[str, Callable[[Path, Fields], None]] = {
    "plain bytes": plain,
    "Penstock": by_penstock,
    "Penstock, as SWIFT": as_swift,
    "h5py": by_h5py,
    "h5py, as SWIFT": by_h5py_as_swift,
}


def measured(folder: Path, fields: Fields, rounds: int) -> dict[str, float]:
    """Seconds of each way."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, write in WAYS.items():
            name = folder / "cost.hdf5"
            name.unlink(missing_ok=True)
            began = time.perf_counter()
            write(name, fields)
            seconds[way].append(time.perf_counter() - began)
            if way != "plain bytes":
                check(name, fields)
    (folder / "cost.hdf5").unlink()
    return {way: statistics.median(one) for way, one in seconds.items()}


def check(name: Path, fields: Fields) -> None:
    with h5py.File(name) as file:
        for path, array in fields.items():
            stored: Any = file[path]
            assert stored.shape == array.shape, path
            np.testing.assert_array_equal(stored[-100:], array[-100:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=".", type=Path)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    large, small = particles((asked.mib << 20) // PARTICLE_BYTES), particles(1024 // PARTICLE_BYTES)
    print(f"{'way':20} {asked.mib:6} MiB, MB/s   1 KiB, us")
    rates, times = measured(asked.folder, large, asked.rounds), measured(asked.folder, small, 20 * asked.rounds)
    for way in WAYS:
        bytes = sum(array.nbytes for array in large.values())
        print(f"{way:20} {bytes / rates[way] / 1e6:16.0f} {times[way] * 1e6:11.0f}")


if __name__ == "__main__":
    main()
