"""The suite `gpu-io`: requests that the device's own threads make, beside the ceilings of link and disk.

Raw requests of a file in memory by the number of service threads, by threads a block, and one alone; of the disk, read
and written, beside what the host alone reaches there; and the page cache on top: hits, misses, sweeps, gathers of rows
beside NumPy and cuFile. Files are stamped and preconditioned, all that comes is checked on the device.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Error, parse_bytes
from penstock.calibration.workspace import NotPossible, Workspace, make_cold, make_resident
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.suites.gpu_io import blocks, cache as cached, channels, host, sizes
from penstock_bench.suites.gpu_io.own import LARGE, ROW_BYTES, SIZES, SMALL, GpuIo, name_of, rows_of, through_cache
from penstock_bench.suites.gpu_io.storms import Setup, Shape, StormCell, Storms, sampled, threads_text

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

SHM = Path("/dev/shm")
SHM_SPARE_BYTES = 2 << 30
BUSY = (512, 32, 8)  # blocks, threads, in flight: many small requests
STREAM = (256, 32, 2)  # large ones
DISK = {SMALL: (1024, 32, 1), LARGE: (64, 32, 2)}
READERS = (1056, 128, 1)  # for memory that the device reads itself, and beside the page cache's own kernel
DISK_THREADS = 4  # of the service
WRITE_SECONDS = 20.0  # at most
PARTS = ("memory", "channels", "blocks", "disk", "writes", "cache", "peers", "sizes")


def run_suite(run: Run) -> None:
    place, settings = run.workspace, run.settings
    parts = _parts(settings)
    run.step(0, 0, "making the files")
    names = ("source.bin", "target.bin", "rows.bin")
    seconds = sum(sizes.timed(partial(place.make, place.directory / name)) for name in names)
    data = sizes.made(run, len(names) * place.file_bytes / seconds) if "sizes" in parts else []
    ram, kind, ram_bytes = _ram(run, parse_bytes(str(settings["ram_bytes"])))
    storms = Storms(run.context, float(settings["warm_seconds"]))
    run.stack.callback(storms.close)
    own = GpuIo(storms, ram, kind, ram_bytes, settings, run.bytes)
    made: dict[str, Callable[[], list[Probe]]] = {
        "memory": lambda: _of_storms(run, own, _in_memory(own)),
        "channels": lambda: _of_storms(run, own, _channels(own)),
        "blocks": lambda: _of_storms(run, own, _blocks(own)),
        "disk": lambda: _disk(run, own),
        "writes": lambda: _writes(run, own),
        "cache": lambda: _cache(run, own),
        "peers": lambda: _peers(run, own),
        "sizes": lambda: sizes.probes(run, own, data),
    }
    probes = [probe for part in parts for probe in made[part]()]
    run_rounds(run, probes)


def _parts(settings: dict[str, Any]) -> list[str]:
    """Those that the suite names, in the order of PARTS; all of them where it names none."""
    named = settings.get("parts", PARTS)
    unknown = [part for part in named if part not in PARTS]
    if unknown or not named:
        cause = f"parts has '{unknown[0]}', which is not one of " + ", ".join(PARTS) if unknown else "parts is empty"
        raise Error(operation="read suite", cause=cause, advice="name some of them, or leave parts out for all")
    return [part for part in PARTS if part in named]


def _ram(run: Run, wanted: int) -> tuple[Path, str, int]:
    """A file in memory: of tmpfs where there is room, else one that the page cache holds."""
    place = run.workspace
    free = shutil.disk_usage(SHM).free - SHM_SPARE_BYTES if SHM.is_dir() else 0
    bytes = min(wanted, int(0.4 * free)) >> 21 << 21
    if bytes >= min(wanted, place.file_bytes):
        named = ("bench", "the size of /dev/shm, or a smaller ram_bytes")
        shm = run.stack.enter_context(Workspace(run.context, SHM, bytes, files=1, named=named))
        return shm.make(shm.source), "tmpfs", bytes
    return place.directory / "rows.bin", "page cache", place.file_bytes


# -- a file in memory


def _of_storms(run: Run, own: GpuIo, cells: list[StormCell]) -> list[Probe]:
    return [Probe(cell.name, partial(_stormed, run, own, cell), str(cell.setup)) for cell in cells]


def _stormed(run: Run, own: GpuIo, cell: StormCell, _turn: int) -> Sample:
    """A storm on the file in memory."""
    if own.ram_kind == "page cache":
        if cell.setup.writable:
            raise NotPossible("there is no room for the file in /dev/shm, and one on the disk is not written to here")
        with run.context.open(cell.setup.file) as file:
            make_resident(file, own.ram_bytes)
    storm = own.storms.get(cell.setup)
    sample = sampled(storm, cell.setup, cell.shape, seconds=own.cell_seconds, **cell.options)
    return sample | {"cache": "hot", "memory": own.ram_kind, "subject": cell.subject}


def _in_memory(own: GpuIo) -> list[StormCell]:
    small = Shape(*BUSY)
    large = Shape(*STREAM, request_bytes=LARGE, sequential=True)
    read, row = Shape(*READERS), Shape(*READERS, request_bytes=ROW_BYTES)
    lone = Setup(own.ram, service_threads=1, slots=64, warm=True)
    cells = [
        StormCell(f"{name_of('memory', (SMALL, False))}, {threads_text(threads)}", _service(own, threads), small)
        for threads in own.service_threads
    ]
    cells += [
        StormCell("as many warps as for misses", _service(own, own.most_threads), read),
        StormCell("one request alone, not checked", lone, Shape(1, 32), options={"checked": False}),
        StormCell("one request alone, checked", lone, Shape(1, 32)),
        StormCell(name_of("memory", (LARGE, True)), _stream(own), large),
    ]
    for source, what in (("memory", "ceiling, page-locked memory"), ("mapping", "ceiling, registered file")):
        setup = Setup(own.ram, source, slot_bytes=LARGE)
        for shape in (read, large, *([row] if source == "mapping" else [])):
            cells.append(StormCell(name_of(what + ",", (shape.request_bytes, shape.sequential)), setup, shape))
    return cells


def _channels(own: GpuIo) -> list[StormCell]:
    return [StormCell(name, setup, channels.SHAPE, "channels") for name, setup in channels.cells(own.ram, own.cores)]


def _blocks(own: GpuIo) -> list[StormCell]:
    return blocks.of(own.settings, _service(own, own.most_threads), _stream(own), name_of)


def _service(own: GpuIo, threads: int) -> Setup:
    return Setup(own.ram, service_threads=threads, slots=own.cache_slots, warm=True)


def _stream(own: GpuIo) -> Setup:
    return Setup(own.ram, service_threads=own.most_threads, slots=512, slot_bytes=LARGE, warm=True)


# -- the disk


def _disk(run: Run, own: GpuIo) -> list[Probe]:
    probes = []
    for request in ((SMALL, False), (LARGE, True)):
        name = name_of("disk", request)
        probes.append(Probe(name, _of("disk", partial(_cold, run, own, request)), name))
        for what, way in _host_ways(own, request[0]):
            probes.append(Probe(f"{name}, {what}", _of("disk", partial(host.cold, run, own, request, way)), name))
    return probes


def _host_ways(own: GpuIo, size: int) -> list[tuple[str, Callable[..., Any]]]:
    count = int(own.settings["host_threads"][0 if size == SMALL else 1])
    return [("host threads", host.threads(count)), ("host io_uring", host.uring)]


def _of(subject: str, measure: Callable[[int], Sample]) -> Callable[[int], Sample]:
    return lambda turn: measure(turn) | {"subject": subject}


def _disk_setup(own: GpuIo, file: Path, size: int, writable: bool = False) -> Setup:
    threads = min(DISK_THREADS, own.cores)
    slots = 4096 if size == SMALL else 256
    return Setup(file, service_threads=threads, slots=slots, slot_bytes=size, writable=writable)


def _cold(run: Run, own: GpuIo, request: tuple[int, bool], _turn: int) -> Sample:
    setup = _disk_setup(own, run.workspace.source, request[0])
    shape = Shape(*DISK[request[0]], request_bytes=request[0], sequential=request[1])
    return sizes.cold_storm(run, own, setup, shape, run.bytes)


def _writes(run: Run, own: GpuIo) -> list[Probe]:
    probes = []
    for request in SIZES:
        name = name_of("write", request)
        probes.append(Probe(name, _of("write", partial(_write, run, own, request)), name))
        for what, way in _host_ways(own, request[0]):
            probes.append(Probe(f"{name}, {what}", _of("write", partial(host.write, run, own, request, way)), name))
    for size in (SMALL, LARGE):
        probes.append(Probe(through_cache(size), _of("write", partial(_write_through_cache, run, own, size)), "cache"))
    return probes


def _write_through_cache(run: Run, own: GpuIo, size: int, _turn: int) -> Sample:
    setup = _disk_setup(own, run.workspace.target, size, writable=True)
    return cached.writes(run, own, size, setup.slots, setup.service_threads)


def _write(run: Run, own: GpuIo, request: tuple[int, bool], _turn: int) -> Sample:
    """Full pages, stamped by the device with a seed of their own. Then the device reads the same pages from the disk:
    what was lost or went elsewhere has another seed."""
    size, sequential = request
    setup = _disk_setup(own, run.workspace.target, size, writable=True)
    shape = Shape(*DISK[size], request_bytes=size, sequential=sequential)
    with run.context.open(run.workspace.target) as file:
        make_cold(file, run.bytes)
        storm = own.storms.get(setup)
        each = max(1, own.write_bytes[size] // size // storm.warps(**shape.options()))
        planned = {"seed": next(run.seeds), "requests": each, "seconds": WRITE_SECONDS}
        with run.workspace.media.watch() as media:
            sample = sampled(storm, setup, shape, writes=True, **planned)
        if sample["operations"] != each * sample["warps"]:
            raise NotPossible(f"the disk did not take {each * sample['warps']} requests in {WRITE_SECONDS:g} s")
        make_cold(file, run.bytes)
        again = sampled(storm, setup, shape, turn=sample["turn"], **planned)
    return sample | media.fields() | {"verified_bytes": again["verified_bytes"], "read_back_s": again["seconds"]}


# -- the page cache, and other ways


def _cache(run: Run, own: GpuIo) -> list[Probe]:
    tiles = cached.TILE_ITEMS
    cells: dict[str, Callable[[int], Sample]] = {
        "element loads, all hits": lambda _: cached.loads(run, own, 1, True),
        "element loads, plain memory": lambda _: cached.loads(run, own, 1, False),
        "tiles, all hits": lambda _: cached.loads(run, own, tiles, True),
        "tiles, plain memory": lambda _: cached.loads(run, own, tiles, False),
        "rows gathered, all misses": lambda turn: cached.misses(run, own, turn),
        "one miss alone": lambda _: cached.one_miss(run, own, False),
        "one miss alone, full cache": lambda _: cached.one_miss(run, own, True),
        "sweep with advice": lambda _: cached.sweep(run, own, "sweep"),
        "sweep without advice": lambda _: cached.sweep(run, own, "none"),
        "pages written to a registered file": lambda _: cached.stores(run, own),
    }
    probes = [Probe(name, _of("cache", measure), "cache") for name, measure in cells.items()]
    gathers = [("rows gathered", rows_of(run), "auto")]
    if own.ram_kind == "tmpfs" and own.ram_bytes >= run.bytes:
        name = "rows gathered from tmpfs"
        gathers += [(name, own.ram, "auto"), (f"{name} by pages", own.ram, "pages")]
    return probes + [
        Probe(name, _of("rows", partial(cached.gather, run, own, (file, fetch))), "rows")
        for name, file, fetch in gathers
    ]


def _peers(run: Run, own: GpuIo) -> list[Probe]:
    cells: list[tuple[str, str, str, Callable[[int], Sample]]] = [
        ("", "cached file", "pread and copy, 4 KiB", partial(host.to_device, run, own, host.pread_and_copy, SMALL)),
        ("cufile", "cached file", "cuFile compat, 4 KiB", partial(host.to_device, run, own, host.cufile, SMALL)),
        ("cufile", "rows", "rows by cuFile compat", partial(host.to_device, run, own, host.cufile, ROW_BYTES)),
        ("numpy", "rows", "rows by numpy.memmap and copy", partial(host.memmap_and_copy, run, own)),
    ]
    probes = [
        Probe(name, _of(subject, cell), subject) for peer, subject, name, cell in cells if peer in run.peers | {""}
    ]
    hot = Setup(rows_of(run), service_threads=own.most_threads, slots=own.cache_slots, warm=True)
    return [*probes, Probe("cached file, 4 KiB", _of("cached file", partial(_hot, run, own, hot)), "cached file")]


def _hot(run: Run, own: GpuIo, setup: Setup, _turn: int) -> Sample:
    """A sample of a file on the disk that the page cache holds."""
    with run.context.open(setup.file) as file:
        make_resident(file, run.bytes)
        storm = own.storms.get(setup)
        return sampled(storm, setup, Shape(*BUSY), seconds=own.cell_seconds) | {"cache": "hot"}
