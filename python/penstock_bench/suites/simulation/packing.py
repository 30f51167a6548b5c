"""Compressed histories beside netCDF4-python with zlib: what a core packs in a second, and how large the file is.

What must stay true: all ways write the same values, shuffled, a chunk or more of them a step, and what they wrote is
compared bit by bit. The time of a core is that of all threads of this process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Error, History, open as open_file
from penstock.cli.options import size
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, need
from penstock_bench.engine.run import Run

if TYPE_CHECKING:
    import numpy as np

SIDE, STEPS, KEPT = 256, 4, 10  # bits of the mantissa that are kept
NOISE, ROUNDED = "with noise", f"{KEPT} bits kept"
ITEM_BYTES = 4
DIMENSIONS = ("z", "y", "x")

PackWay = Callable[[Path, Any], None]


def history(compression: str, level: int | None, path: Path, field: np.ndarray) -> None:
    packing: dict[str, Any] = {"compression": compression, "compression_level": level, "encode_threads": 1}
    with History(path, format="netcdf4", device="host", **packing) as model:
        model.define("T", DIMENSIONS, like=field)
        for step in range(STEPS):
            model.put("T", field)
            model.end_step(float(step))


def netcdf(level: int, path: Path, field: np.ndarray) -> None:
    need("netCDF4")
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(("time", *DIMENSIONS), (None, *field.shape), strict=True):
            file.createDimension(name, length)
        packing: dict[str, Any] = {"complevel": level, "shuffle": True, "chunksizes": (1, *field.shape)}
        variable = file.createVariable("T", "f4", ("time", *DIMENSIONS), compression="zlib", **packing)
        for step in range(STEPS):
            variable[step] = field


USUAL = "netCDF4, zlib {}"
GZIP, ZSTD, LZ4 = "history, gzip {}", "history, zstd 3", "history, lz4"
LEVEL = 4  # of zlib and gzip, where none is given
WAYS: dict[str, PackWay] = {
    **{USUAL.format(level): partial(netcdf, level) for level in (1, 2, 4)},
    **{GZIP.format(level): partial(history, "gzip", level) for level in (1, 2, 4)},
    ZSTD: partial(history, "zstd", 3),
    LZ4: partial(history, "lz4", None),
}


def name_of(values: str, way: str) -> str:
    return f"packed, {values}: {way}"


@dataclass(frozen=True)
class PackedField:
    """The same in each step."""

    values: str  # which
    field: np.ndarray


def probes(run: Run) -> list[Probe]:
    bytes = size("bench simulation", "packed_bytes", str(run.settings["packed_bytes"]))
    found = fields(max(1, bytes // (STEPS * ITEM_BYTES * SIDE * SIDE)))
    return [Probe(name_of(one.values, way), partial(measure, run, one, way)) for one in found for way in WAYS]


def fields(levels: int) -> list[PackedField]:
    """Temperatures that are smooth with noise, and the same with fewer bits, rounded to the nearest."""
    import numpy as np

    z, y, x = np.ogrid[:levels, :SIDE, :SIDE]
    smooth = 280 + 20 * np.sin(x / 40) * np.cos(y / 30) - z
    noisy = (smooth + np.random.default_rng(5).normal(0, 0.1, smooth.shape)).astype("f4")
    kept = (noisy.view("u4") + np.uint32(1 << (22 - KEPT))) & ~np.uint32((1 << (23 - KEPT)) - 1)
    return [PackedField(NOISE, noisy), PackedField(ROUNDED, kept.view("f4"))]


def measure(run: Run, one: PackedField, way: str, _round: int = 0) -> Sample:
    path = run.workspace.directory / "packed.nc"
    bytes = STEPS * one.field.nbytes
    try:
        with Stopwatch() as watch:
            WAYS[way](path, one.field)
        share = path.stat().st_size / bytes
        check(path, one.field)
    finally:
        path.unlink(missing_ok=True)
    core = bytes / (watch.cpu_user_s + watch.cpu_system_s)
    told = {"part": "packing", "values": one.values, "codec": way, "core_bytes_per_second": core, "file_share": share}
    steps = {"steps": STEPS, "step_bytes": one.field.nbytes}
    return {"bytes": bytes, "seconds": watch.seconds, **steps, **told, **watch.cpu()}


def check(path: Path, field: np.ndarray) -> None:
    """Raises Error where a step has other bits."""
    import numpy as np

    with open_file(path, device="host") as file:
        for step in range(STEPS):
            found = np.ascontiguousarray(file["T"][step], "f4")
            if not np.array_equal(found.view("u4"), field.view("u4")):
                cause = f"step {step} is not what was packed"
                raise Error(operation="bench simulation", file=str(path), cause=cause, advice="report it")
