"""Power drawn while something is measured: the GPU by NVML, the processors by RAPL.

NVML comes through the package nvidia-ml-py, which need not be there: its energy counter where the GPU has one, else
power sampled by a thread. RAPL is what Linux shows under /sys/class/powercap, on Intel and AMD alike. Each reading is a
number with its source, or "not available" with the cause; it is never 0 for want of an answer.
"""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOT_AVAILABLE = "not available"
POWERCAP = Path("/sys/class/powercap")
SAMPLE_S = 0.02
# Counters are renewed some ten times a second at worst: what is shorter would measure their steps.
SHORTEST_S = 0.2
_PACKAGE = re.compile(r"intel-rapl:\d+")


@dataclass(frozen=True)
class PowerReading:
    """What was drawn over `seconds`: joules and their source, or why it is unknown."""

    seconds: float
    joules: float | None = None
    source: str = ""
    cause: str = ""

    def as_dict(self) -> dict[str, Any]:
        if self.joules is None:
            return {"watts": NOT_AVAILABLE, "joules": NOT_AVAILABLE, "cause": self.cause}
        return {"watts": self.joules / self.seconds, "joules": self.joules, "source": self.source}


def _load_nvml() -> Any:
    return importlib.import_module("pynvml")


class GpuPower:
    """The energy of one device of a context."""

    def __init__(self, device: dict[str, Any], load: Callable[[], Any] = _load_nvml) -> None:
        self.cause = ""
        self._counts = False
        if device["emulated"]:
            self.cause = "the device is emulated"
            return
        try:
            self._nvml = load()
        except ImportError:
            self.cause = "the package nvidia-ml-py is not installed"
            return
        try:
            self._nvml.nvmlInit()
            self._handle = self._find(device)
            self._counts = self._has_counter()
            if not self._counts:
                self._nvml.nvmlDeviceGetPowerUsage(self._handle)
        except self._nvml.NVMLError as error:
            self.cause = f"NVML: {error}"

    def _find(self, device: dict[str, Any]) -> Any:
        """By its PCI address: NVML counts devices that CUDA_VISIBLE_DEVICES hides."""
        if device["bus"]:
            return self._nvml.nvmlDeviceGetHandleByPciBusId(device["bus"].encode())
        return self._nvml.nvmlDeviceGetHandleByIndex(device["index"])

    def _has_counter(self) -> bool:
        try:
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError_NotSupported:
            return False
        return True

    def measure(self) -> Callable[[float], PowerReading]:
        """Starts; the function that is returned ends it, given the seconds that passed."""
        if self.cause:
            return lambda seconds: PowerReading(seconds, cause=self.cause)
        if not self._counts:
            return self._sampled()
        try:
            before = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError as error:
            cause = f"NVML: {error}"
            return lambda seconds: PowerReading(seconds, cause=cause)
        return lambda seconds: self._counted(before, seconds)

    def _counted(self, before: int, seconds: float) -> PowerReading:
        try:
            after = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError as error:
            return PowerReading(seconds, cause=f"NVML: {error}")
        if after < before:
            return PowerReading(seconds, cause="NVML: the energy counter was reset: the driver was loaded again")
        return PowerReading(seconds, (after - before) / 1e3, "NVML energy counter")

    def _sampled(self) -> Callable[[float], PowerReading]:
        sampler = _Sampler(self._watts, self._nvml.NVMLError)
        return sampler.end

    def _watts(self) -> float:
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3


class _Sampler:
    """Reads power again and again on a thread of its own, from when it is made until end()."""

    def __init__(self, watts: Callable[[], float], failure: type[Exception]) -> None:
        self._watts = watts
        self._failure = failure
        self._cause = ""
        self._samples: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-power", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._samples.append((time.monotonic(), self._watts()))
                if self._ended.wait(SAMPLE_S):
                    self._samples.append((time.monotonic(), self._watts()))
                    return
        except self._failure as error:
            self._cause = f"NVML: {error}"

    def end(self, seconds: float) -> PowerReading:
        self._ended.set()
        self._thread.join()
        if self._cause:
            return PowerReading(seconds, cause=self._cause)
        first, last = self._samples[0][0], self._samples[-1][0]
        pairs = zip(self._samples, self._samples[1:], strict=False)
        drawn = sum((later[0] - sooner[0]) * (later[1] + sooner[1]) / 2 for sooner, later in pairs)
        mean = drawn / (last - first) if last > first else self._samples[0][1]
        return PowerReading(seconds, mean * seconds, f"NVML power, {len(self._samples)} samples")


class CpuPower:
    """The energy of all processor packages, as RAPL counts it; the memory's only where the package holds it."""

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self.cause = ""
        self._zones: list[tuple[Path, int]] = []  # counter, and the number of microjoules at which it starts again
        try:
            zones = [zone for zone in sorted(powercap.iterdir()) if _PACKAGE.fullmatch(zone.name)]
            packages = [zone for zone in zones if (zone / "name").read_text().startswith("package")]
            self._zones = [(zone / "energy_uj", int((zone / "max_energy_range_uj").read_text())) for zone in packages]
            self._read()
        except FileNotFoundError:
            self.cause = f"there is no {powercap}: no RAPL here"
        except (OSError, ValueError) as error:
            self.cause = _told(error)
        if not self.cause and not self._zones:
            self.cause = f"no processor package under {powercap}"

    def _read(self) -> list[int]:
        return [int(counter.read_text()) for counter, _ in self._zones]

    def measure(self) -> Callable[[float], PowerReading]:
        """As GpuPower.measure. A counter that starts again once in between is known; one that did so twice, which takes
        minutes at the least, is not."""
        if self.cause:
            return lambda seconds: PowerReading(seconds, cause=self.cause)
        try:
            before = self._read()
        except (OSError, ValueError) as error:
            cause = _told(error)
            return lambda seconds: PowerReading(seconds, cause=cause)

        def end(seconds: float) -> PowerReading:
            try:
                after = self._read()
            except (OSError, ValueError) as error:
                return PowerReading(seconds, cause=_told(error))
            ranges = [most for _, most in self._zones]
            drawn = sum(
                late - early if late >= early else late - early + most
                for early, late, most in zip(before, after, ranges, strict=True)
            )
            return PowerReading(seconds, drawn / 1e6, f"RAPL, {len(self._zones)} packages")

        return end


def _told(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return f"no permission to read {error.filename}: ask for it, or run as root"
    return f"RAPL: {error}"


@dataclass
class Drawn:
    """What a block drew; filled when the block has ended."""

    readings: dict[str, PowerReading] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {name: reading.as_dict() for name, reading in self.readings.items()}


class PowerMeter:
    """Both, of the device of a context: `device` is Context.device."""

    def __init__(self, device: dict[str, Any], gpu: GpuPower | None = None, cpu: CpuPower | None = None) -> None:
        self._meters = {"gpu": gpu or GpuPower(device), "cpu": cpu or CpuPower()}

    @contextmanager
    def measure(self) -> Iterator[Drawn]:
        drawn = Drawn()
        begun = time.monotonic()
        ends = {name: meter.measure() for name, meter in self._meters.items()}
        try:
            yield drawn
        finally:
            seconds = time.monotonic() - begun
            drawn.readings = {name: _long_enough(end(seconds)) for name, end in ends.items()}


def _long_enough(reading: PowerReading) -> PowerReading:
    if reading.joules is None or reading.seconds >= SHORTEST_S:
        return reading
    return PowerReading(reading.seconds, cause=f"shorter than {SHORTEST_S:g} s: counters are too coarse")
