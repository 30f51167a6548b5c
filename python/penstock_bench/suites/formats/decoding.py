"""Reading compressed HDF5, decoded on the GPU by nvCOMP, and on the host by the HDF5 library.

The data are smooth float32, as fields of a simulation are, in chunks of 1 MiB, shuffled and deflated at level 4 by zlib
in all threads, as stock HDF5 stores them. Every read is compared with what was written.
"""

from __future__ import annotations

import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import penstock
from penstock import Error
from penstock_bench.engine.rounds import Absent, Probe, Sample
from penstock_bench.suites.formats.files import hot, timed

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

CHUNK_ITEMS = 1 << 18  # of float32: 1 MiB
LEVEL = 4


def probes(run: Run) -> list[Probe]:
    return [Probe(f"HDF5 deflate read, {decode}", partial(_read, run, decode)) for decode in ("gpu", "host")]


def _path(run: Run) -> Path:
    return run.workspace.directory / "deflate.h5"


def _chunks(run: Run) -> int:
    return int(run.settings.get("deflate_mib", 1))


def _content(number: int) -> np.ndarray:
    """Of one chunk."""
    return (np.sin(np.arange(CHUNK_ITEMS) / 500 + number) * 1000).astype("<f4")


def _stored(number: int) -> bytes:
    planes = _content(number).view(np.uint8).reshape(-1, 4).T
    return zlib.compress(np.ascontiguousarray(planes), LEVEL)


def make(run: Run) -> None:
    try:
        import h5py
    except ImportError:
        return
    count = _chunks(run)
    options = {"chunks": (CHUNK_ITEMS,), "compression": "gzip", "compression_opts": LEVEL, "shuffle": True}
    with h5py.File(_path(run), "w") as file, ThreadPoolExecutor(os.cpu_count()) as threads:
        x = file.create_dataset("x", (count * CHUNK_ITEMS,), "<f4", **options)
        for number, raw in enumerate(threads.map(_stored, range(count))):
            x.id.write_direct_chunk((number * CHUNK_ITEMS,), raw)


def _read(run: Run, decode: str, _: int) -> Sample:
    path = _path(run)
    if not path.exists():
        raise Absent("h5py is not installed")
    hot(run, path)
    found: list[penstock.Array] = []

    def work() -> None:
        with penstock.open(path, context=run.context, decode=decode) as file:
            found.append(file["x"].read())

    try:
        sample = timed(_chunks(run) * CHUNK_ITEMS * 4, work)
    except Error as error:
        if error.code != "unsupported":
            raise
        raise Absent(error.cause) from None
    _verify(run, path, found[0])
    return sample | {"stored_bytes": path.stat().st_size}


def _verify(run: Run, path: Path, array: penstock.Array) -> None:
    for number in range(_chunks(run)):
        part = array[number * CHUNK_ITEMS : (number + 1) * CHUNK_ITEMS]
        if not np.array_equal(part.to_numpy(), _content(number)):
            raise Error(code="io_error", operation="verify", file=str(path), cause=f"chunk {number} is wrong")
