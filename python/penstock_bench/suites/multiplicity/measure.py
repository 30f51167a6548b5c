"""The suite `multiplicity`: how many requests at once a way of moving bytes needs, from 1 to 512.

Reads of a file, sequential and at random, of a small and a larger size: by threads that wait, by one submission of
many, and by many in flight of which a callback tells the end; into host memory and into the device's. Beside them
copies between host and device, from threads and over streams. Requests go round in the file until the time of a cell
is over, one round at least. What the slots hold at the end is checked on the device; the state of the page cache is
made and proved before each cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock import Error, parse_bytes
from penstock._api import File
from penstock._text import bytes_text
from penstock.calibration.stage import MISSING_CODES
from penstock.calibration.workspace import FILE_SEED, NotPossible, make_cold, make_hot, make_resident
from penstock_bench import _measure
from penstock_bench.engine import loads
from penstock_bench.engine.rounds import Probe, Sample, run_rounds

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

Options = dict[str, Any]


@dataclass(frozen=True)
class RequestsWay:
    """One way of reading with a given multiplicity."""

    memory: str  # the kind of memory that the bytes come to
    options: Callable[[int], Options]  # multiplicity -> options of run_load
    state: str = "cold"


def _threads(**transfer: Any) -> Callable[[int], Options]:
    """As many threads, each waiting for one request after the other."""
    return lambda count: {"threads": count, **transfer}


def _batch(path: str) -> Callable[[int], Options]:
    """One thread that submits all at once and waits for all."""
    return lambda count: {"batch": count, **_path(path, count)}


def _callback(path: str) -> Callable[[int], Options]:
    """One thread that keeps as many in flight; a callback tells it which ended."""
    return lambda count: {
        "in_flight": count,
        "completion": "callback",
        **_path(path, count),
    }


def _path(path: str, depth: int) -> Options:
    if path in ("aio", "uring", "uring-buffered"):
        return {"path": path, "strict": True, "workers": 1, "depth": depth}
    return {"path": path, "strict": path != "auto"}


WAYS: dict[str, RequestsWay] = {
    "CPU sync": RequestsWay("system", _threads(plain=True)),
    "CPU aio": RequestsWay("system", _batch("aio")),
    "CPU aio, callback": RequestsWay("system", _callback("aio")),
    "CPU uring": RequestsWay("system", _batch("uring")),
    "CPU uring, callback": RequestsWay("system", _callback("uring")),
    "CPU uring-buffered": RequestsWay("system", _batch("uring-buffered"), "hot"),
    "CPU uring-buffered, callback": RequestsWay("system", _callback("uring-buffered"), "hot"),
    "GPU sync plain": RequestsWay("device", _threads(plain=True)),
    "GPU sync auto": RequestsWay("device", _threads(path="auto")),
    "GPU sync gds": RequestsWay("device", _threads(path="gds", strict=True)),
    "GPU sync gds-compat": RequestsWay("device", _threads(path="gds-compat", strict=True)),
    "GPU batch auto": RequestsWay("device", _batch("auto")),
    "GPU batch gds-batch": RequestsWay("device", _batch("gds-batch")),
    "GPU async auto, callback": RequestsWay("device", _callback("auto")),
    "GPU stream gds-stream": RequestsWay("device", _batch("gds-stream")),
    "GPU stream gds-stream, callback": RequestsWay("device", _callback("gds-stream")),
}
COPY_WAYS: dict[str, Options] = {
    "sync by threads": {"threads": True, "wait": "each"},
    "streams, each waited for": {"threads": False, "wait": "each"},
    "streams, waited for at the end": {"threads": False, "wait": "at end"},
}
MEMORIES = {"page-locked": "pinned", "pageable": "system"}


@dataclass(frozen=True)
class Read:
    """One cell of reads."""

    way: str
    request_bytes: int
    multiplicity: int
    order: str

    @property
    def name(self) -> str:
        return f"{self.way} {bytes_text(self.request_bytes)} {self.order} x {self.multiplicity}"


@dataclass(frozen=True)
class Copy:
    """One cell of copies."""

    way: str
    request_bytes: int
    multiplicity: int
    to_device: bool
    memory: str  # "page-locked" or "pageable"

    @property
    def direction(self) -> str:
        return "host to device" if self.to_device else "device to host"

    @property
    def name(self) -> str:
        return f"{self.direction} {self.memory} {self.way} {bytes_text(self.request_bytes)} x {self.multiplicity}"


def run_suite(run: Run) -> None:
    settings, place = run.settings, run.workspace
    run.step(0, 0, "making the files")
    place.make(place.source)
    place.make(place.target)
    sizes = [parse_bytes(str(size)) for size in settings["request_bytes"]]
    counts = [int(count) for count in settings["multiplicity"]]
    reads = [Read(*cell) for cell in itertools.product(settings["ways"], sizes, counts, settings["orders"])]
    copies = [Copy(*cell) for cell in itertools.product(settings["copies"], sizes, counts, (True, False), MEMORIES)]
    unknown = [way for way in settings["ways"] if way not in WAYS] + [
        way for way in settings["copies"] if way not in COPY_WAYS
    ]
    if unknown:
        cause = f"there is no way '{unknown[0]}'"
        raise Error(operation="bench", file=run.definition.name, cause=cause, advice="see docs/cli.md")
    for kind in ("device", "system", "pinned"):
        run.memory(max(sizes) * max(counts), kind)  # as much as the largest cell needs
    warm: set[str] = set()
    probes = [Probe(cell.name, partial(_read, run, warm, cell)) for cell in reads]
    probes += [Probe(cell.name, partial(_copy, run, cell)) for cell in copies]
    run_rounds(run, probes)


def _read(run: Run, warm: set[str], cell: Read, turn: int) -> Sample:
    """Reads the file that is dropped from the page cache, or the one that stays there."""
    way = WAYS[cell.way]
    with run.context.open(run.workspace.source if way.state == "cold" else run.workspace.target) as file:
        options: Options = {
            "request_bytes": cell.request_bytes,
            "order": cell.order,
            "seed": 1000 * turn + cell.multiplicity,
            "alignment": cell.request_bytes,
            "whole_span": True,
            "repeat": True,
            "seconds": float(run.settings["cell_seconds"]),
            "stamp_seed": FILE_SEED,
            "check_last": True,
        } | way.options(cell.multiplicity)
        if options.get("plain"):
            options["plain_direct"] = bool(file.facts["direct"])
        memory = run.memory(_measure.load_memory_bytes(run.bytes, **options), way.memory)
        loads.warm_up(run.context, file, memory, **options)
        resident = _make(file, run.bytes, way.state, warm)
        with run.workspace.media.watch() as media:
            report = loads.run_load(run.context, file, memory, **options)
        state = loads.proved(file, run.bytes, way.state, resident)
    return (
        loads.sample_of(report)
        | state
        | media.fields()
        | {
            "subject": "read",
            "way": cell.way,
            "request_bytes": cell.request_bytes,
            "multiplicity": cell.multiplicity,
            "order": cell.order,
            "buffer": way.memory,
            "submissions": report["submissions"],
            "verified_bytes": report["verified_bytes"],
        }
    )


def _make(file: File, bytes: int, state: str, warm: set[str]) -> float:
    """The resident fraction, proved. Nothing drops the hot file: it is read twice once, is `warm` from then on, and is
    looked at only."""
    if state == "cold":
        return make_cold(file, bytes)
    if file.name in warm:
        return make_resident(file, bytes)
    warm.add(file.name)
    return make_hot(file, bytes)


def _copies(run: Run, cell: Copy) -> int:
    """The time ends those that are waited for in between; what is queued at once is bounded by its bytes."""
    if COPY_WAYS[cell.way]["wait"] == "each":
        return 1 << 40
    return max(cell.multiplicity, parse_bytes(str(run.settings["queued_bytes"])) // cell.request_bytes)


def _copy(run: Run, cell: Copy, turn: int) -> Sample:
    bytes = cell.request_bytes * cell.multiplicity
    device, host = run.memory(bytes), run.memory(bytes, MEMORIES[cell.memory])
    shape = {
        "to_device": cell.to_device,
        "bytes": cell.request_bytes,
        "multiplicity": cell.multiplicity,
        "copies": _copies(run, cell),
        "seconds": float(run.settings["cell_seconds"]),
        "stamp_seed": turn + 1,
    }
    try:
        report = _measure.run_copies(run.context._raw, device, host, **shape, **COPY_WAYS[cell.way])
    except Error as error:
        if error.code not in MISSING_CODES:
            raise
        raise NotPossible(error.cause) from None
    return {
        "bytes": report["bytes"],
        "seconds": report["seconds"],
        "operations": report["copies"],
        "operations_per_second": report["copies"] / report["seconds"],
        **loads.latency_of(report["each"]),
        **loads.cpu(report),
        "subject": "copy",
        "way": cell.way,
        "request_bytes": cell.request_bytes,
        "multiplicity": cell.multiplicity,
        "order": cell.direction,
        "buffer": cell.memory,
        "took": "copy",
        "verified_bytes": bytes,
    }
