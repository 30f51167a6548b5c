"""The mean over time of a variable, step by step: xarray does the arithmetic, on the GPU where the device is one.

python xarray_mean.py run.nc T [--device cuda:0]
"""

from __future__ import annotations

import argparse

try:
    import xarray
except ModuleNotFoundError:
    raise SystemExit("this example needs xarray: pip install xarray") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("variable")
    parser.add_argument("--device", default="host")
    options = parser.parse_args()
    with xarray.open_dataset(options.name, engine="penstock", device=options.device) as data:
        variable = data[options.variable]
        total = sum(variable.isel(time=step).load() for step in range(variable.sizes["time"]))
        mean = total / variable.sizes["time"]
        print(mean)
        print(f"values are {type(mean.data).__module__}.{type(mean.data).__name__}")


if __name__ == "__main__":
    main()
