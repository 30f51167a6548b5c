"""What the suite `data` compares of compressed histories: a step of one field, which readers see when the call returns,
beside the same step by the netCDF library.

Both write float32 in one file of netCDF-4, shuffled. A field is 10 MiB at most: smooth, with noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import penstock
from penstock_bench.suites.data.pair import Call, Pair

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

LEVELS, SIDE = 40, 256
LEVEL = 2  # of zlib: that of SCALE-RM's output
KEPT = 10  # bits of the mantissa
ZLIB = "netCDF4, zlib"


class WrittenStep(NamedTuple):
    """What a call returns: a step that is in the file."""

    path: Path
    number: int

    def get(self) -> np.ndarray:
        """Its elements, by stock HDF5 once more."""
        import h5py
        import hdf5plugin  # noqa: F401 - zstd

        with h5py.File(self.path, "r", locking=False) as file:
            return file["T"][self.number]


def pairs(run: Run) -> Iterator[Pair]:
    needs = ("netCDF4", "h5py", "hdf5plugin")
    for name, compression, bits in (
        ("gzip", "gzip", 0),
        (f"gzip, {KEPT} bits kept", "gzip", KEPT),
        ("zstd", "zstd", 0),
    ):
        make = partial(_of_steps, run, compression, bits)
        yield Pair(f"a step of a history: {name}", ZLIB, make, needs, 0.02, _fields(run)[0].nbytes)


def _fields(run: Run) -> list[np.ndarray]:
    levels = min(LEVELS, 4 * int(run.settings.get("large_mib", 1)))
    z, y, x = np.ogrid[:levels, :SIDE, :SIDE]
    random = np.random.default_rng(5)
    smooth = 280 + 20 * np.sin(x / 40) * np.cos(y / 30) - z
    fields = [(smooth + random.normal(0, 0.1, smooth.shape)).astype("f4") for _ in range(2)]
    for field in fields:  # none lies in the middle of two rounded ones, where libraries round differently
        field.view("u4")[...] |= 1
    return fields


def _of_steps(run: Run, compression: str, bits: int, stack: ExitStack) -> tuple[Call, Call]:
    fields, ours = _fields(run), run.workspace.directory / "ours.nc"
    history = stack.enter_context(
        penstock.History(
            ours,
            format="netcdf4",
            compression=compression,
            compression_level=None if compression == "zstd" else LEVEL,
            memory="host",
            context=run.context,
        )
    )
    history.define("T", ("z", "y", "x"), like=fields[0], keep_bits=bits)
    steps = 0

    def put(turn: int) -> WrittenStep:
        nonlocal steps
        history.put("T", fields[turn % 2])
        history.end_step(float(steps))
        history.wait()
        steps += 1
        return WrittenStep(ours, steps - 1)

    return put, _by_netcdf(run, fields, bits, stack)


def _by_netcdf(run: Run, fields: list[np.ndarray], bits: int, stack: ExitStack) -> Call:
    """One chunk a step, as weather models set it."""
    import netCDF4

    path, steps = run.workspace.directory / "theirs.nc", 0
    file = stack.enter_context(netCDF4.Dataset(path, "w"))
    for name, length in zip(("time", "z", "y", "x"), (None, *fields[0].shape), strict=True):
        file.createDimension(name, length)
    times = file.createVariable("time", "f8", ("time",))
    options: dict[str, Any] = {"significant_digits": bits, "quantize_mode": "BitRound"} if bits else {}
    chunk = (1, *fields[0].shape)
    packed = {"compression": "zlib", "complevel": LEVEL, "shuffle": True, "chunksizes": chunk, **options}
    variable = file.createVariable("T", "f4", ("time", "z", "y", "x"), **packed)

    def write(turn: int) -> WrittenStep:
        nonlocal steps
        variable[steps] = fields[turn % 2]
        times[steps] = float(steps)
        file.sync()
        steps += 1
        return WrittenStep(path, steps - 1)

    return write
