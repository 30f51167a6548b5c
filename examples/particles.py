"""A snapshot of particles, in the layout of a code of your choice, written from and read to the device.

    python particles.py snapshot.h5 --preset gothic --count 1000000 [--device cuda:0]

Presets: h5bench (32 bytes a particle), h5-gds (36), hacc (38), gothic (52). yt opens those of h5-gds and gothic.
"""

from __future__ import annotations

import argparse

import numpy as np

import penstock
from penstock.formats.particles import PRESETS, create_particles, preset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--preset", choices=list(PRESETS), default="gothic")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    chosen, chance = preset(options.preset), np.random.default_rng(1)

    with penstock.create(options.name, device=options.device) as file:
        for dataset in create_particles(file, chosen.name, options.count, header={"Time": 0.5}).values():
            dataset[...] = (100 * chance.random(dataset.shape)).astype(dataset.dtype.dtype)
    names = list(chosen.paths().values())
    with penstock.open(options.name, device=options.device) as file:
        pending = file.read_many(names)  # one submission for all members
        members = pending.result()
        moved = sum(members[name].nbytes for name in names)
        print(file)
        print(f"{options.count} particles of {chosen.particle_bytes} bytes, {moved} bytes read to {file.device}")


if __name__ == "__main__":
    main()
