"""Virtual datasets that the HDF5 library reads: where it cannot open a source it gives fill values, without a word.

It opens each source that a part needs, and keeps it open while the dataset is. What must stay true: a part is read with
all sources that were found for it, or an Error says which was not opened; a dataset of more sources than the process
may have descriptors is read in parts, and what was opened for one is closed before the next.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterable
from math import prod

from penstock._error import Error
from penstock.formats.hdf5.stored import Stored
from penstock.formats.model import Box

_MOST_AT_ONCE = 32  # sources, where the part can be halved
_MOST_KEPT = 16  # between two reads
_MOST_LOOKED_AT = 1 << 16  # descriptors


class MappedReads:
    """Of one virtual dataset. `files`: of a part, those of its sources that are there; `anew`: closes the dataset and
    opens it again, which closes its sources."""

    def __init__(self, stored: Stored, files: Callable[[Box], set[str]], anew: Callable[[Stored], Stored]) -> None:
        self._stored, self._files, self._anew = stored, files, anew
        self._held: set[str] = set()

    def read(self, box: Box) -> memoryview:
        """As Stored.read(). Few sources stay open."""
        found = self._part(box)
        if len(self._held) > _MOST_KEPT or not _has_descriptors(_MOST_KEPT):
            self._close_sources()
        return found

    def _part(self, box: Box) -> memoryview:
        files, halves = self._files(box), _halves(box, self._stored.rank)
        if halves is None or len(files) <= _MOST_AT_ONCE:
            if len(self._held | files) > _MOST_AT_ONCE:
                self._close_sources()
            self._held |= files
            found = self._stored.read(box)
            missing = not_open(files)
            if missing is None:
                return found
            self._close_sources()
            if halves is None:
                raise left_out(self._stored, missing)
        joined = bytearray(prod(high - low for low, high in zip(*box, strict=True)) * self._stored.info.dtype.itemsize)
        at = 0
        for half in halves:
            part = self._part(half)
            joined[at : at + len(part)] = part
            at += len(part)
        return memoryview(joined)

    def _close_sources(self) -> None:
        self._stored, self._held = self._anew(self._stored), set()


def _halves(box: Box, rank: int) -> tuple[Box, Box] | None:
    """Two boxes that follow each other in C order; None of a single element."""
    counts = [high - low for low, high in zip(box.start, box.stop, strict=True)][:rank]
    axis = next((axis for axis, count in enumerate(counts) if count > 1), None)
    if axis is None:
        return None
    middle = box.start[axis] + counts[axis] // 2
    first = Box(box.start, (*box.stop[:axis], middle, *box.stop[axis + 1 :]))
    return first, Box((*box.start[:axis], middle, *box.start[axis + 1 :]), box.stop)


def not_open(files: Iterable[str]) -> str | None:
    """After a read: one of the files that this process does not have open. None: it has all; and HDF5, which keeps what
    it opens, had descriptors for the sources of sources too, because one is left."""
    if not _has_descriptors(1):
        return next(iter(files), "")
    held = set()
    for number in _descriptors():
        try:
            found = os.fstat(number)
        except OSError:
            continue
        held.add((found.st_dev, found.st_ino))
    for file in files:
        try:
            found = os.stat(file)  # noqa: PTH116 - half the time of a Path's
        except OSError:
            return file
        if (found.st_dev, found.st_ino) not in held:
            return file
    return None


def _has_descriptors(count: int) -> bool:
    """Whether this process may open so many more files."""
    opened: list[int] = []
    try:
        opened += (os.open("/", os.O_RDONLY | os.O_CLOEXEC) for _ in range(count))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    finally:
        for one in opened:
            os.close(one)
    return True


def _descriptors() -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names only
    except OSError:  # there may be no descriptor for that
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return range(_MOST_LOOKED_AT if soft < 0 else min(soft, _MOST_LOOKED_AT))


def left_out(stored: Stored, file: str) -> Error:
    """HDF5 did not open a source, and gave fill values in its place."""
    what = f"its source file {file!r}" if file else "a source file"
    advice = "raise the limit of open files (ulimit -n), or close some; set HDF5_VDS_PREFIX before Python starts"
    return Error(
        code="io_error",
        operation=f"read dataset {stored.info.name!r} of",
        file=stored.home,
        cause=f"the HDF5 library could not open {what}, and gave fill values in its place",
        advice=advice,
    )
