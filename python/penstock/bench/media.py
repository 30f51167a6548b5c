"""What a trial moved on the medium itself, as the block layer counts it: what a rate was really made of.

A read from the page cache touches no medium, a cold one touches as much as it returns; the counters say which it was,
and in how many requests, for the system joins neighbours that it was asked for together.
They are of the whole disk or partition, so what others move meanwhile counts too. What has no block device (tmpfs,
network file systems, overlays) has no counters: the values are None then, never 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECTOR_BYTES = 512  # of the counters, whatever the disk's sectors are
SHARE_MIN = 0.9  # of a cold read's bytes that have to come from the medium
BLOCKS = Path("/sys/dev/block")


@dataclass
class Moved:
    """What was read from and written to the medium within a block of code; None where nobody counts."""

    read_bytes: int | None = None
    write_bytes: int | None = None
    reads: int | None = None
    writes: int | None = None

    def fields(self) -> dict[str, Any]:
        return {
            "media_read_bytes": self.read_bytes,
            "media_write_bytes": self.write_bytes,
            "media_reads": self.reads,
            "media_writes": self.writes,
        }


class Media:
    """The block device below a directory. `cause` says why there is none."""

    def __init__(self, directory: Path, blocks: Path = BLOCKS) -> None:
        number = directory.stat().st_dev
        self._file = blocks / f"{os.major(number)}:{os.minor(number)}" / "stat"
        self.cause = ""
        if self._counted() is None:
            self.cause = "no block device counts what this file system moves"

    def _counted(self) -> tuple[int, int, int, int] | None:
        """Sectors read and written since the system started, and requests that did it."""
        try:
            words = self._file.read_text().split()
            return int(words[2]), int(words[6]), int(words[0]), int(words[4])
        except (OSError, ValueError, IndexError):
            return None

    @contextmanager
    def watch(self) -> Iterator[Moved]:
        moved = Moved()
        before = self._counted()
        yield moved
        after = self._counted()
        if before is not None and after is not None:
            read, written, reads, writes = (late - early for early, late in zip(before, after, strict=True))
            moved.read_bytes, moved.write_bytes = read * SECTOR_BYTES, written * SECTOR_BYTES
            moved.reads, moved.writes = reads, writes


def from_another_cache(moved: Moved, bytes: int) -> str:
    """Why a read that found nothing in the page cache was not one of the medium; empty when it was, or nobody knows."""
    if moved.read_bytes is None or moved.read_bytes >= SHARE_MIN * bytes:
        return ""
    return f"the disk read {moved.read_bytes} of {bytes} bytes: the rest came from another cache"
