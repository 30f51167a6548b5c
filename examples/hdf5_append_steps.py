"""Steps of a simulation, added one by one to an HDF5 file that can be read after every one of them.

    python hdf5_append_steps.py run.h5 --steps 5 [--device cuda:0]

Kill it at any moment: h5py and h5dump read all steps that were finished.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import penstock

SHAPE = (32, 128, 128)


def make(name: str, device: str) -> None:
    with penstock.create(name, device=device, durable=True) as file:
        for field in ("density", "pressure"):
            file.create_dataset(field, (0, *SHAPE), "f4", resizable=(None, *SHAPE))
        file.create_dataset("time", (0,), "f8", resizable=(None,), attributes={"units": "s"})
        file.attrs["title"] = "a box of gas"


def add_step(name: str, device: str) -> int:
    with penstock.open(name, write=True, device=device, durable=True) as file:
        step = len(file["time"])
        for number, field in enumerate(("density", "pressure")):
            file[field].append(np.full(SHAPE, step + number / 2, "f4"))  # or an array on the device
        file["time"].append(0.25 * step)
    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if not Path(options.name).exists():
        make(options.name, options.device)
    for _ in range(options.steps):
        step = add_step(options.name, options.device)
        print(f"step {step} is on storage")
    with penstock.open(options.name, device=options.device) as file:
        print(file)
        print(file["pressure"].extents(0))


if __name__ == "__main__":
    main()
