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
from penstock.cli.show import Step
from penstock.formats import registry
from penstock.formats.model import NewDataset
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.rounds import Probe, Rounds, Sample, run_rounds
from penstock_bench.engine.stamped import check
from penstock_bench.suites.formats import (
    decoding as format_decoding,
    particles as format_particles,
    peers as format_peers,
)
from penstock_bench.suites.formats.bench import ITEM_BYTES, SUFFIXES, FormatsBench, hot, timed

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

FIELDS = 10
INDEX_CHUNK_BYTES = 32
CHUNK_EDGE = 64  # float32 chunks of 16 KiB


def run_suite(run_of: Run) -> None:
    device = run_of.context.allocate(run_of.definition.file_bytes, first_touch="gpu")
    bench = FormatsBench(
        run_of.context, run_of.workspace, run_of.results, run_of.definition.settings["formats"], device, run_of.peers
    )
    run(bench, run_of.definition, run_of.step)


def run(bench: FormatsBench, definition: Definition, step: Step) -> None:
    """Makes one file a format, then all probes in rounds; then what is counted, not moved."""
    _need_room(bench)
    for format in SUFFIXES:
        step(0, 0, f"making the {format} file")
        _make(bench, format)
    _make_small(bench)
    format_decoding.make(bench)
    format_particles.make(bench)
    probes = _large(bench) + _small(bench) + format_decoding.probes(bench) + format_particles.probes(bench)
    probes += format_peers.probes(bench)
    run_rounds(bench.results, "formats", probes, Rounds(definition.repeats, definition.seconds), step)


