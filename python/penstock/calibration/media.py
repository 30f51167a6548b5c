"""What a trial moved on the medium itself, as the block layer counts it: what a rate was really made of.

A read from the page cache touches no medium, a cold one touches as much as it returns; the counters say which it was,
and in how many requests, for the system joins neighbours that it was asked for together.
They are of the whole disk or partition, so what others move meanwhile counts too. What has no block device (tmpfs,
network file systems, overlays) has no counters: the values are None then, never 0. So they are where the block
device is memory, or a file that may be read from memory: what it counts, no medium has moved.
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
MEMORY = ("ram", "zram", "brd")  # names of block devices that are memory


def no_medium(node: Path, blocks: Path = BLOCKS) -> str:
    """Why the counters of a block device, given by its folder in sysfs, are not those of a medium; empty: they are, as
    far as this system tells."""
    disk = node.resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    if disk.name.startswith(MEMORY):
        return f"{disk.name} is memory"
    if (disk / "loop").is_dir():
        return _loop_without_medium(disk, blocks)
    for below in sorted((disk / "slaves").glob("*")):
        if cause := no_medium(below, blocks):
            return f"{disk.name} lies on what is no medium: {cause}"
    return ""


def _loop_without_medium(disk: Path, blocks: Path) -> str:
    """A loop device counts what it is asked for; only one that reads its file past the page cache passes it all on."""
    try:
        direct = (disk / "loop" / "dio").read_text().strip() == "1"
        backing = Path((disk / "loop" / "backing_file").read_text().strip())
        number = backing.stat().st_dev
    except OSError as error:
        return f"what is below {disk.name} cannot be found: {error.strerror}"
    if not direct:
        return f"{disk.name} reads its file by the page cache"
    below = blocks / f"{os.major(number)}:{os.minor(number)}"
    if not below.exists():
        return f"{disk.name} is a file that lies on no block device"
    cause = no_medium(below, blocks)
    return f"{disk.name} is a file: {cause}" if cause else ""


@dataclass
class Moved:
    """What was read from and written to the medium within a block of code; None where the system does not count."""

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
        elif cause := no_medium(self._file.parent, blocks):
            self.cause = f"no medium is counted: {cause}"

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
        if before is not None and after is not None and not self.cause:
            read, written, reads, writes = (late - early for early, late in zip(before, after, strict=True))
            moved.read_bytes, moved.write_bytes = read * SECTOR_BYTES, written * SECTOR_BYTES
            moved.reads, moved.writes = reads, writes


def from_another_cache(moved: Moved, bytes: int) -> str:
    """Why a read that found nothing in the page cache was not one of the medium; empty when it was, or when that is
    unknown."""
    if moved.read_bytes is None or moved.read_bytes >= SHARE_MIN * bytes:
        return ""
    return f"the disk read {moved.read_bytes} of {bytes} bytes: the rest came from another cache"
