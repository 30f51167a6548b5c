"""Power meters over a fake NVML and a fake tree of RAPL: numbers, wrap-around, and every cause of having none."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Context
from penstock_bench.engine import power
from penstock_bench.engine.power import NOT_AVAILABLE, CpuPower, GpuPower, PowerMeter, PowerReading

GPU = {"emulated": False, "bus": "0000:65:00.0", "index": 0}


class NVMLError(Exception):
    """What every call of NVML raises."""


class NotSupported(NVMLError):
    """What a GPU says to a question it has no answer for."""


class FakeNvml(SimpleNamespace):
    """One GPU at 0000:65:00.0. `energy` are the millijoules its counter shows one after the other."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NotSupported

    def __init__(self, energy: list[int] | None = None, milliwatts: int | None = None, refuses: str = "") -> None:
        super().__init__()
        self.energy, self.milliwatts, self.refuses = energy, milliwatts, refuses

    def nvmlInit(self) -> None:  # noqa: N802
        if self.refuses:
            raise NVMLError(self.refuses)

    def nvmlDeviceGetHandleByPciBusId(self, bus: bytes) -> str:  # noqa: N802
        if bus != b"0000:65:00.0":
            raise NVMLError("Not Found")
        return "by bus"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return f"by index {index}"

    def nvmlDeviceGetTotalEnergyConsumption(self, _handle: str) -> int:  # noqa: N802
        if self.energy is None:
            raise NotSupported("Not Supported")
        return self.energy.pop(0) if len(self.energy) > 1 else self.energy[0]

    def nvmlDeviceGetPowerUsage(self, _handle: str) -> int:  # noqa: N802
        if self.milliwatts is None:
            raise NVMLError("Insufficient Permissions")
        return self.milliwatts


def tree(folder: Path, **energies: int) -> Path:
    """A RAPL tree of packages by number, each of a range of 1000 J."""
    for name, energy in energies.items():
        zone = folder / name.replace("_", ":").replace("intel", "intel-rapl")
        zone.mkdir(parents=True)
        (zone / "name").write_text(f"package-{name[-1]}\n")
        (zone / "energy_uj").write_text(f"{energy}\n")
        (zone / "max_energy_range_uj").write_text("1000000000\n")
    return folder


def test_the_energy_counter_of_a_gpu_is_read_before_and_after() -> None:
    gpu = GpuPower(GPU, lambda: FakeNvml(energy=[0, 5000, 8500]))
    found = gpu.measure()(2.0)
    assert found.as_dict() == {"joules": 3.5, "watts": 1.75, "source": "NVML energy counter"}


def test_a_gpu_without_a_counter_is_sampled() -> None:
    gpu = GpuPower(GPU, lambda: FakeNvml(milliwatts=300_000))
    end = gpu.measure()
    time.sleep(0.1)
    found = end(4.0)
    assert found.joules == pytest.approx(1200)
    assert found.source.startswith("NVML power, ")


def test_a_sample_that_fails_is_told() -> None:
    nvml = FakeNvml(milliwatts=300_000)
    gpu = GpuPower(GPU, lambda: nvml)
    nvml.milliwatts = None
    assert gpu.measure()(1.0).as_dict() == {
        "watts": NOT_AVAILABLE,
        "joules": NOT_AVAILABLE,
        "cause": "NVML: Insufficient Permissions",
    }


@pytest.mark.parametrize(
    ("device", "nvml", "cause"),
    [
        (GPU | {"emulated": True}, FakeNvml(energy=[1]), "the device is emulated"),
        (GPU, FakeNvml(refuses="Driver Not Loaded"), "NVML: Driver Not Loaded"),
        (GPU | {"bus": "0000:17:00.0"}, FakeNvml(energy=[1]), "NVML: Not Found"),
        (GPU, FakeNvml(), "NVML: Insufficient Permissions"),
    ],
)
def test_a_gpu_of_which_nothing_is_known_says_why(device: dict[str, Any], nvml: FakeNvml, cause: str) -> None:
    found = GpuPower(device, lambda: nvml).measure()(1.0)
    assert found.joules is None
    assert found.cause == cause


def test_without_the_package_the_cause_names_it() -> None:
    def absent() -> Any:
        raise ImportError

    assert "nvidia-ml-py" in GpuPower(GPU, absent).measure()(1.0).cause


def test_a_counter_that_went_back_gives_no_number() -> None:
    assert "reset" in GpuPower(GPU, lambda: FakeNvml(energy=[0, 5000, 10])).measure()(1.0).cause


def test_packages_are_summed_and_their_parts_are_not(tmp_path: Path) -> None:
    tree(tmp_path, intel_0=1_000_000, intel_1=2_000_000)
    part = tmp_path / "intel-rapl:0:0"
    part.mkdir()
    (part / "name").write_text("core\n")
    whole = tmp_path / "intel-rapl:2"
    whole.mkdir()
    (whole / "name").write_text("psys\n")
    end = CpuPower(tmp_path).measure()
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("4000000\n")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("2500000\n")
    assert end(2.0).as_dict() == {"joules": 3.5, "watts": 1.75, "source": "RAPL, 2 packages"}


def test_a_counter_that_starts_again_is_counted_on(tmp_path: Path) -> None:
    tree(tmp_path, intel_0=999_000_000)
    end = CpuPower(tmp_path).measure()
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("2000000\n")
    assert end(1.0).joules == pytest.approx(3.0)


def test_a_tree_that_is_not_there_or_holds_no_package_says_so(tmp_path: Path) -> None:
    assert "no RAPL here" in CpuPower(tmp_path / "nothing").measure()(1.0).cause
    assert "no processor package" in CpuPower(tmp_path).measure()(1.0).cause


def test_a_counter_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, intel_0=1)
    real = Path.read_text

    def refused(self: Path, *arguments: Any, **options: Any) -> str:
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refused)
    found = CpuPower(tmp_path).measure()(1.0)
    assert found.joules is None
    assert found.cause.startswith("no permission to read")
    assert "energy_uj" in found.cause


def test_a_meter_reads_both_over_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "SHORTEST_S", 0.01)
    gpu = GpuPower(GPU, lambda: FakeNvml(energy=[0, 1000, 4000]))
    meter = PowerMeter(GPU, gpu, CpuPower(tree(tmp_path, intel_0=1_000_000)))
    with meter.measure() as drawn:
        time.sleep(0.02)
        (tmp_path / "intel-rapl:0" / "energy_uj").write_text("2000000\n")
    found = drawn.as_dict()
    assert found["gpu"]["joules"] == 3.0
    assert found["cpu"]["joules"] == 1.0
    assert 0 < found["cpu"]["watts"] <= 50


def test_what_is_too_short_for_the_counters_gives_no_number() -> None:
    meter = PowerMeter(GPU, GpuPower(GPU, lambda: FakeNvml(energy=[0, 1, 2])))
    with meter.measure() as drawn:
        pass
    assert drawn.as_dict()["gpu"]["watts"] == NOT_AVAILABLE
    assert "too coarse" in drawn.as_dict()["gpu"]["cause"]


def test_here_every_reading_is_a_number_or_has_a_cause(context: Context) -> None:
    with PowerMeter(context.device).measure() as drawn:
        time.sleep(0.21)
    for reading in drawn.readings.values():
        assert isinstance(reading, PowerReading)
        assert reading.cause if reading.joules is None else reading.source
    assert drawn.as_dict()["gpu"]["watts"] == NOT_AVAILABLE  # the fixture's device is emulated
