"""How much memory a matrix may take when nobody says: half of what is free where products run, so that others keep the
rest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

_MEMORY = Path("/proc/meminfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container; "max" where there is none


def cache_by_memory(device: dict[str, Any], on_host: bool = False) -> int:
    """Bytes, a page at least. `device`: Context.device."""
    free = _available() if on_host or device["emulated"] else int(device["free_bytes"])
    return max(4096, free // 2)


def _available() -> int:
    """Of the host."""
    found = 1 << 62
    with suppress(OSError, ValueError):
        found = int(_GROUP_LIMIT.read_text())
    with suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = min(found, int(line.split()[1]) << 10)
    return found
