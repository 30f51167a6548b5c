"""What a history in a Zarr store costs beside zarr-python and a netCDF-4 file: python store_rates.py [repeats] [folder]

Prints medians of the seconds until all steps are in the files, of many cells and of few. The ways take turns, and write
fields of float64 as float32; those of the last case are compressed by zstd of level 3. zarr-python appends to each
array in the step, as a model that uses it would.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

import penstock as ps

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
FOLDER = sys.argv[2] if len(sys.argv) > 2 else None
CASES = (
    ((40, 128, 128), 6, 8, False),
    ((100,), 1, 200, False),
    ((64, 256), 4, 200, True),
)  # cells, fields, steps, zstd

Way = Callable[[Path, list[np.ndarray], int, bool], None]


def history(format: str) -> Way:
    def write(path: Path, fields: list[np.ndarray], steps: int, packed: bool) -> None:
        options: dict[str, Any] = {"compression": "zstd", "shuffle": False} if packed else {}
        with ps.History(path, format=format, device="host", **options) as model:
            for number, field in enumerate(fields):
                model.define(f"v{number}", ("z", "y", "x")[-field.ndim :], like=field)
            for step in range(steps):
                for number, field in enumerate(fields):
                    model.put(f"v{number}", field)
                model.end_step(step)

    return write


def zarr_python(path: Path, fields: list[np.ndarray], steps: int, packed: bool) -> None:
    codecs = ZstdCodec(level=3) if packed else None
    group = zarr.open_group(path, mode="w")
    time_axis = group.create_array("time", shape=(0,), chunks=(256,), dtype="f8", compressors=None)
    arrays = [
        group.create_array(
            f"v{number}", shape=(0, *field.shape), chunks=(1, *field.shape), dtype="f4", compressors=codecs
        )
        for number, field in enumerate(fields)
    ]
    for step in range(steps):
        for array, field in zip(arrays, fields, strict=True):
            array.append(field.astype("f4")[None])
        time_axis.append(np.array([float(step)]))


WAYS: dict[str, Way] = {
    "history, Zarr": history("zarr"),
    "zarr-python in the step": zarr_python,
    "history, netCDF-4": history("netcdf4"),
}


def smooth(cells: tuple[int, ...], number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(cells).cumsum(axis=-1)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for cells, count, steps, packed in CASES:
            fields = [smooth(cells, number) for number in range(count)]
            seconds: dict[str, list[float]] = {name: [] for name in WAYS}
            for turn in range(REPEATS):
                for name, write in WAYS.items():
                    began = time.perf_counter()
                    write(Path(folder) / f"{count}-{turn}-{name}", fields, steps, packed)
                    seconds[name].append(time.perf_counter() - began)
            print(f"{steps} steps, fields: {count} of {cells}{', zstd' if packed else ''}")
            for name, all_turns in seconds.items():
                print(f"  {name:24}{statistics.median(all_turns):8.3f} s")


main()
