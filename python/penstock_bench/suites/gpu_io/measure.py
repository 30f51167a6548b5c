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
from penstock_bench.suites.gpu_io.bench import LARGE, ROW_BYTES, SIZES, SMALL, GpuIoBench, name_of, through_cache
from penstock_bench.suites.gpu_io.storms import Setup, Shape, Storms, run, threads_text

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


def run_suite(run_of: Run) -> None:
    place, settings = run_of.workspace, run_of.settings
    parts = _parts(settings)
    run_of.step(0, 0, "making the files")
    names = ("source.bin", "target.bin", "rows.bin")
    seconds = sum(sizes.timed(partial(place.make, place.directory / name)) for name in names)
    data = sizes.made(run_of, settings, len(names) * place.file_bytes / seconds) if "sizes" in parts else []
    ram, kind, ram_bytes = _ram(run_of, parse_bytes(str(settings["ram_bytes"])))
    storms = Storms(run_of.context, float(settings["warm_seconds"]))
    run_of.stack.callback(storms.close)
    bench = GpuIoBench(run_of.context, place, storms, ram, kind, ram_bytes, settings)
    made: dict[str, Callable[[], list[Probe]]] = {
        "memory": lambda: _in_memory(bench),
        "channels": lambda: _channels(bench),
        "blocks": lambda: _blocks(bench),
        "disk": lambda: _disk(bench),
        "writes": lambda: _writes(bench),
        "cache": lambda: _cache(bench),
        "peers": lambda: _peers(bench, run_of.peers),
        "sizes": lambda: sizes.probes(bench, data),
    }
    probes = [probe for part in parts for probe in made[part]()]
    run_rounds(run_of, probes)


def _parts(settings: dict[str, Any]) -> list[str]:
    """Those that the suite names, in the order of PARTS; all of them where it names none."""
    named = settings.get("parts", PARTS)
    unknown = [part for part in named if part not in PARTS]
    if unknown or not named:
        cause = f"parts has '{unknown[0]}', which is not one of " + ", ".join(PARTS) if unknown else "parts is empty"
        raise Error(operation="read suite", cause=cause, advice="name some of them, or leave parts out for all")
    return [part for part in PARTS if part in named]


def _ram(run_of: Run, wanted: int) -> tuple[Path, str, int]:
    """A file in memory: of tmpfs where there is room, else one that the page cache holds."""
    place = run_of.workspace
    free = shutil.disk_usage(SHM).free - SHM_SPARE_BYTES if SHM.is_dir() else 0
    bytes = min(wanted, int(0.4 * free)) >> 21 << 21
    if bytes >= min(wanted, place.file_bytes):
        named = ("bench", "the size of /dev/shm, or a smaller ram_bytes")
        shm = run_of.stack.enter_context(Workspace(run_of.context, SHM, bytes, files=1, named=named))
        return shm.make(shm.source), "tmpfs", bytes
    return place.directory / "rows.bin", "page cache", place.file_bytes


# -- a file in memory


def _in_memory(bench: GpuIoBench) -> list[Probe]:
    small = Shape(*BUSY)
    large = Shape(*STREAM, request_bytes=LARGE, sequential=True)
    read = Shape(*READERS)
    probes = []
    for threads in bench.service_threads:
        service = _service(bench, threads)
        probes.append(_probe(bench, f"{name_of('memory', (SMALL, False))}, {threads_text(threads)}", service, small))
    fast = _service(bench, bench.most_threads)
    probes.append(_probe(bench, "as many warps as for misses", fast, read))
    lone = Setup(bench.ram, service_threads=1, slots=64, warm=True)
    probes += [
        _probe(bench, "one request alone, not checked", lone, Shape(1, 32), checked=False),
        _probe(bench, "one request alone, checked", lone, Shape(1, 32)),
    ]
    probes.append(_probe(bench, name_of("memory", (LARGE, True)), _stream(bench), large))
    for source, what in (("memory", "ceiling, page-locked memory"), ("mapping", "ceiling, registered file")):
        for shape in (read, Shape(*STREAM, request_bytes=LARGE, sequential=True)):
            setup = Setup(bench.ram, source, slot_bytes=LARGE)
            probes.append(_probe(bench, name_of(what + ",", (shape.request_bytes, shape.sequential)), setup, shape))
    return probes


