"""The suite `io-size`: sequential reads of a file that is not cached, by many workers, at several request sizes.

Paths to the device stand against the plain way from storage through the CPU's memory to the device, in one run. Each
worker is a thread with its own part of the file; each cell begins with a cold file, proved, and ends when all is read
or at its time limit, whichever comes first; every byte that came is checked on the device. With a second directory
every cell runs there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import parse_bytes
from penstock._api import File
from penstock._text import bytes_text
from penstock.calibration.machine import mount_of
from penstock.calibration.media import Media, from_another_cache
from penstock.calibration.poison import poison
from penstock.calibration.workspace import NotPossible, Workspace, make_cold
from penstock_bench.engine import loads
from penstock_bench.engine.power import PowerMeter
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, run_rounds

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

PLAIN = "plain"  # the way without Penstock, among the paths


@dataclass(frozen=True)
class Place:
    """A directory that is measured, by its file. Cells open that anew: nothing a cell leaves on it reaches the next."""

    name: str  # "local", "remote"
    path: Path
    media: Media
    file_system: str
    mount_options: str


@dataclass(frozen=True)
class IoSizeCell:
    """One point of the grid."""

    path: str
    request_bytes: int
    workers: int
    place: Place

    @property
    def name(self) -> str:
        where = "" if self.place.name == "local" else f", {self.place.name}"
        return f"{self.path} {bytes_text(self.request_bytes)} x {self.workers}{where}"


def run_suite(run: Run) -> None:
    settings = run.settings
    places = [_place(run, "local", run.workspace)]
    if run.remote is not None:
        remote = run.stack.enter_context(
            Workspace(run.context, run.remote, run.bytes, files=1, named=("bench", "--remote"))
        )
        places.append(_place(run, "remote", remote))
    power = PowerMeter(run.context.device)
    cells = [
        IoSizeCell(path, parse_bytes(str(size)), int(workers), place)
        for path in settings["paths"]
        for size in settings["request_bytes"]
        for workers in settings["workers"]
        for place in places
    ]
    probes = [Probe(cell.name, partial(_measure, run, power, cell)) for cell in cells]
    run_rounds(run, probes)


def _place(run: Run, name: str, workspace: Workspace) -> Place:
    run.step(0, 0, f"making the {name} file")
    path: Path = workspace.make(workspace.source)
    mount = mount_of(workspace.directory)
    return Place(name, path, workspace.media, mount["type"], mount["options"])


def _measure(run: Run, power: PowerMeter, cell: IoSizeCell, _turn: int) -> Sample:
    with run.context.open(cell.place.path) as file:
        return _measured(run, power, cell, file)


def _measured(run: Run, power: PowerMeter, cell: IoSizeCell, file: File) -> Sample:
    context, device, seconds = run.context, run.device, float(run.settings["cell_seconds"])
    load = {"request_bytes": cell.request_bytes, "threads": cell.workers, "mirror": True, **_way(cell, file)}
    loads.warm_up(context, file, device, **load)
    resident = make_cold(file, run.bytes)
    poison(context, device)
    with cell.place.media.watch() as media, power.measure() as drawn:
        report = loads.run_load(context, file, device, seconds=seconds, **load)
    state = loads.proved(file, run.bytes, "cold", resident)
    with Stopwatch() as checking:
        verified = loads.verify_moved(context, file, device, report["moved"])
    cached = from_another_cache(media, report["bytes"])
    if cached:
        raise NotPossible(cached)
    return (
        loads.sample_of(report)
        | state
        | media.fields()
        | {
            "path": cell.path,
            "request_bytes": cell.request_bytes,
            "workers": cell.workers,
            "place": cell.place.name,
            "file_system": cell.place.file_system,
            "mount_options": cell.place.mount_options,
            "verified_bytes": verified,
            "verify_s": checking.seconds,
            "power": drawn.as_dict(),
        }
    )


def _way(cell: IoSizeCell, file: File) -> dict[str, Any]:
    if cell.path == PLAIN:
        return {"plain": True, "plain_direct": bool(file.facts["direct"])}
    return {"path": cell.path, "strict": cell.path != "auto"}
