"""What compression of a history costs a core, beside the netCDF library: python gzip_rates.py [repeats] [levels]

Prints for each way how many MB of float32 a second of one core packs, and how large the file is for each byte of them.
The seconds are those of the CPU, of all threads of the process. Medians of repeats that take turns. Fields are smooth
with noise, as those of `penstock bench data`, or have 10 bits of the mantissa kept. The netCDF library has one chunk a
step; both shuffle.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

import penstock as ps

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
LEVELS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
SIDE, STEPS, KEPT = 256, 4, 10

Way = Callable[[Path, np.ndarray], None]


def history(compression: str, level: int | None, path: Path, field: np.ndarray) -> None:
    packing: dict[str, Any] = {"compression": compression, "compression_level": level, "encode_threads": 1}
    with ps.History(path, format="netcdf4", device="host", **packing) as model:
        model.define("T", ("z", "y", "x"), like=field)
        for step in range(STEPS):
            model.put("T", field)
            model.end_step(step)


def netcdf(level: int, path: Path, field: np.ndarray) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(("time", "z", "y", "x"), (None, *field.shape), strict=True):
            file.createDimension(name, length)
        packing: dict[str, Any] = {"complevel": level, "shuffle": True, "chunksizes": (1, *field.shape)}
        variable = file.createVariable("T", "f4", ("time", "z", "y", "x"), compression="zlib", **packing)
        for step in range(STEPS):
            variable[step] = field


WAYS: dict[str, Way] = {
    **{f"netCDF4, zlib {level}": partial(netcdf, level) for level in (1, 2, 4)},
    **{f"history, gzip {level}": partial(history, "gzip", level) for level in (1, 2, 4)},
    "history, zstd 3": partial(history, "zstd", 3),
    "history, lz4": partial(history, "lz4", None),
}


def fields() -> dict[str, np.ndarray]:
    z, y, x = np.ogrid[:LEVELS, :SIDE, :SIDE]
    smooth = 280 + 20 * np.sin(x / 40) * np.cos(y / 30) - z
    noisy = (smooth + np.random.default_rng(5).normal(0, 0.1, smooth.shape)).astype("f4")
    kept = (noisy.view("u4") + np.uint32(1 << (22 - KEPT))) & ~np.uint32((1 << (23 - KEPT)) - 1)
    return {"with noise": noisy, f"{KEPT} bits kept": kept.view("f4")}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind, field in fields().items():
            seconds: dict[str, list[float]] = {name: [] for name in WAYS}
            sizes: dict[str, float] = {}
            for turn in range(REPEATS):
                for name, write in WAYS.items():
                    path = Path(folder) / f"{kind}-{turn}-{name}.nc"
                    began = time.process_time()
                    write(path, field)
                    seconds[name].append(time.process_time() - began)
                    sizes[name] = path.stat().st_size / (STEPS * field.nbytes)
                    path.unlink()
            print(f"{kind}: MB a second of a core, bytes of the file for each byte")
            for name, all_turns in seconds.items():
                print(f"  {name:20}{STEPS * field.nbytes / statistics.median(all_turns) / 1e6:8.0f}{sizes[name]:8.3f}")


main()
