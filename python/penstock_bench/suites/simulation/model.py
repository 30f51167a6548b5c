"""The model that the suite runs: how large, how many of its time steps make a step of output, and the values that each
file must have.

What must stay true: the expected values come from a run of its own, before anything is timed, converted by NumPy.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock import Error
from penstock_bench.engine.run import Run

if TYPE_CHECKING:
    import numpy as np

    from penstock import flow  # imported late: every command knows this suite, and a build may leave the model out

EACH, MEANS = "each", "means"  # the files: of fields that are written each step, and of means over several
COUNTS = {EACH: 14, MEANS: 4}  # of fields in them
DIMENSIONS = ("y", "x", "z")
UNITS = "seconds since 2000-01-01 00:00:00"
ITEM_BYTES = 4  # in the file


@dataclass
class FlowRun:
    """The model between two ways of writing it."""

    run: Run
    model: flow.Model
    steps: int  # of output
    mean_steps: int
    substeps: int  # time steps of the model, for one step of output
    expected: dict[str, list[np.ndarray]] = field(default_factory=dict)  # a field's values, step by step

    @property
    def fields(self) -> dict[str, tuple[flow.FlowField, ...]]:
        """By file."""
        from penstock import flow

        return {EACH: flow.FIELDS[: COUNTS[EACH]], MEANS: flow.FIELDS[COUNTS[EACH] :]}

    def names(self, file: str) -> tuple[str, ...]:
        return tuple(one.name for one in self.fields[file])

    @property
    def bytes(self) -> int:
        """The size of all steps in the files, their values alone."""
        cells = math.prod(self.model.cells)
        return ITEM_BYTES * cells * (COUNTS[EACH] * self.steps + COUNTS[MEANS] * (self.steps // self.mean_steps))

    @property
    def coordinates(self) -> dict[str, np.ndarray]:
        """Where the middles of cells are, in metres."""
        import numpy as np

        counts = dict(zip("xyz", self.model.cells, strict=True))
        return {name: (np.arange(counts[name]) + 0.5) * self.model.spacing for name in DIMENSIONS}

    def ends_mean(self, step: int) -> bool:
        return (step + 1) % self.mean_steps == 0

    def advance(self) -> None:
        self.model.advance(self.substeps)


def cells_for(step_bytes: int, mean_steps: int) -> tuple[int, int, int]:
    """A box that writes so many bytes a step, nearly: twice as broad as high. Whole warps of a GPU lie along z where
    there are enough cells."""
    cells = step_bytes / (ITEM_BYTES * (COUNTS[EACH] + COUNTS[MEANS] / mean_steps))
    nz = max(4, round((cells / 4) ** (1 / 3)))
    nz = nz if nz < 24 else round(nz / 32) * 32 or 32
    nx = max(4, round(math.sqrt(cells / nz)))
    return nx, max(4, round(cells / nz / nx)), nz


def made(run: Run) -> FlowRun:
    """The model as the settings want it, warm, with the number of its time steps that take `step_ms`."""
    from penstock import flow

    settings = run.settings
    steps, mean_steps = int(settings["steps"]), int(settings["mean_steps"])
    if mean_steps < 1 or steps < 1 or steps % mean_steps:
        cause = f"{steps} steps are no whole number of means over {mean_steps}"
        raise Error(operation="bench simulation", cause=cause, advice="make steps a multiple of mean_steps")
    model = flow.Model(cells_for(run.bytes, mean_steps), context=run.context)
    model.advance(1)
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < 0.1 or done < 2:
        model.advance(2)
        done += 2
    each_ms = (time.perf_counter() - began) * 1e3 / done
    return FlowRun(run, model, steps, mean_steps, max(1, round(float(settings["step_ms"]) / each_ms)))


def expect(case: FlowRun) -> None:
    """Runs the model once, and keeps what every file must hold."""
    import numpy as np

    room = None if case.model.on_host else np.empty(case.model.shape)
    sums: dict[str, Any] = {}
    case.expected = {name: [] for file in COUNTS for name in case.names(file)}
    case.model.restart()
    for step in range(case.steps):
        case.advance()
        for name in case.names(EACH):
            case.expected[name].append(case.model.on_the_host(name, room).astype(np.float32))
        for name in case.names(MEANS):
            sums[name] = add(sums.get(name), case.model.on_the_host(name, room))
            if case.ends_mean(step):
                case.expected[name].append(mean(sums.pop(name), case.mean_steps))


def add(total: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    """A sum in double precision."""
    if total is None:
        return values.copy()
    total += values
    return total


def mean(total: np.ndarray, count: int) -> np.ndarray:
    return (total * (1.0 / count)).astype("float32")