def _channels(bench: GpuIoBench) -> list[Probe]:
    cells = channels.cells(bench.ram, bench.cores)
    return [_probe(bench, name, setup, channels.SHAPE, "channels") for name, setup in cells]


def _service(bench: GpuIoBench, threads: int) -> Setup:
    return Setup(bench.ram, service_threads=threads, slots=bench.cache_slots, warm=True)


def _stream(bench: GpuIoBench) -> Setup:
    return Setup(bench.ram, service_threads=bench.most_threads, slots=512, slot_bytes=LARGE, warm=True)


def _probe(bench: GpuIoBench, name: str, setup: Setup, shape: Shape, subject: str = "memory", **options: Any) -> Probe:
    return Probe(name, partial(_stormed, bench, setup, shape, {"subject": subject}, options), str(setup))


def _stormed(
    bench: GpuIoBench, setup: Setup, shape: Shape, says: dict[str, Any], options: dict[str, Any], _turn: int
) -> Sample:
    """A storm on the file in memory."""
    if bench.ram_kind == "page cache":
        if setup.writable:
            raise NotPossible("there is no room for the file in /dev/shm, and one on the disk is not written to here")
        with bench.context.open(setup.file) as file:
            make_resident(file, bench.ram_bytes)
    storm = bench.storms.get(setup)
    sample = run(storm, setup, shape, seconds=bench.cell_seconds, **options)
    return sample | {"cache": "hot", "memory": bench.ram_kind} | says


def _blocks(bench: GpuIoBench) -> list[Probe]:
    cells = blocks.of(bench.settings, _service(bench, bench.most_threads), _stream(bench), name_of)
    return [_probe(bench, one.name, one.setup, one.shape, one.subject, **one.options) for one in cells]


# -- the disk


def _disk(bench: GpuIoBench) -> list[Probe]:
    probes = []
    for request in ((SMALL, False), (LARGE, True)):
        name = name_of("disk", request)
        probes.append(Probe(name, _of("disk", partial(_cold, bench, request)), name))
        for what, way in _host_ways(bench, request[0]):
            probes.append(Probe(f"{name}, {what}", _of("disk", partial(_host_cold, bench, request, way)), name))
    return probes


def _host_ways(bench: GpuIoBench, size: int) -> list[tuple[str, Callable[..., Any]]]:
    count = int(bench.settings["host_threads"][0 if size == SMALL else 1])
    return [("host threads", host.threads(count)), ("host io_uring", host.uring)]


def _of(subject: str, measure: Callable[[int], Sample]) -> Callable[[int], Sample]:
    return lambda turn: measure(turn) | {"subject": subject}


def _host_cold(bench: GpuIoBench, request: tuple[int, bool], way: Callable[..., Any], turn: int) -> Sample:
    return host.cold(bench, request, way, turn)


def _disk_setup(bench: GpuIoBench, file: Path, size: int, writable: bool = False) -> Setup:
    threads = min(DISK_THREADS, bench.cores)
    slots = 4096 if size == SMALL else 256
    return Setup(file, service_threads=threads, slots=slots, slot_bytes=size, writable=writable)


def _cold(bench: GpuIoBench, request: tuple[int, bool], _turn: int) -> Sample:
    setup = _disk_setup(bench, bench.source, request[0])
    shape = Shape(*DISK[request[0]], request_bytes=request[0], sequential=request[1])
    return sizes.cold_storm(bench, setup, shape, bench.bytes)


def _writes(bench: GpuIoBench) -> list[Probe]:
    probes = []
    for request in SIZES:
        name = name_of("write", request)
        probes.append(Probe(name, _of("write", partial(_write, bench, request)), name))
        for what, way in _host_ways(bench, request[0]):
            probes.append(Probe(f"{name}, {what}", _of("write", partial(_host_write, bench, request, way)), name))
    for size in (SMALL, LARGE):
        probes.append(Probe(through_cache(size), _of("write", partial(_write_through_cache, bench, size)), "cache"))
    return probes


def _write_through_cache(bench: GpuIoBench, size: int, _turn: int) -> Sample:
    setup = _disk_setup(bench, bench.target, size, writable=True)
    return cached.writes(bench, size, setup.slots, setup.service_threads)


