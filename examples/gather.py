"""Random rows of a file that is larger than the cache in device memory, gathered by the GPU itself, checked and timed.

    python gather.py [rows.bin] [--megabytes 64] [--device cuda:0]

The file is made first when there is none. Without a GPU the same is done by threads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import penstock as ps

WIDTH = 128  # float32: rows of 512 bytes


def make(path: Path, rows: int) -> None:
    """Row r holds r, r + 1/128, r + 2/128, ..."""
    with path.open("wb") as file:
        for start in range(0, rows, 65536):
            first = np.arange(start, min(start + 65536, rows), dtype="f4")[:, None]
            (first + np.arange(WIDTH, dtype="f4") / WIDTH).tofile(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--megabytes", type=int, default=64, help="of the file, when it is made")
    parser.add_argument("--rows", type=int, help="to gather, twice: a million, or 10,000 without a GPU")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options.path or Path(folder) / "rows.bin")
        if not path.exists():
            make(path, (options.megabytes << 20) // (4 * WIDTH))
        try:
            gather(path, options)
        except ps.Error as error:
            raise SystemExit(str(error)) from None


def gather(path: Path, options: argparse.Namespace) -> None:
    cache_bytes = max(1 << 20, path.stat().st_size // 4)
    with ps.gpu.open(path, "float32", (-1, WIDTH), device=options.device, cache_bytes=cache_bytes) as rows:
        if not len(rows):
            raise SystemExit(f"{path} has no rows")
        count = options.rows or (10_000 if rows.context.device["emulated"] else 1_000_000)
        wanted = np.random.default_rng(1).integers(0, len(rows), count)
        for turn in ("first", "second"):
            began = time.perf_counter()
            found = rows.gather(wanted)  # on the device: cupy.asarray(found), torch.from_dlpack(found)
            seconds = time.perf_counter() - began
            rate = f"{len(wanted) / seconds / 1e6:.3f} M rows/s, {found.nbytes / seconds / 1e9:.3f} GB/s"
            print(f"{turn} gather of {len(wanted)} of {len(rows)} rows to {found.device}: {rate}")
        expected = wanted.astype("f4")[:, None] + np.arange(WIDTH, dtype="f4") / WIDTH
        if not np.array_equal(found.to_numpy(), expected):
            raise SystemExit("rows differ from those of the file")
        print("every row is right")
        stats = rows.stats()
        print(", ".join(f"{stats[name]} {name}" for name in ("hits", "misses", "joined", "evictions", "failures")))
        for source in ("mapping", "buffered", "direct"):
            served = stats["served"][source]
            if served["requests"]:
                print(f"{served['requests']} pages, {served['bytes']} bytes from the file by {source}")
        if stats["served"]["gpu_pages"]:
            print(f"{stats['served']['gpu_pages']} pages from the file's mapping by the GPU itself")
        print(f"{stats['device_bytes'] >> 20} MiB of device memory, {stats['pinned_bytes'] >> 20} MiB page-locked")


if __name__ == "__main__":
    main()
