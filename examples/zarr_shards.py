"""A field in shards: few files, each with chunks at multiples of 4096, of which only those that are wanted are read.

    python zarr_shards.py out.zarr [--device cuda:0]

Any reader of Zarr version 3 opens the result.
"""

from __future__ import annotations

import argparse

import numpy as np

import penstock

SHAPE, CHUNK, SHARD = (64, 128, 128), (16, 32, 32), (64, 128, 64)


def write(name: str, device: str) -> None:
    field = np.random.default_rng(1).random(SHAPE, dtype="f4")
    with penstock.create(name, device=device) as file:
        density = file.create_dataset(
            "density", SHAPE, "f4", chunk_shape=CHUNK, shard_shape=SHARD, dimensions=("z", "y", "x")
        )
        density[...] = field
        density.attrs["units"] = "kg m-3"
        file.attrs["title"] = "a box of gas"


def read_corner(name: str, device: str) -> None:
    with penstock.open(name, device=device) as file:
        density = file["density"]
        corner = density[:16, :32, :32]
        extents = density.extents((slice(0, 16), slice(0, 32), slice(0, 32)))
        print(corner)
        print(f"{len(extents)} range of {extents[0].bytes} bytes at {extents[0].offset_bytes} of {extents[0].file}")
        print(f"read {file.evidence()['formats']['range_bytes']} of {density.nbytes} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    write(options.name, options.device)
    read_corner(options.name, options.device)


if __name__ == "__main__":
    main()