def _host_write(bench: GpuIoBench, request: tuple[int, bool], way: Callable[..., Any], turn: int) -> Sample:
    return host.write(bench, request, way, turn)


def _write(bench: GpuIoBench, request: tuple[int, bool], _turn: int) -> Sample:
    """Full pages, stamped by the device with a seed of their own. Then the device reads the same pages from the disk:
    what was lost or went elsewhere has another seed."""
    size, sequential = request
    setup = _disk_setup(bench, bench.target, size, writable=True)
    shape = Shape(*DISK[size], request_bytes=size, sequential=sequential)
    with bench.context.open(bench.target) as file:
        make_cold(file, bench.bytes)
        storm = bench.storms.get(setup)
        each = max(1, bench.write_bytes[size] // size // storm.warps(**shape.options()))
        planned = {"seed": next(bench.seeds), "requests": each, "seconds": WRITE_SECONDS}
        with bench.workspace.media.watch() as media:
            sample = run(storm, setup, shape, writes=True, **planned)
        if sample["operations"] != each * sample["warps"]:
            raise NotPossible(f"the disk did not take {each * sample['warps']} requests in {WRITE_SECONDS:g} s")
        make_cold(file, bench.bytes)
        again = run(storm, setup, shape, turn=sample["turn"], **planned)
    return sample | media.fields() | {"verified_bytes": again["verified_bytes"], "read_back_s": again["seconds"]}


# -- the page cache, and other ways


def _cache(bench: GpuIoBench) -> list[Probe]:
    tiles = cached.TILE_ITEMS
    cells: dict[str, Callable[[int], Sample]] = {
        "element loads, all hits": lambda _: cached.loads(bench, 1, True),
        "element loads, plain memory": lambda _: cached.loads(bench, 1, False),
        "tiles, all hits": lambda _: cached.loads(bench, tiles, True),
        "tiles, plain memory": lambda _: cached.loads(bench, tiles, False),
        "rows gathered, all misses": lambda turn: cached.misses(bench, turn),
        "one miss alone": lambda _: cached.one_miss(bench, False),
        "one miss alone, full cache": lambda _: cached.one_miss(bench, True),
        "sweep with advice": lambda _: cached.sweep(bench, "sweep"),
        "sweep without advice": lambda _: cached.sweep(bench, "none"),
        "pages written to a registered file": lambda _: cached.stores(bench),
    }
    probes = [Probe(name, _of("cache", measure), "cache") for name, measure in cells.items()]
    gathers = [("rows gathered", bench.rows)]
    if bench.ram_kind == "tmpfs" and bench.ram_bytes >= bench.bytes:
        gathers.append(("rows gathered from tmpfs", bench.ram))
    return probes + [Probe(name, _of("rows", partial(cached.gather, bench, file)), "rows") for name, file in gathers]


def _peers(bench: GpuIoBench, chosen: frozenset[str]) -> list[Probe]:
    cells: list[tuple[str, str, str, Callable[[int], Sample]]] = [
        ("", "cached file", "pread and copy, 4 KiB", partial(host.to_device, bench, host.pread_and_copy, SMALL)),
        ("cufile", "cached file", "cuFile compat, 4 KiB", partial(host.to_device, bench, host.cufile, SMALL)),
        ("cufile", "rows", "rows by cuFile compat", partial(host.to_device, bench, host.cufile, ROW_BYTES)),
        ("numpy", "rows", "rows by numpy.memmap and copy", partial(host.memmap_and_copy, bench)),
    ]
    probes = [Probe(name, _of(subject, cell), subject) for peer, subject, name, cell in cells if peer in chosen | {""}]
    hot = Setup(bench.rows, service_threads=bench.most_threads, slots=bench.cache_slots, warm=True)
    return [*probes, Probe("cached file, 4 KiB", _of("cached file", partial(_hot, bench, hot)), "cached file")]


def _hot(bench: GpuIoBench, setup: Setup, _turn: int) -> Sample:
    """A sample of a file on the disk that the page cache holds."""
    with bench.context.open(setup.file) as file:
        make_resident(file, bench.bytes)
        storm = bench.storms.get(setup)
        return run(storm, setup, Shape(*BUSY), seconds=bench.cell_seconds) | {"cache": "hot"}
