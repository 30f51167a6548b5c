"""The suite `formats`: files of formats beside a raw file of the same bytes, and beside what people use today.

All large datasets hold the same stamped bytes, so that every read is checked on the device. Times of reads are of open,
metadata and transfer together; times of writes end when the new file has its name. Files are in the page cache, and
that is proved before each read.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

import penstock
from penstock import Array
from penstock._arrays.dtype import DType
from penstock.calibration.poison import POISON, poison, poison_staging
from penstock.calibration.workspace import FILE_SEED
from penstock.formats import registry
from penstock.formats.model import NewDataset
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.engine.stamped import check
from penstock_bench.suites.formats import (
    decoding as format_decoding,
    particles as format_particles,
    peers as format_peers,
)
from penstock_bench.suites.formats.files import ITEM_BYTES, SUFFIXES, hot, payload, source, timed

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

FIELDS = 10
INDEX_CHUNK_BYTES = 32
CHUNK_EDGE = 64  # float32 chunks of 16 KiB


def run_suite(run: Run) -> None:
    """Makes one file a format, then all probes in rounds; then what is counted, not moved."""
    _need_room(run)
    for format in SUFFIXES:
        run.step(0, 0, f"making the {format} file")
        _make(run, format)
    _make_small(run)
    format_decoding.make(run)
    format_particles.make(run)
    probes = _large(run) + _small(run) + format_decoding.probes(run) + format_particles.probes(run)
    run_rounds(run, probes + format_peers.probes(run))


def tensors(run: Run) -> dict[str, Array]:
    """The payload as the tensors of a model: equal parts of one buffer."""
    count = int(run.settings["tensors"])
    each = run.bytes // count // 4096 * 4096
    return {f"layer{i:03d}.weight": Array(run.device, "float32", (each // ITEM_BYTES,), i * each) for i in range(count)}


def _contents(run: Run, format: str) -> dict[str, Array]:
    return tensors(run) if format == "safetensors" else {"data": payload(run)}


def _make(run: Run, format: str) -> None:
    run.context.stamp(run.device, 0, FILE_SEED)
    contents = _contents(run, format)
    with penstock.create(source(run, format), context=run.context, durable=True) as file:
        file.write_many(contents).result()


def _large(run: Run) -> list[Probe]:
    probes = [
        Probe("raw read", lambda _: _raw_read(run)),
        Probe("raw write", lambda turn: _raw_write(run, turn)),
        Probe("safetensors load", lambda _: _load(run)),
    ]
    for format in ("HDF5", "netCDF-4", "NPY", "Zarr"):
        probes.append(Probe(f"{format} read", partial(_read, run, format)))
        probes.append(Probe(f"{format} write", partial(_write, run, format)))
    return probes


def _raw_read(run: Run) -> Sample:
    hot(run, run.workspace.source)
    poison(run.context, run.device)

    def work() -> None:
        with run.context.open(run.workspace.source) as file:
            file.read(run.device)

    sample = timed(run.bytes, work)
    check(run.context, run.workspace.source, run.device, FILE_SEED)
    return sample


def _raw_write(run: Run, turn: int) -> Sample:
    path = run.workspace.directory / "written.bin"
    run.context.stamp(run.device, 0, 100 + turn)

    def work() -> None:
        with run.context.create(path, run.bytes) as file:
            file.write(run.device)

    sample = timed(run.bytes, work)
    poison(run.context, run.device)
    with run.context.open(path) as file:
        file.read(run.device, path="buffered")
    check(run.context, path, run.device, 100 + turn)
    path.unlink()
    return sample


def _read(run: Run, format: str, _: int) -> Sample:
    path, out = source(run, format), payload(run)
    hot(run, path)
    poison(run.context, run.device)

    def work() -> None:
        with penstock.open(path, context=run.context) as file:
            file["data"].read(out=out)

    sample = timed(run.bytes, work)
    format_peers.verify(run.context, path, "data", (run.device, 0, FILE_SEED))
    return sample


def _write(run: Run, format: str, turn: int) -> Sample:
    path = run.workspace.directory / f"written.{SUFFIXES[format]}"
    run.context.stamp(run.device, 0, 100 + turn)
    content = payload(run)

    def work() -> None:
        with penstock.create(path, context=run.context) as file:
            file["data"] = content

    sample = timed(run.bytes, work)
    poison(run.context, run.device)
    with penstock.open(path, context=run.context) as file:
        file["data"].read(out=content)
    format_peers.verify(run.context, path, "data", (run.device, 0, 100 + turn))
    format_peers.remove(path)
    return sample


def _load(run: Run) -> Sample:
    path = source(run, "safetensors")
    hot(run, path)
    poison_staging(run.context)
    found: dict[str, Array] = {}
    sample = timed(path.stat().st_size, lambda: found.update(penstock.load(path, context=run.context)))
    for number, name in enumerate(sorted(found)):
        array = found[name]
        format_peers.verify(run.context, path, name, (array.as_bytes(), number * array.nbytes, FILE_SEED))
        run.context.fill(array.as_bytes(), POISON)  # the next load may get this memory: bytes that never come show
    return sample


# -- many small things


def _need_room(run: Run) -> None:
    """Error when the files are smaller than their small chunks together."""
    needed = (int(run.settings["small_chunks_side"]) * CHUNK_EDGE) ** 2 * ITEM_BYTES
    if run.bytes < needed:
        raise penstock.Error(
            code="invalid_argument",
            operation="bench formats",
            cause=f"files of {run.bytes} bytes are too small for its small chunks, {needed} bytes",
            advice=f"give --file-bytes {-(-needed // (1 << 20))}MiB or more",
        )


def _make_small(run: Run) -> None:
    folder = run.workspace.directory
    chunks = int(run.settings["index_chunks"])
    with penstock.create(folder / "index.h5", context=run.context) as file:
        file.create_dataset("x", (chunks, INDEX_CHUNK_BYTES // 4), "float32", chunk_shape=(1, INDEX_CHUNK_BYTES // 4))
    side = int(run.settings["small_chunks_side"])
    value = Array(run.device, "float32", (side * CHUNK_EDGE, side * CHUNK_EDGE))
    with penstock.create(folder / "chunks.h5", context=run.context) as file:
        x = file.create_dataset("x", value.shape, "float32", chunk_shape=(CHUNK_EDGE, CHUNK_EDGE))
        x[...] = value
    with penstock.create(folder / "small.h5", context=run.context) as file:
        file["x"] = Array(run.device, "float32", (1024,))


def _small(run: Run) -> list[Probe]:
    return [
        Probe("index of many chunks", lambda _: _index(run)),
        Probe("open and read 4 KiB", lambda _: _open_small(run)),
        Probe("snapshot of 10 fields, metadata", lambda turn: _metadata(run, turn)),
        Probe("small chunks, one batch", lambda _: _batch(run)),
        Probe("small chunks, one by one", lambda _: _one_by_one(run)),
    ]


def _index(run: Run) -> Sample:
    """Where 20,000 chunks lie. Neighbours are told as one extent; their bytes say that none is missing."""
    path, chunks = run.workspace.directory / "index.h5", int(run.settings["index_chunks"])
    found = 0

    def work() -> None:
        nonlocal found
        with penstock.open(path, context=run.context) as file:
            found = sum(extent.bytes for extent in file["x"].extents())

    sample = timed(path.stat().st_size, work)
    if found != chunks * INDEX_CHUNK_BYTES:
        raise ValueError(f"{found} bytes of {chunks} chunks were found in {path}")
    return sample | {"chunks": chunks}


def _open_small(run: Run) -> Sample:
    path = run.workspace.directory / "small.h5"
    each = []
    for _ in range(int(run.settings["small_opens"])):
        start = time.perf_counter()
        with penstock.open(path, context=run.context) as file:
            file["x"].read()
        each.append(time.perf_counter() - start)
    return {"bytes": 4096 * len(each), "seconds": sum(each), "median_ms": statistics.median(each) * 1e3} | _no_cpu()


def _no_cpu() -> dict[str, float]:
    return {"cpu_user_s": 0.0, "cpu_system_s": 0.0}


def _metadata(run: Run, turn: int) -> Sample:
    """Creating and closing a snapshot without moving its bytes: what the format costs."""
    path = run.workspace.directory / f"metadata-{turn}.h5"
    shape = (run.bytes // FIELDS // ITEM_BYTES,)
    fields = [NewDataset(f"PartType1/field{i}", shape, DType.of("float32")) for i in range(FIELDS)]

    def work() -> None:
        writer = registry.function(registry.by_name("hdf5"), "writer")(str(path))
        writer.create(fields)
        writer.publish(False)

    sample = timed(1, work)  # no bytes: seconds are what counts
    path.unlink()
    return sample | {"fields": FIELDS}


def _batch(run: Run) -> Sample:
    path = run.workspace.directory / "chunks.h5"
    hot(run, path)

    def work() -> None:
        with penstock.open(path, context=run.context) as file:
            file["x"].read()

    side = int(run.settings["small_chunks_side"])
    return _per_chunk(timed((side * CHUNK_EDGE) ** 2 * ITEM_BYTES, work), side * side)


def _per_chunk(sample: Sample, chunks: int) -> Sample:
    return sample | {"chunks": chunks, "chunks_per_second": chunks / sample["seconds"]}


def _one_by_one(run: Run) -> Sample:
    """A tenth of the same chunks, each by a read of its own."""
    path = run.workspace.directory / "chunks.h5"
    side = int(run.settings["small_chunks_side"])
    rows = max(1, side // 10)

    def work() -> None:
        with penstock.open(path, context=run.context) as file:
            x = file["x"]
            for row in range(rows):
                for column in range(side):
                    at = slice(row * CHUNK_EDGE, (row + 1) * CHUNK_EDGE)
                    x.read((at, slice(column * CHUNK_EDGE, (column + 1) * CHUNK_EDGE)))

    return _per_chunk(timed(rows * side * CHUNK_EDGE**2 * ITEM_BYTES, work), rows * side)
