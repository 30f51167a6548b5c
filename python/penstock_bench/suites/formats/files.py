"""What the cells of the suite `formats` read and write: one file a format, each with the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock import Array
from penstock.calibration.workspace import make_hot
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Sample
from penstock_bench.engine.run import Run

SUFFIXES = {"HDF5": "h5", "netCDF-4": "nc", "NPY": "npy", "safetensors": "safetensors", "Zarr": "zarr"}
ITEM_BYTES = 4


def source(run: Run, format: str) -> Path:
    return run.workspace.directory / f"source.{SUFFIXES[format]}"


def payload(run: Run) -> Array:
    """What each of them holds, in device memory."""
    return Array(run.device, "float32", (run.bytes // ITEM_BYTES,))


def hot(run: Run, path: Path) -> None:
    """Brings a file, or all files of a folder, into the page cache."""
    for one in [path] if path.is_file() else [part for part in path.rglob("*") if part.is_file()]:
        with run.context.open(one) as file:
            if file.size_bytes:
                make_hot(file, file.size_bytes)


def timed(bytes: int, work: Callable[[], Any]) -> Sample:
    with Stopwatch() as watch:
        work()
    return {
        "bytes": bytes,
        "seconds": watch.seconds,
        **watch.cpu(),
    }
