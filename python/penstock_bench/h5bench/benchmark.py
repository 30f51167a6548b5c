"""What a benchmark of h5bench is: its options, its steps and what it reports."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock import Array, Context, Error
from penstock.formats.datafile import DataFile
from penstock.formats.pending import Pending
from penstock_bench.h5bench.config import H5benchRun
from penstock_bench.h5bench.data import PARTICLE_BYTES
from penstock_bench.h5bench.parts import Part, parts_of

RULE = "penstock_h5bench"  # attribute of a step: which particles were written, with the values of h5bench_data


_MEMORY_SHARE = 0.8


Row = tuple[str, Any, str]  # metric, value, unit


@dataclass(frozen=True)
class Options:
    """What h5bench's configurations do not say."""

    durable: bool = False  # close() is done when the file is on stable storage
    verify: bool = True
    cold: bool = False  # reads find nothing of the file in the page cache


@dataclass
class Times:
    """Seconds by what they were spent on."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.spent[what] = self[what] + time.perf_counter() - began

    def __getitem__(self, what: str) -> float:
        return self.spent.get(what, 0.0)


@dataclass
class Result:
    """What a run did, as rows, and the evidence of how."""

    run: H5benchRun
    rows: list[Row]
    evidence: dict[str, Any]

    def __getitem__(self, metric: str) -> Any:
        return next(value for name, value, _ in self.rows if name == metric)


class Benchmark(ABC):
    """What writing and reading share: steps, waiting, computing, and the rows in the end."""

    def __init__(self, context: Context, run: H5benchRun, options: Options) -> None:
        self.context, self.run, self.options = context, run, options
        self.parts: list[Part] = parts_of(run)
        self.count = sum(part.count for part in self.parts)
        self.bytes = self.count * PARTICLE_BYTES * run.steps
        self.times = Times()
        self.under_way: deque[tuple[int, Pending]] = deque()  # step and what moves it
        self.open_steps = min(run.steps, max(1, run.delay)) if run.background else 1
        self.paused = 0.0  # for checking, while nothing moved

    @abstractmethod
    def perform(self) -> Result: ...

    @abstractmethod
    def start(self, step: int) -> Pending:
        """Begins to move a step."""

    @abstractmethod
    def arrived(self, step: int) -> None:
        """Does what remains when a step was moved; it is part of the raw time."""

    @abstractmethod
    def check(self, step: int) -> None:
        """Raises Error when the step's data are wrong."""

    def steps(self) -> None:
        """All steps. In the foreground each is moved before the next work begins."""
        for step in range(self.run.steps):
            while len(self.under_way) >= self.open_steps:
                self.settle()
            self.under_way.append((step, self.start(step)))
            if not self.run.background:
                self.settle()
            if step + 1 < self.run.steps:  # h5bench does not compute after the last step
                time.sleep(self.run.compute_s)
        while self.under_way:
            self.settle()

    def settle(self) -> None:
        """Waits for the oldest step, and checks it."""
        step, pending = self.under_way[0]
        with self.times.of("raw"):
            pending.result()
            self.arrived(step)
        self.under_way.popleft()
        with self.aside():
            self.check(step)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Checking, and what it needs. It is taken out of the observed time, unless something moves meanwhile."""
        before = self.times["check"]
        with self.times.of("check"):
            yield
        if not self.under_way:
            self.paused += self.times["check"] - before

    def need_memory(self, particles: int) -> None:
        needed, free = particles * PARTICLE_BYTES, self.context.device["free_bytes"]
        if needed > _MEMORY_SHARE * free:
            cause = f"{needed} bytes of device memory are needed, {free} are free"
            raise self.refusal("out_of_memory", cause, "use fewer particles, or fewer DELAYED_CLOSE_TIMESTEPS")

    def refusal(self, code: str, cause: str, advice: str) -> Error:
        place = str(self.run.file)
        return Error(code=code, operation=f"h5bench {self.run.benchmark}", file=place, cause=cause, advice=advice)

    def residency(self) -> float | None:
        with self.context.open(self.run.file) as file:
            return file.residency()["resident_fraction"]

    def result(self, observed: float, evidence: dict[str, Any], told: list[Row]) -> Result:
        return Result(self.run, self._described() + self._timed(observed) + told + self._shown(evidence), evidence)

    def _described(self) -> list[Row]:
        run = self.run
        option: list[Row] = [("read option", run.option, "")] if run.benchmark == "read" else []
        return [
            ("operation", run.benchmark, ""),
            ("file", str(run.file), ""),
            ("mode", "ASYNC" if run.background else "SYNC", ""),
            ("ranks", 1, ""),
            ("memory pattern", run.memory, ""),
            ("file pattern", run.layout, ""),
            *option,
            ("time steps", run.steps, ""),
            ("particles", self.count, ""),
        ]

    def _timed(self, observed: float) -> list[Row]:
        """h5bench's own metrics. Nothing is held back, so a flush has nothing to do: elements are with the system when
        they are written, and the metadata follow in close."""
        times, compute = self.times, self.run.compute_s * (self.run.steps - 1)
        writes = self.run.benchmark == "write"
        flush: list[Row] = [("flush time", 0.0, "s")] if writes else []
        return [
            ("total compute time", compute, "s"),
            ("total size", self.bytes, "bytes"),
            ("raw time", times["raw"], "s"),
            ("raw rate", _rate(self.bytes, times["raw"]), "GB/s"),
            ("metadata time", times["metadata"], "s"),
            ("create time" if writes else "open time", times["open"], "s"),
            *flush,
            ("close time", times["close"], "s"),
            ("observed time", observed - self.paused, "s"),
            ("observed rate", _rate(self.bytes, observed - self.paused - compute), "GB/s"),
        ]

    def _shown(self, evidence: dict[str, Any]) -> list[Row]:
        """What h5bench does not tell."""
        return [
            ("path", evidence["path"], ""),
            *[(f"size by {share['path']}", share["bytes"], "bytes") for share in evidence["paths"]],
            ("fallbacks", len(evidence["fallbacks"]), ""),
            ("check time", self.times["check"], "s"),
            ("device", self.context.device["name"], ""),
        ]


def piece(values: Array, part: Part) -> Array:
    """The particles of a part, in its shape, of values in a row that may have gaps."""
    (step,), strides = values.strides, []
    for extent in reversed(part.shape):
        strides.append(step)
        step *= extent
    start = values.offset_bytes + values.strides[0] * part.first
    return Array(values.buffer, values.dtype, part.shape, start, tuple(reversed(strides)))


def written_by(run: H5benchRun) -> str:
    """Which particles of each dataset a run writes, as the files say it."""
    blocks = [f"{stride}/{block}" for stride, block in run.blocks]
    return " ".join([run.option, *blocks, str(run.block_count)]) if blocks else run.option


@contextmanager
def abandoned_on_error(file: DataFile) -> Iterator[None]:
    """A file that was begun is not published, and what is under way has ended, before the error goes on."""
    try:
        yield
    except BaseException:
        file.abandon()
        raise


def _rate(bytes: int, seconds: float) -> float:
    return bytes / seconds / 1e9 if seconds > 0 else 0.0
