"""The ways to write fields while a model runs: each takes a step after the other, and closes its files.

What must stay true: all write the same variables as float32, none asks for stable storage, and each hands a finished
step to readers. One history compresses, and says so in its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Error, History, open as open_file
from penstock_bench.engine.rounds import Absent, need
from penstock_bench.suites.simulation.model import COUNTS, DIMENSIONS, EACH, MEANS, UNITS, FlowRun, add, mean


class FieldOutput(ABC):
    """One way, under way."""

    suffix = ".nc"

    def __init__(self, case: FlowRun, folder: Path) -> None:
        self.case = case
        self.paths = {name: folder / (name + self.suffix) for name in COUNTS}

    @abstractmethod
    def put(self, step: int) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def wait_seconds(self) -> float:
        """How long the model waited for a slot that the file did not free in time."""
        return 0.0

    def write_seconds(self) -> float | None:
        """How long a thread beside the model wrote; None where there is none."""
        return None


class NoOutput(FieldOutput):
    """What all others are compared with."""

    def put(self, step: int) -> None:
        pass

    def close(self) -> None:
        self.paths = {}


@dataclass(frozen=True)
class HistoryKind:
    """`blocking`: the model goes on when readers see the step. `names_stream`: else the model computes on the default
    stream of the GPU, and puts name none."""

    format: str
    blocking: bool = False
    names_stream: bool = True
    compression: str = "none"


class ByHistory(FieldOutput):
    """Histories of Penstock."""

    def __init__(self, case: FlowRun, folder: Path, kind: HistoryKind) -> None:
        super().__init__(case, folder)
        self.kind = kind
        case.model.use_default_stream(not kind.names_stream)
        self.each, self.means = map(self._history, COUNTS)

    def _history(self, file: str) -> History:
        from penstock.flow import HALO

        packing: dict[str, Any] = {} if self.kind.compression == "none" else {"compression": self.kind.compression}
        history = History(
            self.paths[file], format=self.kind.format, time_units=UNITS, context=self.case.run.context, **packing
        )
        for name, values in self.case.coordinates.items():
            history.constant(name, values, (name,), {"units": "m", "axis": name.upper()})
        for one in self.case.fields[file]:
            history.define(
                one.name,
                DIMENSIONS,
                like=self.case.model[one.name],
                halo=(HALO,) * 3,
                statistic="mean" if file == MEANS else None,
                attrs=one.attrs,
            )
        return history

    def put(self, step: int) -> None:
        model = self.case.model
        stream = model.stream if self.kind.names_stream else None
        for name in self.case.names(EACH):
            self.each.put(name, model[name], stream=stream)
        self.each.end_step(model.time)
        for name in self.case.names(MEANS):
            self.means.put(name, model[name], stream=stream)
        if self.case.ends_mean(step):
            self.means.end_step(model.time)
        if self.kind.blocking:
            self.each.wait()
            self.means.wait()

    def wait_seconds(self) -> float:
        return self.each.facts().wait_seconds + self.means.facts().wait_seconds

    def write_seconds(self) -> float | None:
        return self.each.facts().write_seconds + self.means.facts().write_seconds

    def close(self) -> None:
        self.each.close()
        self.means.close()
        self.case.model.use_default_stream(False)


def on_default_stream(case: FlowRun, folder: Path) -> FieldOutput:
    if case.model.on_host:
        raise Absent("the model on the host has no stream")
    return ByHistory(case, folder, HistoryKind("netcdf4", names_stream=False))


class OnTheHost(FieldOutput):
    """The usual way: each field is copied to the host, cut, summed and converted there, and written by the model's own
    thread."""

    def __init__(self, case: FlowRun, folder: Path) -> None:
        import numpy as np

        super().__init__(case, folder)
        self.room = None if case.model.on_host else np.empty(case.model.shape)
        self.sums: dict[str, Any] = {}
        self.files = {name: self.create(name, path) for name, path in self.paths.items()}

    @abstractmethod
    def create(self, file: str, path: Path) -> Any: ...

    @abstractmethod
    def write(self, file: Any, name: str, place: int, values: Any) -> None: ...

    @abstractmethod
    def end(self, file: Any, place: int, time: float) -> None: ...

    def put(self, step: int) -> None:
        model = self.case.model
        for name in self.case.names(EACH):
            self.write(self.files["each"], name, step, model.on_the_host(name, self.room).astype("float32"))
        self.end(self.files["each"], step, model.time)
        for name in self.case.names(MEANS):
            self.sums[name] = add(self.sums.get(name), model.on_the_host(name, self.room))
        if self.case.ends_mean(step):
            place = step // self.case.mean_steps
            for name in self.case.names(MEANS):
                self.write(self.files["means"], name, place, mean(self.sums.pop(name), self.case.mean_steps))
            self.end(self.files["means"], place, model.time)

    def close(self) -> None:
        for file in self.files.values():
            file.close()


class ByNetcdf4(OnTheHost):
    """netCDF4 of Python, which is netCDF-C: one chunk a field and step, as weather models set it."""

    def __init__(self, case: FlowRun, folder: Path, format: str) -> None:
        need("netCDF4")
        self.format = format
        super().__init__(case, folder)

    def create(self, file: str, path: Path) -> Any:
        import netCDF4

        made = netCDF4.Dataset(path, "w", format=self.format)
        made.set_fill_off()
        made.createDimension("time", None)
        made.createVariable("time", "f8", ("time",)).setncatts({"units": UNITS, "calendar": "standard"})
        shape = []
        for name, values in self.case.coordinates.items():
            made.createDimension(name, len(values))
            made.createVariable(name, "f8", (name,))[:] = values
            shape.append(len(values))
        chunks = (1, *shape) if self.format == "NETCDF4" else None
        for one in self.case.fields[file]:
            made.createVariable(one.name, "f4", ("time", *DIMENSIONS), chunksizes=chunks).setncatts(one.attrs)
        return made

    def write(self, file: Any, name: str, place: int, values: Any) -> None:
        file[name][place] = values

    def end(self, file: Any, place: int, time: float) -> None:
        file["time"][place] = time
        file.sync()


class ByH5py(OnTheHost):
    """h5py, with the same chunks."""

    suffix = ".h5"

    def __init__(self, case: FlowRun, folder: Path) -> None:
        need("h5py")
        super().__init__(case, folder)

    def create(self, file: str, path: Path) -> Any:
        import h5py

        made = h5py.File(path, "w")
        shape = tuple(len(values) for values in self.case.coordinates.values())
        for one in self.case.fields[file]:
            stored = made.create_dataset(one.name, (0, *shape), "f4", maxshape=(None, *shape), chunks=(1, *shape))
            stored.attrs.update(one.attrs)
        made.create_dataset("time", (0,), "f8", maxshape=(None,))
        return made

    def write(self, file: Any, name: str, place: int, values: Any) -> None:
        file[name].resize(place + 1, 0)
        file[name][place] = values

    def end(self, file: Any, place: int, time: float) -> None:
        file["time"].resize(place + 1, 0)
        file["time"][place] = time
        file.flush()


NOTHING = "no output"
CLASSIC, NETCDF4 = "history, classic", "history, netCDF-4"
BLOCKING = "blocking, netCDF-4"
DEFAULT_STREAM = "history, netCDF-4, default stream"
PACKED = "history, netCDF-4, zstd"
USUAL_CLASSIC, USUAL_NETCDF4, USUAL_H5PY = "netCDF4 in the step, classic", "netCDF4 in the step", "h5py in the step"
WAYS: dict[str, Callable[[FlowRun, Path], FieldOutput]] = {
    NOTHING: NoOutput,
    USUAL_NETCDF4: lambda case, folder: ByNetcdf4(case, folder, "NETCDF4"),
    USUAL_CLASSIC: lambda case, folder: ByNetcdf4(case, folder, "NETCDF3_64BIT_DATA"),
    USUAL_H5PY: ByH5py,
    BLOCKING: lambda case, folder: ByHistory(case, folder, HistoryKind("netcdf4", blocking=True)),
    NETCDF4: lambda case, folder: ByHistory(case, folder, HistoryKind("netcdf4")),
    CLASSIC: lambda case, folder: ByHistory(case, folder, HistoryKind("cdf5")),
    DEFAULT_STREAM: on_default_stream,
    PACKED: lambda case, folder: ByHistory(case, folder, HistoryKind("netcdf4", compression="zstd")),
}


def check(writing: FieldOutput) -> int:
    """Compares each value of each step with the model's, and returns how many bytes that were. Raises Error at the
    first field that differs."""
    checked = 0
    for file, path in writing.paths.items():
        with open_file(path, device="host") as opened:
            for name in writing.case.names(file):
                expected = writing.case.expected[name]
                if opened[name].shape[0] != len(expected):
                    raise _wrong(path, f"{name} has {opened[name].shape[0]} steps instead of {len(expected)}")
                for step, values in enumerate(expected):
                    checked += values.nbytes
                    if not _is_same(opened[name][step], values):
                        raise _wrong(path, f"step {step} of {name} is not what the model had")
    assert not writing.paths or checked == writing.case.bytes
    return checked


def _is_same(stored: Any, expected: Any) -> bool:
    """Bit by bit, so that -0 is not 0 and no number of NaNs passes for another."""
    import numpy as np

    values = np.ascontiguousarray(stored, dtype="float32")
    return values.shape == expected.shape and np.array_equal(values.view("uint32"), expected.view("uint32"))


def _wrong(path: Path, cause: str) -> Error:
    return Error(operation="bench simulation", file=str(path), cause=cause, advice="report it: the file is wrong")
