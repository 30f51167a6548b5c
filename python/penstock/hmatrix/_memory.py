"""How much memory a matrix may take when the caller does not say: half of what is free where products run, so that
other programs keep the rest. And how much the preconditioner of the default method needs at least."""

from __future__ import annotations

from typing import Any

from penstock._files.free_memory import available_bytes

_PAGE = 4096  # what is pinned of a batch takes whole pages
_PASSING = 8  # batches that there is room for beside pinned tiers, where they are smaller than a third of the memory


def cache_by_memory(device: dict[str, Any], on_host: bool = False) -> int:
    """Bytes, a page at least. `device`: Context.device."""
    free = available_bytes() if on_host or device["emulated"] else int(device["free_bytes"])
    return max(4096, free // 2)


def cache_for_a_tier(found: dict[str, Any]) -> int:
    """The least bytes of a cache in which the first tier of every batch stays, beside the room that is kept for what
    passes through: the rule of StoredSystem::cache_options, turned round. `found`: info() of the file.
    """
    pages = found["batches"] * _PAGE
    pinned, batch = found["tier_bytes"][0] + pages, found["largest_batch_bytes"] + _PAGE
    passing = max(batch + _PAGE, min(pinned // 2, _PASSING * batch))
    return min(pinned + passing, sum(found["tier_bytes"]) + pages)
