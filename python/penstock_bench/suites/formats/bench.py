"""What all measurements of the suite `formats` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Array, Context
from penstock._api import Buffer
from penstock.calibration.workspace import Workspace, make_hot
from penstock_bench.engine.results import Results, Stopwatch
from penstock_bench.engine.rounds import Sample

SUFFIXES = {"HDF5": "h5", "netCDF-4": "nc", "NPY": "npy", "safetensors": "safetensors", "Zarr": "zarr"}


ITEM_BYTES = 4


@dataclass
class FormatsBench:
    """What the probes share."""

    context: Context
    workspace: Workspace
    results: Results
    settings: dict[str, Any]
    device: Buffer  # of the files' size, touched
    peers: frozenset[str] = frozenset()

    @property
    def bytes(self) -> int:
        return self.workspace.file_bytes

    @property
    def emulated(self) -> bool:
        return bool(self.context.device["emulated"])

    def file(self, format: str) -> Path:
        return self.workspace.directory / f"source.{SUFFIXES[format]}"

    def payload(self) -> Array:
        return Array(self.device, "float32", (self.bytes // ITEM_BYTES,))


def hot(bench: FormatsBench, path: Path) -> None:
    """Brings a file, or all files of a folder, into the page cache."""
    for one in [path] if path.is_file() else [part for part in path.rglob("*") if part.is_file()]:
        with bench.context.open(one) as file:
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
