"""Means of each step of a history of raw files, as far as its model has come.

    python raw_history.py run [--variable T] [--device cuda:0]

A small history is written first when there is none of that name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import penstock


def make(name: str, variable: str) -> None:
    with penstock.History(name, format="raw", device="host") as history:
        history.define(variable, ["y", "x"], shape=(90, 180), attrs={"units": "K"})
        for step in range(4):
            history.put(variable, np.full((90, 180), 280.0 + step, "f4"))
            history.end_step(3600.0 * step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--variable", default="T")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if not Path(options.name).exists():
        make(options.name, options.variable)
    with penstock.open(options.name, device=options.device) as file:
        field, times = file[options.variable], file["time"][:].to_numpy()
        print(f"{len(times)} finished steps of {field.shape[1:]} {field.dtype}")
        for step, seconds in enumerate(times):
            mean = field[step].to_numpy().mean(dtype="f8")
            print(f"{seconds:8.0f} s: mean {mean:.1f} {field.attrs.get('units', '')}")


if __name__ == "__main__":
    main()
