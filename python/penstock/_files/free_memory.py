"""How much memory of the host is free, for whoever has to choose a size: what a container allows counts too."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_MEMORY = Path("/proc/meminfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container; "max" where there is none


def available_bytes() -> int:
    """How much of the host's memory a program may still take."""
    found = 1 << 62
    with suppress(OSError, ValueError):
        found = int(_GROUP_LIMIT.read_text())
    with suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = min(found, int(line.split()[1]) << 10)
    return found
