"""The machine's fingerprint, written beside every result so that numbers can be compared years later.

Only facts of hardware, system and versions: no host name, no user name.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from penstock import Context, _core


def fingerprint(context: Context, directory: Path) -> dict[str, Any]:
    mount = mount_of(directory)
    return {
        "cpu_model": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "device": {key: value for key, value in context.device.items() if key != "free_bytes"},
        "file_system": mount["type"],
        "mount_options": mount["options"],
        "disk": _disk(directory),
        "versions": _versions(),
        "git_revision": _git_revision(),
    }


def mount_of(directory: Path) -> dict[str, str]:
    """Type and options of the mount that holds the directory."""
    number = directory.stat().st_dev
    wanted = f"{os.major(number)}:{os.minor(number)}"
    found = {"type": "unknown", "options": ""}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if fields[2] == wanted:
            found = {"type": tail[0], "options": ",".join(dict.fromkeys((fields[5] + "," + tail[2]).split(",")))}
    return found


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


def _git_revision() -> str | None:
    """Revision of the Penstock checkout the command runs in; None elsewhere."""
    if not Path("include/penstock").is_dir():
        return None
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
