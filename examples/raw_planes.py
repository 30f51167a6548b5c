"""Planes of a raw field, as codes without a format write them: a head of bytes, then numbers of some byte order.

    python raw_planes.py field.bin --shape 64 128 128 --dtype '>f4' --skip 256 [--device cuda:0]

The file is made first when there is none.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import penstock


def make(options: argparse.Namespace) -> None:
    field = np.arange(np.prod(options.shape)).reshape(options.shape).astype(options.dtype)
    Path(options.name).write_bytes(bytes(options.skip) + field.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--shape", type=int, nargs="+", default=[64, 128, 128])
    parser.add_argument("--dtype", default=">f4")
    parser.add_argument("--skip", type=int, default=256, help="bytes before the first number")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if not Path(options.name).exists():
        make(options)
    layout = {"dtype": options.dtype, "shape": options.shape, "offset_bytes": options.skip}
    with penstock.open(options.name, device=options.device, **layout) as file:
        plane = file["data"][options.shape[0] // 2]
        print(f"{file['data']}")
        print(f"the plane in the middle: {plane.shape} {plane.dtype}, mean {plane.to_numpy().mean(dtype='f8'):.1f}")
        print(f"{file.evidence()['formats']['range_bytes']} of {file['data'].nbytes} bytes read")


if __name__ == "__main__":
    main()
