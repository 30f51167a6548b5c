"""Storms of requests that the device makes itself, as samples of the suite `gpu-io`.

What must stay true: every page that came was checked on the device while it was taken, and the service behind the
mailbox counted as many requests as the device did; otherwise the run fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock import Context, Error
from penstock.calibration.stage import MISSING_CODES
from penstock.calibration.workspace import FILE_SEED, NotPossible
from penstock_bench import _measure
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Sample

Report = dict[str, Any]
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
WORD_BYTES = 8
SERVED = ("service", "mailbox", "nvme")  # the second and third: the same clients, one request of a warp under way


@dataclass(frozen=True)
class Setup:
    """Where requests go: a file, by host threads or by memory that the device reads itself."""

    file: Path
    source: str = "service"  # one of SERVED, or "mapping", "memory"
    service_threads: int = 1
    slots: int = 4096
    slot_bytes: int = 4096
    queues: int = 0  # of NVMe, which slots are shared out among, one of each empty; 0: one for each thread
    writable: bool = False
    warm: bool = False  # the file is in memory: all of it is read once first, so that the service has it mapped

    @property
    def served(self) -> bool:
        """By host threads."""
        return self.source in SERVED

    def options(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "queues": self.queues,
            "slots": self.slots,
            "slot_bytes": self.slot_bytes,
            "service_threads": self.service_threads,
            "writable": self.writable,
        }


@dataclass(frozen=True)
class Shape:
    """How the device asks. `rings`: places where warps begin to look for a slot; 0: one for each warp."""

    blocks: int
    threads: int  # of a block
    in_flight: int = 1  # of a warp
    rings: int = 0
    request_bytes: int = 4096
    sequential: bool = False

    def options(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class StormCell:
    """One storm, and what it is called."""

    name: str
    setup: Setup
    shape: Shape
    subject: str = "memory"
    options: dict[str, Any] = field(default_factory=dict)  # of the storm


@dataclass
class Storms:
    """Those that are there: of services one at a time, for its threads look for work even where there is none."""

    context: Context
    warm_seconds: float  # at most
    _service: tuple[Setup, _measure.Storm] | None = None
    _memories: dict[Setup, _measure.Storm] = field(default_factory=dict)
    _refused: dict[Setup, str] = field(default_factory=dict)

    def get(self, setup: Setup) -> _measure.Storm:
        """Raises NotPossible, with the cause, where the device does not reach the file so."""
        if setup in self._refused:
            raise NotPossible(self._refused[setup])
        if setup in self._memories:
            return self._memories[setup]
        if self._service is not None and self._service[0] == setup:
            return self._service[1]
        self.rest()
        storm = self._made(setup)
        if setup.served:
            self._service = (setup, storm)
        else:
            self._memories[setup] = storm
        return storm

    def _made(self, setup: Setup) -> _measure.Storm:
        try:
            storm = _measure.storm(self.context._raw, setup.file, **setup.options())
        except Error as error:
            if error.code not in MISSING_CODES:
                raise
            self._refused[setup] = error.cause
            raise NotPossible(error.cause) from None
        if setup.warm:
            _warm(storm, setup, self.warm_seconds)
        return storm

    def rest(self) -> None:
        """Ends the service."""
        if self._service is not None:
            self._service[1].close()
            self._service = None

    def close(self) -> None:
        self.rest()
        for storm in self._memories.values():
            storm.close()
        self._memories.clear()


def _warm(storm: _measure.Storm, setup: Setup, seconds: float) -> None:
    in_flight = 4 if setup.source == "service" else 1
    shape = Shape(512, 32, in_flight, request_bytes=setup.slot_bytes, sequential=True).options()
    pages = setup.file.stat().st_size // setup.slot_bytes
    each = -(-pages // storm.warps(**shape))
    storm.run(seconds=seconds, requests=each, checked=False, **shape)


def sampled(storm: _measure.Storm, setup: Setup, shape: Shape, **options: Any) -> Sample:
    """One storm, proved. `options` of the run: seconds, requests, turn, seed, writes, checked."""
    given = {"seed": FILE_SEED} | shape.options() | options
    with Stopwatch() as watch:
        report = storm.run(**given)
    prove(report, setup)
    return sample_of(report, setup, shape, watch) | {
        "verified_bytes": report["requests"] * shape.request_bytes if given.get("checked", True) else 0
    }


def prove(report: Report, setup: Setup) -> None:
    """Raises Error unless every page was right and both sides counted the same."""
    served = sum(requests for requests, _ in report["served"].values())
    if report["bad_words"]:
        wrong = report["bad_words"] * WORD_BYTES
        cause = f"{wrong} bytes are wrong in pages that the device asked for"
    elif report["failures"] or report["failed_requests"]:
        cause = (
            f"{report['failures']} requests of the device failed or were not answered, {report['failed_requests']} of "
            f"them failed in the service (turn {report['turn']}, {setup})"
        )
    elif setup.served and served != report["requests"]:
        cause = f"the device counted {report['requests']} requests, the service {served}"
    else:
        return
    raise Error(
        code="io_error",
        operation="verify",
        file=str(setup.file),
        cause=cause,
        advice="do not trust these results",
    )


def sample_of(report: Report, setup: Setup, shape: Shape, watch: Stopwatch) -> Sample:
    requests, seconds = report["requests"], report["seconds"]
    if not requests:
        raise NotPossible("no request came back in the time of a cell")
    cores = seconds * len(os.sched_getaffinity(0))
    return {
        "bytes": requests * shape.request_bytes,
        "seconds": seconds,
        "operations": requests,
        "operations_per_second": requests / seconds,
        "request_bytes": shape.request_bytes,
        "order": "sequential" if shape.sequential else "random",
        "threads": shape.threads,
        "blocks": shape.blocks,
        "in_flight": shape.in_flight,
        "rings": shape.rings,
        "warps": report["warps"],
        "service_threads": setup.service_threads if setup.served else 0,
        "slots": setup.slots if setup.served else 0,
        "queues": setup.queues,
        "took": took(report, setup),
        "served": report["served"],
        "direct_by": report["direct_by"],
        "busy": report["busy"],
        "turn": report["turn"],
        **watch.cpu(),
        "cpu_user_percent": 100 * watch.cpu_user_s / cores,
        "cpu_system_percent": 100 * watch.cpu_system_s / cores,
        **latency(report),
    }


def took(report: Report, setup: Setup) -> str:
    """What served the requests; of files in memory that the device reads itself, that."""
    return "+".join(sorted(report["served"])) if setup.served else f"device, {setup.source}"


def latency(report: Report) -> Sample:
    """Percentiles and the mean, in cycles of the device's clock and in microseconds, and the histogram; nothing where
    no request was timed."""
    buckets = report["latency"]
    count = sum(many for _, _, many in buckets)
    if not count or not report["cycles_per_ns"]:
        return {}
    per_us = report["cycles_per_ns"] * 1e3
    cycles = {name: percentile(buckets, share) for name, share in PERCENTILES.items()}
    cycles["mean"] = report["cycles"] / count
    return (
        {f"{name}_cycles": value for name, value in cycles.items()}
        | {f"{name}_us": value / per_us for name, value in cycles.items()}
        | {
            "timed": count,
            "cycles_per_ns": report["cycles_per_ns"],
            "latency_cycles": [[low, many] for low, _, many in buckets],
        }
    )


def threads_text(count: int) -> str:
    return f"{count} service thread" + "s" * (count != 1)


def percentile(buckets: Iterable[tuple[int, int, int]], share: float) -> float:
    """A percentile of a histogram of (low, high, count), taken as even within a bucket."""
    listed = list(buckets)
    wanted = share * sum(many for _, _, many in listed)
    below = 0
    for low, high, many in listed:
        if below + many >= wanted:
            return low + (high - low) * (wanted - below) / many
        below += many
    raise ValueError("an empty histogram has no percentiles")
