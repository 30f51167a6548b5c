"""Weights of a model: written in one call, read to the device in one transfer, and one layer of them in part.

    python safetensors_weights.py model.safetensors [--device cuda:0]

The file is made first when there is none. With PyTorch, `from penstock.torch import load_file` gives tensors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import penstock

LAYERS, WIDTH = 8, 256


def make(name: str, device: str) -> None:
    chance = np.random.default_rng(1)
    weights = {f"layer{i}.weight": chance.random((WIDTH, WIDTH), dtype="f4") for i in range(LAYERS)}
    penstock.save(name, weights, device, attributes={"made by": "an example"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if not Path(options.name).exists():
        make(options.name, options.device)
    weights = penstock.load(options.name, options.device)
    device = next(iter(weights.values())).device
    print(f"{len(weights)} tensors, {sum(one.nbytes for one in weights.values())} bytes on {device}")
    with penstock.open(options.name, device=options.device) as file:
        name = next(iter(file))
        rows = file[name][::16]
        (extent,) = file[name].extents()
        print(f"{name}: {rows.shape} of {file[name].shape}; it lies at byte {extent.offset_bytes}")
        print(file.evidence()["formats"])


if __name__ == "__main__":
    main()
