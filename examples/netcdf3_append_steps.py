"""A simulation that writes one record a step into a classic netCDF file, dies, and goes on where it was.

    python netcdf3_append_steps.py out.nc3 [--device cuda:0]

Each step is visible to other programs (ncdump, ncview, xarray) as soon as it is written, and never in part.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import penstock

NY, NX = 180, 360


def field(step: int) -> np.ndarray:
    """What a model would have computed."""
    y, x = np.mgrid[0:NY, 0:NX]
    return np.asarray(280 + 20 * np.sin(np.pi * y / NY) + np.sin(0.1 * (x + step)), "f4")


def make(name: str, device: str) -> None:
    grid = {"dimensions": ("time", "lat", "lon"), "resizable": (None, NY, NX), "attributes": {"units": "K"}}
    time = {"dimensions": ("time",), "resizable": (None,), "attributes": {"units": "hours since 2000-01-01"}}
    with penstock.create(name, device=device) as file:
        file.attrs["title"] = "one record a step"
        file.create_datasets({"T": ((0, NY, NX), "f4", grid), "time": ((0,), "f8", time)})


def run(name: str, device: str, steps: int) -> None:
    for _ in range(steps):
        with penstock.open(name, write=True, device=device) as file:
            step = len(file["time"])
            file["T"].append(field(step))
            file["time"].append(float(step))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    if not Path(options.name).exists():
        make(options.name, options.device)
    run(options.name, options.device, options.steps)
    with penstock.open(options.name, device=options.device) as file:
        print(file)


if __name__ == "__main__":
    main()