def tensors(bench: FormatsBench) -> dict[str, Array]:
    """The payload as the tensors of a model: equal parts of one buffer."""
    count = int(bench.settings["tensors"])
    each = bench.bytes // count // 4096 * 4096
    return {
        f"layer{i:03d}.weight": Array(bench.device, "float32", (each // ITEM_BYTES,), i * each) for i in range(count)
    }


def _contents(bench: FormatsBench, format: str) -> dict[str, Array]:
    return tensors(bench) if format == "safetensors" else {"data": bench.payload()}


def _make(bench: FormatsBench, format: str) -> None:
    bench.context.stamp(bench.device, 0, FILE_SEED)
    contents = _contents(bench, format)
    with penstock.create(bench.file(format), context=bench.context, durable=True) as file:
        file.write_many(contents).result()


def _large(bench: FormatsBench) -> list[Probe]:
    probes = [
        Probe("raw read", lambda _: _raw_read(bench)),
        Probe("raw write", lambda turn: _raw_write(bench, turn)),
        Probe("safetensors load", lambda _: _load(bench)),
    ]
    for format in ("HDF5", "netCDF-4", "NPY", "Zarr"):
        probes.append(Probe(f"{format} read", partial(_read, bench, format)))
        probes.append(Probe(f"{format} write", partial(_write, bench, format)))
    return probes


def _raw_read(bench: FormatsBench) -> Sample:
    hot(bench, bench.workspace.source)
    poison(bench.context, bench.device)

    def work() -> None:
        with bench.context.open(bench.workspace.source) as file:
            file.read(bench.device)

    sample = timed(bench.bytes, work)
    check(bench.context, bench.workspace.source, bench.device, FILE_SEED)
    return sample


def _raw_write(bench: FormatsBench, turn: int) -> Sample:
    path = bench.workspace.directory / "written.bin"
    bench.context.stamp(bench.device, 0, 100 + turn)

    def work() -> None:
        with bench.context.create(path, bench.bytes) as file:
            file.write(bench.device)

    sample = timed(bench.bytes, work)
    poison(bench.context, bench.device)
    with bench.context.open(path) as file:
        file.read(bench.device, path="buffered")
    check(bench.context, path, bench.device, 100 + turn)
    path.unlink()
    return sample


def _read(bench: FormatsBench, format: str, _: int) -> Sample:
    path, out = bench.file(format), bench.payload()
    hot(bench, path)
    poison(bench.context, bench.device)

    def work() -> None:
        with penstock.open(path, context=bench.context) as file:
            file["data"].read(out=out)

    sample = timed(bench.bytes, work)
    format_peers.verify(bench.context, path, "data", (bench.device, 0, FILE_SEED))
    return sample


def _write(bench: FormatsBench, format: str, turn: int) -> Sample:
    path = bench.workspace.directory / f"written.{SUFFIXES[format]}"
    bench.context.stamp(bench.device, 0, 100 + turn)
    payload = bench.payload()

    def work() -> None:
        with penstock.create(path, context=bench.context) as file:
            file["data"] = payload

    sample = timed(bench.bytes, work)
    poison(bench.context, bench.device)
    with penstock.open(path, context=bench.context) as file:
        file["data"].read(out=payload)
    format_peers.verify(bench.context, path, "data", (bench.device, 0, 100 + turn))
    format_peers.remove(path)
    return sample


def _load(bench: FormatsBench) -> Sample:
    path = bench.file("safetensors")
    hot(bench, path)
    poison_staging(bench.context)
    found: dict[str, Array] = {}
    sample = timed(path.stat().st_size, lambda: found.update(penstock.load(path, context=bench.context)))
    for number, name in enumerate(sorted(found)):
        array = found[name]
        format_peers.verify(bench.context, path, name, (array.as_bytes(), number * array.nbytes, FILE_SEED))
        bench.context.fill(array.as_bytes(), POISON)  # the next load may get this memory: bytes that never come show
    return sample


# -- many small things


def _need_room(bench: FormatsBench) -> None:
    """Error when the files are smaller than their small chunks together."""
    needed = (int(bench.settings["small_chunks_side"]) * CHUNK_EDGE) ** 2 * ITEM_BYTES
    if bench.bytes < needed:
        raise penstock.Error(
            code="invalid_argument",
            operation="bench formats",
            cause=f"files of {bench.bytes} bytes are too small for its small chunks, {needed} bytes",
            advice=f"give --file-bytes {-(-needed // (1 << 20))}MiB or more",
        )


def _make_small(bench: FormatsBench) -> None:
    folder = bench.workspace.directory
    chunks = int(bench.settings["index_chunks"])
    with penstock.create(folder / "index.h5", context=bench.context) as file:
        file.create_dataset("x", (chunks, INDEX_CHUNK_BYTES // 4), "float32", chunk_shape=(1, INDEX_CHUNK_BYTES // 4))
    side = int(bench.settings["small_chunks_side"])
    value = Array(bench.device, "float32", (side * CHUNK_EDGE, side * CHUNK_EDGE))
    with penstock.create(folder / "chunks.h5", context=bench.context) as file:
        x = file.create_dataset("x", value.shape, "float32", chunk_shape=(CHUNK_EDGE, CHUNK_EDGE))
        x[...] = value
    with penstock.create(folder / "small.h5", context=bench.context) as file:
        file["x"] = Array(bench.device, "float32", (1024,))


def _small(bench: FormatsBench) -> list[Probe]:
    return [
        Probe("index of many chunks", lambda _: _index(bench)),
        Probe("open and read 4 KiB", lambda _: _open_small(bench)),
        Probe("snapshot of 10 fields, metadata", lambda turn: _metadata(bench, turn)),
        Probe("small chunks, one batch", lambda _: _batch(bench)),
        Probe("small chunks, one by one", lambda _: _one_by_one(bench)),
    ]


def _index(bench: FormatsBench) -> Sample:
    """Where 20,000 chunks lie. Neighbours are told as one extent; their bytes say that none is missing."""
    path, chunks = bench.workspace.directory / "index.h5", int(bench.settings["index_chunks"])
    found = 0

    def work() -> None:
        nonlocal found
        with penstock.open(path, context=bench.context) as file:
            found = sum(extent.bytes for extent in file["x"].extents())

    sample = timed(path.stat().st_size, work)
    if found != chunks * INDEX_CHUNK_BYTES:
        raise ValueError(f"{found} bytes of {chunks} chunks were found in {path}")
    return sample | {"chunks": chunks}


def _open_small(bench: FormatsBench) -> Sample:
    path = bench.workspace.directory / "small.h5"
    each = []
    for _ in range(int(bench.settings["small_opens"])):
        start = time.perf_counter()
        with penstock.open(path, context=bench.context) as file:
            file["x"].read()
        each.append(time.perf_counter() - start)
    return {"bytes": 4096 * len(each), "seconds": sum(each), "median_ms": statistics.median(each) * 1e3} | _no_cpu()


def _no_cpu() -> dict[str, float]:
    return {"cpu_user_s": 0.0, "cpu_system_s": 0.0}


def _metadata(bench: FormatsBench, turn: int) -> Sample:
    """Creating and closing a snapshot without moving its bytes: what the format costs."""
    path = bench.workspace.directory / f"metadata-{turn}.h5"
    shape = (bench.bytes // FIELDS // ITEM_BYTES,)
    fields = [NewDataset(f"PartType1/field{i}", shape, DType.of("float32")) for i in range(FIELDS)]

    def work() -> None:
        writer = registry.function(registry.by_name("hdf5"), "writer")(str(path))
        writer.create(fields)
        writer.publish(False)

    sample = timed(1, work)  # no bytes: seconds are what counts
    path.unlink()
    return sample | {"fields": FIELDS}


def _batch(bench: FormatsBench) -> Sample:
    path = bench.workspace.directory / "chunks.h5"
    hot(bench, path)

    def work() -> None:
        with penstock.open(path, context=bench.context) as file:
            file["x"].read()

    side = int(bench.settings["small_chunks_side"])
    return _per_chunk(timed((side * CHUNK_EDGE) ** 2 * ITEM_BYTES, work), side * side)


def _per_chunk(sample: Sample, chunks: int) -> Sample:
    return sample | {"chunks": chunks, "chunks_per_second": chunks / sample["seconds"]}


def _one_by_one(bench: FormatsBench) -> Sample:
    """A tenth of the same chunks, each by a read of its own."""
    path = bench.workspace.directory / "chunks.h5"
    side = int(bench.settings["small_chunks_side"])
    rows = max(1, side // 10)

    def work() -> None:
        with penstock.open(path, context=bench.context) as file:
            x = file["x"]
            for row in range(rows):
                for column in range(side):
                    at = slice(row * CHUNK_EDGE, (row + 1) * CHUNK_EDGE)
                    x.read((at, slice(column * CHUNK_EDGE, (column + 1) * CHUNK_EDGE)))

    return _per_chunk(timed(rows * side * CHUNK_EDGE**2 * ITEM_BYTES, work), rows * side)
