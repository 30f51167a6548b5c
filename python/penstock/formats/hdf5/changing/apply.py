"""Makes ordered changes to the structures of a file, and takes them back.

A process that is killed leaves a prefix of the changes, each whole: one write inside a page is not divided, and what
crosses a page is written past the page cache, as one request that the kernel finishes. What must stay true: taking
changes back passes through the same states as making them did, in the other order, and may begin before all were made.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence

from penstock._files.descriptor import read_at, write_at
from penstock._files.open_files import with_room
from penstock.formats.faults import unsupported
from penstock.formats.hdf5.changing.order import Change
from penstock.formats.hdf5.changing.overlay import PAGE_BYTES


def check_applicable(name: str, changes: Sequence[Change]) -> None:
    """Raises Error, before anything is touched, when a change cannot be made in one step here."""
    if all(one.in_one_page for one in changes):
        return
    try:
        os.close(_open_direct(name))
    except OSError as error:
        cause = "a structure of it crosses a page, and this file system has no direct I/O to change that in one step"
        raise unsupported(name, cause, "append with h5py, or on another file system") from error


def apply(name: str, descriptor: int, changes: Sequence[Change]) -> None:
    """In order. Raises OSError of the system; a part of the changes is then made."""
    for one in changes:
        _put(name, descriptor, one.offset, one.new)


def undo(name: str, descriptor: int, changes: Sequence[Change]) -> None:
    """The old bytes, from the last change to the first. Raises OSError of the system."""
    for one in reversed(changes):
        _put(name, descriptor, one.offset, one.old)


def _put(name: str, descriptor: int, offset: int, content: bytes) -> None:
    if offset // PAGE_BYTES == (offset + len(content) - 1) // PAGE_BYTES:
        write_at(descriptor, content, offset)
    else:
        _write_direct(name, descriptor, offset, content)


def _write_direct(name: str, descriptor: int, offset: int, content: bytes) -> None:
    """All pages in one request."""
    first = offset // PAGE_BYTES * PAGE_BYTES
    last = -(-(offset + len(content)) // PAGE_BYTES) * PAGE_BYTES
    inside = offset - first
    with mmap.mmap(-1, last - first) as pages:  # aligned, as direct I/O wants it
        found = read_at(descriptor, last - first, first)
        pages[: len(found)] = found
        pages[inside : inside + len(content)] = content
        direct = _open_direct(name)
        try:
            if not os.path.samestat(os.fstat(direct), os.fstat(descriptor)):
                raise OSError(errno.ESTALE, "another file has taken its name meanwhile")
            written = os.pwritev(direct, [pages], first)
        finally:
            os.close(direct)
    if written != last - first:
        raise OSError(errno.EIO, f"{written} of {last - first} bytes were written")


def _open_direct(name: str) -> int:
    return with_room(lambda: os.open(name, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC))
