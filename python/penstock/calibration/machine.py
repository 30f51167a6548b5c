"""The machine's fingerprint, written beside every result so that numbers can be compared years later.

Only facts of hardware, system and versions: no host name, no user name.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from penstock import Context, Error, _core
from penstock.calibration.cufile_setup import cufile_setup
from penstock.calibration.media import no_medium

PCI = Path("/sys/bus/pci/devices")
_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # of PCIe, by GT/s of a lane


def fingerprint(context: Context, directory: Path) -> dict[str, Any]:
    return {
        "cpu_model": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "device": {key: value for key, value in context.device.items() if key != "free_bytes"},
        "link": link(context.device["bus"]),
        "cufile": cufile_setup(directory),
        **storage(directory),
        "versions": _versions(),
        "git_revision": _core.build_facts()["revision"] or None,  # that the package was built of
    }


def storage(directory: Path) -> dict[str, Any]:
    """What holds the directory."""
    mount = mount_of(directory)
    return {"file_system": mount["type"], "mount_options": mount["options"], "disk": _disk(directory)}


def machine_id(machine: dict[str, Any]) -> str:
    """A short name of a fingerprint, which every row of a run carries."""
    return hashlib.sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()[:10]


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """What two fingerprints do not have in common, as texts."""
    names = sorted(first.keys() | second.keys())
    pairs = [(name, lasting(first.get(name)), lasting(second.get(name))) for name in names]
    return [f"{name}: {one} and {other}" for name, one, other in pairs if one != other]


def lasting(fact: Any) -> Any:
    """Without what cuFile's driver could do at that moment: it changes while programs open and leave it."""
    return {name: one for name, one in fact.items() if name != "state"} if isinstance(fact, dict) else fact


def link(bus: str, folder: Path = PCI) -> dict[str, Any] | str:
    """Generation and width of the PCIe link of the device, as sysfs tells them; else why not. The speed is the highest
    that the device can go: it is lowered while nothing moves."""
    if not bus:
        return "not available: the device is on no PCI bus"
    place = folder / _sysfs_name(bus)
    try:
        speed = (place / "max_link_speed").read_text().strip()
        width = (place / "current_link_width").read_text().strip()
    except OSError as error:
        return f"not available: {error.strerror}"
    generation = _GENERATIONS.get(speed.split()[0])
    if generation is None or not width.isdigit() or not int(width):
        return f"not available: the system says speed '{speed}', width '{width}'"
    return {"generation": generation, "width": int(width), "speed": speed}


def _sysfs_name(bus: str) -> str:
    """CUDA writes "00000000:18:00.0", sysfs "0000:18:00.0"."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def mount_of(directory: Path) -> dict[str, str]:
    """Type and options of the mount that holds the directory: by its mount id, since the device number of a file on
    btrfs is not that of its mount. The options are those that may be shown."""
    descriptor = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    try:
        facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    finally:
        os.close(descriptor)
    wanted = next((line.split()[1] for line in facts.splitlines() if line.startswith("mnt_id:")), None)
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if fields[0] == wanted:
            return {"type": tail[0], "options": _core.public_mount_options(",".join([fields[5], *tail[2:3]]))}
    return {"type": _file_system_of(directory), "options": ""}


def _file_system_of(directory: Path) -> str:
    """As the core names it by the number that statfs tells, of a file without a name there: where the system lists no
    mount for the directory, as in a chroot whose / is none."""
    try:
        with tempfile.TemporaryFile(dir=directory) as made, Context("host") as context:
            return str(context.open(f"/proc/self/fd/{made.fileno()}").facts["file_system"])
    except (OSError, Error):
        return "unknown"


def _cpu_model() -> str:
    names = ("model name", "Model", "CPU implementer")
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return platform.processor() or "unknown"


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _disk(directory: Path) -> dict[str, str]:
    """Name, model and queue of the block device; empty where there is none (tmpfs, network)."""
    number = directory.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not node.exists():
        return {}
    disk = node.resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    facts = {"name": disk.name}
    if cause := no_medium(node):
        facts["medium"] = f"unknown: {cause}"
    for key, place in (
        ("model", "device/model"),
        ("rotational", "queue/rotational"),
        ("scheduler", "queue/scheduler"),
        ("sectors_512", "size"),
    ):
        if (disk / place).is_file():
            facts[key] = (disk / place).read_text().strip()
    return facts


def _versions() -> dict[str, Any]:
    known: dict[str, Any] = {"penstock": _core.build_facts(), "python": platform.python_version()}
    for package in ("kvikio-cu12", "kvikio-cu13", "matplotlib"):
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known
