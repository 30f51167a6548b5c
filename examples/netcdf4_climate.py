"""Fields of a climate model in a netCDF-4 file: named dimensions, coordinates, units, and a step at a time.

    python netcdf4_climate.py run.nc --steps 4 [--device cuda:0]

ncdump, xarray and the netCDF library read the result and can append to it.
"""

from __future__ import annotations

import argparse

import numpy as np

import penstock

LEVELS, LATITUDES, LONGITUDES = 8, 90, 180
DIMENSIONS = ("time", "lev", "lat", "lon")


def make(name: str, device: str) -> None:
    shape = (LEVELS, LATITUDES, LONGITUDES)
    with penstock.create(name, device=device) as file:
        for field, units in {"T": "K", "QV": "kg kg-1"}.items():
            facts = {"units": units, "_FillValue": -999.0}
            grown = (None, *shape)
            file.create_dataset(field, (0, *shape), "f4", attributes=facts, resizable=grown, dimensions=DIMENSIONS)
        clock = {"units": "hours since 2000-01-01", "calendar": "standard"}
        file.create_dataset("time", (0,), "f8", resizable=(None,), dimensions=("time",), attributes=clock)
        for coordinate, values in {
            "lev": np.arange(float(LEVELS)),
            "lat": np.linspace(-89, 89, LATITUDES),
            "lon": np.arange(0.0, 360.0, 360 / LONGITUDES),
        }.items():
            file.create_dataset(coordinate, values.shape, "f8", dimensions=(coordinate,))[...] = values
        file.attrs["Conventions"] = "CF-1.8"


def add_step(name: str, device: str) -> None:
    with penstock.open(name, write=True, device=device) as file:
        hour = len(file["time"])
        for field in ("T", "QV"):
            file[field].append(np.full((LEVELS, LATITUDES, LONGITUDES), hour, "f4"))
        file["time"].append(float(hour))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    make(options.name, options.device)
    for _ in range(options.steps):
        add_step(options.name, options.device)
    with penstock.open(options.name, device=options.device) as file:
        field = file["T"]
        print(field, field.dims)
        print("one latitude of the last step:", field[-1, 0, 45, :3])


if __name__ == "__main__":
    main()
