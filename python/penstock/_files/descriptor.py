"""Reads and writes of a descriptor that go on after a short count.

A system call may move fewer bytes than it was asked for: a file system over a network or FUSE does so, and a disk that
becomes full does so once before it says ENOSPC. What must stay true: fewer bytes than asked come only from the end of
the file; a write that does not write all of it raises OSError.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress


def read_at(descriptor: int, bytes: int, offset_bytes: int) -> bytes:
    """The bytes there; fewer when the file ends before."""
    read = os.pread(descriptor, bytes, offset_bytes)
    if len(read) in (bytes, 0):
        return read
    parts, left = [read], bytes - len(read)
    while left > 0:
        read = os.pread(descriptor, left, offset_bytes + bytes - left)
        if not read:
            break
        parts.append(read)
        left -= len(read)
    return b"".join(parts)


def write_at(descriptor: int, content: bytes | bytearray | memoryview, offset_bytes: int) -> None:
    """Writes all of it. Raises OSError of the system."""
    rest = memoryview(content).cast("B")
    while len(rest):
        written = os.pwrite(descriptor, rest, offset_bytes)
        if written == 0:
            raise OSError(errno.EIO, f"the system wrote nothing of {len(rest)} bytes and named no error")
        rest, offset_bytes = rest[written:], offset_bytes + written


def close_read(descriptor: int) -> None:
    """Closes what was only read. An error of the close is of writes, and theirs is not this descriptor."""
    with suppress(OSError):
        os.close(descriptor)


def flush(descriptor: int) -> None:
    """What a file system tells only at close() (over a network, or FUSE), told now: OSError of the system."""
    os.close(os.dup(descriptor))
