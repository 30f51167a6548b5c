"""What a write that need not be durable takes, by its size and way: python write_sizes.py [folder] [largest MiB]

Prints medians in us, of new files and over what a file has: os.pwrite, Penstock as it chooses (auto), and three paths
that are named. The ways take turns by whole rounds, with a sync between them: a page cache that is full slows all down.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import penstock as ps

WAYS = ("pwrite", "auto", "buffered", "direct", "uring")
ROUND_BYTES = 256 << 20


def main(folder: Path, most_bytes: int) -> None:
    print(f"{'bytes':>10} {'file':>5}" + "".join(f"{way:>10}" for way in WAYS))
    context = ps.Context("host")
    size = 1 << 19
    while size <= most_bytes:
        values = np.random.default_rng(0).integers(0, 255, size, "u1")
        for kind in ("new", "old"):
            taken = [microseconds(context, folder, values, (kind, way)) for way in WAYS]
            print(f"{size:>10} {kind:>5}" + "".join(f"{one:>10.1f}" for one in taken), flush=True)
        size *= 2


def microseconds(context: ps.Context, folder: Path, values: np.ndarray, case: tuple[str, str]) -> float:
    kind, way = case
    os.sync()
    taken = []
    for number in range(max(3, min(24, ROUND_BYTES // values.nbytes))):
        name = folder / f"file{number if kind == 'new' else 0}"
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT)
        with context.open(name, write=True) as file:
            began = time.perf_counter()
            if way == "pwrite":
                os.pwrite(descriptor, values.data, 0)  # noqa: TID251 - it is what is compared
            elif way == "auto":
                file.write(values)
            else:
                file.write(values, path=way)
            taken.append(time.perf_counter() - began)
        os.close(descriptor)
    for name in folder.iterdir():
        name.unlink()
    return statistics.median(taken) * 1e6


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as made:
        main(Path(made), int((sys.argv[2:] or ["64"])[0]) << 20)
