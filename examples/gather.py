"""Random rows of a file that is larger than the cache in device memory, gathered by the GPU itself, timed, and compared
with the bytes of the file.

    python gather.py [rows.bin] [--width 128] [--rows 1000000] [--device cuda:0]

Any file of float32 will do whose size is a whole number of rows. Without one, or with --make for a new one of that
name, the script makes its own. Without a GPU the same is done by threads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

PIECE = 65536  # rows made or compared at once
MOST = 1 << 31  # of what is counted on the command line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", help="of the file; left out: a temporary one is made")
    parser.add_argument("--make", action="store_true", help="make the file, which must not be there yet")
    parser.add_argument("--megabytes", type=int, default=64, help="of the file, when it is made")
    parser.add_argument("--width", type=int, default=128, help="float32 in a row")
    parser.add_argument("--rows", type=int, help="to gather, twice: a million, 10,000 without a GPU, up to 1 GiB")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    for name in ("megabytes", "width", "rows"):
        given = getattr(options, name)
        if given is not None and not 1 <= given <= MOST:
            raise SystemExit(f"--{name} is {given}; give a number from 1 to {MOST}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(options.path or Path(folder) / "rows.bin")
            if options.make or options.path is None:
                if 4 * options.width > options.megabytes << 20:
                    raise SystemExit(f"a row of --width {options.width} is more than --megabytes {options.megabytes}")
                make(path, options.width, (options.megabytes << 20) // (4 * options.width))
            elif not path.exists():
                raise SystemExit(f"{path}: there is no such file; --make makes it")
            gather(path, options)
    except MemoryError as error:
        raise SystemExit(f"no memory: {error}; give fewer --rows") from None
    except OSError as error:
        raise SystemExit(f"{error.filename or options.path or 'rows.bin'}: {error.strerror or error}") from None
    except ps.Error as error:
        raise SystemExit(str(error)) from None


def make(path: Path, width: int, rows: int) -> None:
    """Row r holds r, r + 1/width, r + 2/width, ... What is there already stays as it is."""
    with path.open("xb") as file:
        try:
            for start in range(0, rows, PIECE):
                first = np.arange(start, min(start + PIECE, rows), dtype="f4")[:, None]
                (first + np.arange(width, dtype="f4") / width).tofile(file)
        except BaseException:
            path.unlink()  # half a file would be taken for a whole one
            raise


def gather(path: Path, options: argparse.Namespace) -> None:
    cache_bytes = max(1 << 20, path.stat().st_size // 4)
    with ps.gpu.open(path, "float32", (-1, options.width), device=options.device, cache_bytes=cache_bytes) as rows:
        if not len(rows):
            raise SystemExit(f"{path} has no rows")
        usual = 10_000 if rows.context.device["emulated"] else 1_000_000
        count = options.rows or min(usual, max(1, (1 << 30) // (4 * options.width)))
        wanted = np.random.default_rng(1).integers(0, len(rows), count)
        for turn in ("first", "second"):
            began = time.perf_counter()
            found = rows.gather(wanted)  # on the device: cupy.asarray(found), torch.from_dlpack(found)
            seconds = time.perf_counter() - began
            rate = f"{len(wanted) / seconds / 1e6:.3f} M rows/s, {found.nbytes / seconds / 1e9:.3f} GB/s"
            print(f"{turn} gather of {len(wanted)} of {len(rows)} rows to {found.device}: {rate}")
        compare(path, wanted, found.to_numpy())
        print("every row is right")
        tell(rows.stats())


def compare(path: Path, wanted: np.ndarray, found: np.ndarray) -> None:
    """Of found[i] with row wanted[i] of the file, bit by bit: floats may be NaN. The system reads the file here."""
    there = np.memmap(path, "u4", "r").reshape(-1, found.shape[1])
    for start in range(0, len(wanted), PIECE):
        numbers, bits = wanted[start : start + PIECE], found[start : start + PIECE].view("u4")
        wrong = np.flatnonzero((there[numbers] != bits).any(axis=1))
        if wrong.size:
            raise SystemExit(f"rows differ from those of {path}: row {numbers[wrong[0]]}, and perhaps more")


def tell(stats: dict[str, Any]) -> None:
    """What the cache counted, and who served it."""
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
