"""Snapshots of many particles, each on stable storage when its time ends: what a snapshot costs beside the same bytes
alone, and beside h5py as SWIFT writes (chunks, a dataset a field, sums of Fletcher).

What must stay true: all ways write the same particles from memory of the GPU, or of the host where there is none, and
what was written is compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock import Array, Error, Snapshot, open as open_file
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, need
from penstock_bench.engine.run import Run

CHUNK_ROWS = 8192  # of SWIFT, in a file
FIELDS = {
    "Coordinates": ("float64", 3),
    "Velocities": ("float32", 3),
    "Masses": ("float32", 1),
    "ParticleIDs": ("uint64", 1),
}
GROUP = "PartType0/"
BODY_BYTES = 48


@dataclass
class ParticleSet:
    """As many as have `file_bytes`, one field behind the other."""

    memory: Any  # all of them, as bytes
    fields: dict[str, Any]

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.fields.values())


def particles(run: Run) -> ParticleSet:
    import numpy as np

    count = max(2 * CHUNK_ROWS, run.bytes // BODY_BYTES)
    on_host = bool(run.context.device["emulated"])
    memory: Any = np.empty(count * BODY_BYTES, "u1") if on_host else run.memory(count * BODY_BYTES)
    draw: Any = np.random.default_rng(1)
    at, made = 0, ParticleSet(memory, {})
    for name, (dtype, width) in FIELDS.items():
        shape = (count, width) if width > 1 else (count,)
        values = np.arange(count, dtype=dtype) if dtype == "uint64" else draw.random(shape, dtype)
        if on_host:
            field = memory[at : at + values.nbytes].view(dtype).reshape(shape)
            field[...] = values
        else:
            field = Array(memory, dtype, shape, at)
            run.context.copy_to_device(memory.slice(at, values.nbytes), values)
        made.fields[GROUP + name] = field
        at += values.nbytes
    return made


def on_the_host(field: Any) -> Any:
    return field.to_numpy() if isinstance(field, Array) else field


def plain(run: Run, name: Path, all: ParticleSet) -> None:
    """The same bytes one behind the other, by the engine alone: one write."""
    with run.context.create(name, durable=True) as file:
        file.write(all.memory, 0)


def by_snapshot(run: Run, name: Path, all: ParticleSet) -> None:
    Snapshot(name, all.fields, context=run.context, durable=True).write()


def by_chunks(run: Run, name: Path, all: ParticleSet) -> None:
    Snapshot(name, all.fields, context=run.context, durable=True, chunk_rows=CHUNK_ROWS, checksums=True).write()


def by_h5py(_run: Run, name: Path, all: ParticleSet) -> None:
    need("h5py")
    import h5py

    new = name.with_suffix(".new")
    with h5py.File(new, "w") as file:
        for path, field in all.fields.items():
            chunks = (CHUNK_ROWS, *field.shape[1:])
            file.create_dataset(path, data=on_the_host(field), chunks=chunks, fletcher32=True)
    descriptor = os.open(new, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    new.rename(name)


Write = Callable[[Run, Path, ParticleSet], None]
PLAIN, SNAPSHOT = "particles, plain bytes", "particles, snapshot"
CHUNKS, H5PY = "particles, snapshot as SWIFT", "particles, h5py as SWIFT"
WAYS: dict[str, Write] = {PLAIN: plain, SNAPSHOT: by_snapshot, CHUNKS: by_chunks, H5PY: by_h5py}


def probes(run: Run, all: ParticleSet) -> list[Probe]:
    return [Probe(way, partial(measure, run, all, way)) for way in WAYS]


def measure(run: Run, all: ParticleSet, way: str, _round: int = 0) -> Sample:
    name = run.workspace.directory / "particles.hdf5"
    try:
        with Stopwatch() as watch:
            WAYS[way](run, name, all)
        check(name, all, way)
    finally:
        name.unlink(missing_ok=True)
    told = {"part": "particles", "steps": 1, "step_bytes": all.bytes}
    return {"bytes": all.bytes, "seconds": watch.seconds, **told, **watch.cpu()}


def check(name: Path, all: ParticleSet, way: str) -> None:
    """Raises Error where it has other bits. By penstock.open, also of what h5py wrote."""
    import numpy as np

    at = 0
    is_plain = way == PLAIN
    kind: Any = {"dtype": "uint8", "format": "raw"} if is_plain else {}
    with open_file(name, device="host", **kind) as file:
        for path, field in all.fields.items():
            found = file["data"][at : at + field.nbytes] if is_plain else file[path].read()
            at += field.nbytes
            if not np.array_equal(_bytes(found), _bytes(field)):
                cause = f"{path} is not what was written"
                raise Error(operation="bench simulation", file=str(name), cause=cause, advice="report it")


def _bytes(field: Any) -> Any:
    return on_the_host(field).reshape(-1).view("uint8")
