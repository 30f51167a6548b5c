"""Columns of a large NPY file to the device, without the rest of it, into memory that is used again and again.

    python npy_columns.py big.npy --columns 4 [--device cuda:0]

The file is made first when there is none.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import penstock

ROWS, COLUMNS = 100_000, 64


def make(name: str, device: str) -> None:
    with penstock.create(name, device=device) as file:
        data = file.create_dataset("data", (ROWS, COLUMNS), "f4")
        for start in range(0, ROWS, ROWS // 10):  # in parts: it need not fit into memory
            rows = np.arange(start, start + ROWS // 10, dtype="f4")
            data[start : start + ROWS // 10] = np.ascontiguousarray(np.repeat(rows[:, None], COLUMNS, axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if not Path(options.name).exists():
        make(options.name, options.device)
    with penstock.open(options.name, device=options.device) as file:
        data = file["data"]
        memory = file.context.allocate(1000 * options.columns * data.dtype.itemsize)
        part = penstock.Array(memory, data.dtype, (1000, options.columns))
        total = 0.0
        for start in range(0, len(data), 10_000):
            data.read((slice(start, start + 1000), slice(0, options.columns)), out=part)
            total += float(part.to_numpy().sum(dtype="f8"))
        moved = file.evidence()["formats"]
        print(f"{data.shape} {data.dtype}, sum of the parts {total:.0f}")
        print(f"{moved['requested_bytes']} bytes wanted, {moved['range_bytes']} read, {data.nbytes} in the file")


if __name__ == "__main__":
    main()
