"""The second model of the suite: a star cluster that writes all its bodies after each step, as particle codes do.

What must stay true: every way writes what the cluster has at that moment, none asks for stable storage, and the last
file is compared with the cluster byte by byte.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Error, Restart, Snapshot, open as open_file, save
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, need
from penstock_bench.engine.run import Run

if TYPE_CHECKING:
    from penstock import nbody  # imported late: a build may leave the model out

FEWEST, MOST = 128, 1 << 18  # bodies
SHOWN = {"Coordinates": "position", "Velocities": "velocity", "Masses": "mass", "ParticleIDs": "id"}
PLACE = "PartType1/"


@dataclass
class ClusterRun:
    """The cluster between two ways of writing it. It goes on from one to the next."""

    run: Run
    model: nbody.Cluster
    steps: int  # of output
    substeps: int  # longest time steps of the cluster, for one step of output

    def snapshot(self) -> dict[str, Any]:
        return {PLACE + name: self.model[field] for name, field in SHOWN.items()}

    def on_the_host(self, field: str) -> Any:
        """A copy of it."""
        import numpy as np

        values = self.model[field]
        if self.model.on_host:
            return values.copy()
        room = np.empty(values.shape, values.__cuda_array_interface__["typestr"])
        self.run.context.copy_to_host(room, values)
        return room


def made(run: Run) -> ClusterRun:
    """As many bodies as take at most half of `step_ms` for the longest of their time steps."""
    from penstock import nbody

    wanted = float(run.settings["step_ms"]) / 1e3
    bodies = FEWEST
    while True:
        model = nbody.Cluster(bodies, context=run.context)
        began = time.perf_counter()
        model.advance()
        seconds = time.perf_counter() - began
        if bodies >= MOST or 4 * seconds > wanted / 2:  # twice as many pull four times as much
            return ClusterRun(run, model, int(run.settings["steps"]), max(1, round(wanted / seconds)))
        bodies *= 2


def no_output(_case: ClusterRun, _folder: Path, _step: int) -> None:
    pass


def by_h5py(case: ClusterRun, folder: Path, step: int) -> None:
    """The usual way: each field is copied to the host, and a file of its own name appears when it is closed."""
    import h5py

    with h5py.File(folder / f"{step}.new", "w") as file:
        for path, field in SHOWN.items():
            file[PLACE + path] = case.on_the_host(field)
    (folder / f"{step}.new").rename(folder / f"{step}.hdf5")


def by_save(case: ClusterRun, folder: Path, step: int) -> None:
    save(folder / f"{step}.hdf5", case.snapshot(), context=case.run.context)


def by_snapshot(case: ClusterRun, folder: Path, step: int) -> None:
    made = Snapshot(folder / f"{step}.hdf5", case.snapshot(), memory="device", context=case.run.context)
    made.use_preset("gadget4")
    made.write()


def by_restart(case: ClusterRun, folder: Path, step: int) -> None:
    """All that the cluster needs to go on, in two generations."""
    restart = Restart(folder / "cluster", memory="device", durable=False, context=case.run.context)
    restart.write({name: case.model[name] for name in case.model.names}, attrs={"step": step})


Write = Callable[[ClusterRun, Path, int], None]
NOTHING, H5PY, SAVED = "cluster, no output", "cluster, h5py in the step", "cluster, save"
SNAPSHOT, RESTART = "cluster, snapshot", "cluster, restart"
WAYS: dict[str, Write] = {
    NOTHING: no_output,
    H5PY: by_h5py,
    SAVED: by_save,
    SNAPSHOT: by_snapshot,
    RESTART: by_restart,
}


def probes(case: ClusterRun) -> list[Probe]:
    return [Probe(way, partial(measure, case, way)) for way in WAYS]


def measure(case: ClusterRun, way: str, _round: int = 0) -> Sample:
    """So many steps that are written this way. What was written is compared with the cluster, and removed."""
    if way == H5PY:
        need("h5py")
    folder = case.run.workspace.directory / "output"
    folder.mkdir()
    try:
        computed, put = [], []
        with Stopwatch() as watch:
            for step in range(case.steps):
                began = time.perf_counter()
                case.model.advance(case.substeps)
                ready = time.perf_counter()
                WAYS[way](case, folder, step)
                computed.append((ready - began) * 1e3)
                put.append((time.perf_counter() - ready) * 1e3)
        bytes = check(case, way, folder)
    finally:
        shutil.rmtree(folder)
    return {
        "part": "cluster",
        "bytes": bytes * case.steps,
        "seconds": watch.seconds,
        "steps": case.steps,
        "substeps": case.substeps,
        "bodies": case.model.bodies,
        "step_bytes": bytes,
        "compute_ms": statistics.median(computed),
        "stall_ms": statistics.median(put),
        "first_stall_ms": put[0],
        **watch.cpu(),
    }


def check(case: ClusterRun, way: str, folder: Path) -> int:
    """The bytes of the last file, which has the bits of the cluster. Raises Error where it has others."""
    import numpy as np

    if way == NOTHING:
        return 0
    fields = {name: name for name in case.model.names} if way == RESTART else SHOWN
    expected = {path: case.on_the_host(field) for path, field in fields.items()}
    if way == RESTART:
        path = folder / "cluster"
        found = {name: np.empty_like(values) for name, values in expected.items()}
        Restart(path, memory="host", context=case.run.context).read(found)
    else:
        path = folder / f"{case.steps - 1}.hdf5"
        with open_file(path, device="host") as file:
            found = {name: file[PLACE + name].read().to_numpy() for name in expected}
    for name, values in expected.items():
        if found[name].tobytes() != values.tobytes():
            cause = f"{name} of the last step is not what the cluster has"
            raise Error(
                operation="bench simulation", file=str(path), cause=cause, advice="report it: the file is wrong"
            )
    return sum(values.nbytes for values in expected.values())
