"""How much memory a matrix may take when the caller does not say: half of what is free where products run, so that
other programs keep the rest. And how much the preconditioner of the default method needs at least."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

_MEMORY = Path("/proc/meminfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container; "max" where there is none

_PAGE = 4096  # what is pinned of a batch takes whole pages
_PASSING = 8  # batches that there is room for beside pinned tiers, where they are smaller than a third of the memory


def cache_by_memory(device: dict[str, Any], on_host: bool = False) -> int:
    """Bytes, a page at least. `device`: Context.device."""
    free = _available() if on_host or device["emulated"] else int(device["free_bytes"])
    return max(4096, free // 2)


def cache_for_a_tier(found: dict[str, Any]) -> int:
    """The least bytes of a cache in which the first tier of every batch stays, beside the room that is kept for what
    passes through: the rule of StoredSystem::cache_options, turned round. `found`: info() of the file.
    """
    pages = found["batches"] * _PAGE
    pinned, batch = found["tier_bytes"][0] + pages, found["largest_batch_bytes"] + _PAGE
    passing = max(batch + _PAGE, min(pinned // 2, _PASSING * batch))
    return min(pinned + passing, sum(found["tier_bytes"]) + pages)


def _available() -> int:
    """Free memory of the host in bytes."""
    found = 1 << 62
    with suppress(OSError, ValueError):
        found = int(_GROUP_LIMIT.read_text())
    with suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = min(found, int(line.split()[1]) << 10)
    return found
