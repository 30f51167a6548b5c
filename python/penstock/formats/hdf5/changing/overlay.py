"""What HDF5 sees of a file while it changes metadata: the real bytes, with its own writes kept in memory above them.

h5py's "fileobj" driver calls this object. HDF5 hands over each structure (object header, B-tree node, superblock, ...)
as one write, so the writes are kept as such: who applies them later knows where structures begin and end. What must
stay true: the real file is never written here; later writes of the same bytes win.
"""

from __future__ import annotations

import errno
import os
from typing import Protocol

import numpy as np

from penstock._files.descriptor import read_at

PAGE_BYTES = 4096


def _address_of(buffer: memoryview) -> int:
    return int(np.frombuffer(buffer, np.uint8).ctypes.data)


class Real(Protocol):
    """The real file. Its descriptor is asked for each time: the number may be another file's once it is closed."""

    @property
    def descriptor(self) -> int:
        """-1 when it is closed."""


class Overlay:
    """`base_bytes`: how much of the real file counts (0: a new one)."""

    def __init__(self, real: Real, base_bytes: int) -> None:
        self._real = real
        self._base_bytes = base_bytes
        self._pages: dict[int, bytearray] = {}  # pages that were written, whole
        self._at = 0
        self.size_bytes = base_bytes
        self.structures: dict[int, int] = {}  # offset: bytes, of each write
        # Address and bytes of a write that only claims space: its content is dropped.
        self.swallowed: tuple[int, int] | None = None

    def readinto(self, buffer: memoryview) -> int:
        wanted = min(len(buffer), max(0, self.size_bytes - self._at))
        buffer[:wanted] = self.bytes_at(self._at, wanted)
        self._at += wanted
        return wanted

    def write(self, buffer: memoryview) -> int:
        count = len(buffer)
        if self.swallowed is not None and count == self.swallowed[1] and _address_of(buffer) == self.swallowed[0]:
            self.swallowed = None
        else:
            self._store(self._at, bytes(buffer))
        self._at += count
        self.size_bytes = max(self.size_bytes, self._at)
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size_bytes}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def truncate(self, size: int | None = None) -> int:
        self.size_bytes = self._at if size is None else size
        return self.size_bytes

    def flush(self) -> None:
        """Nothing is delayed."""

    def bytes_at(self, offset: int, count: int) -> bytes:
        """As HDF5 sees them: what was written, else what the file holds, else zeros."""
        parts = []
        while count > 0:
            number, inside = divmod(offset, PAGE_BYTES)
            part = min(count, PAGE_BYTES - inside)
            page = self._pages.get(number)
            if page is None:
                part = self._unwritten(number, inside, count)
                parts.append(self.original(offset, part))
            else:
                parts.append(bytes(page[inside : inside + part]))
            offset, count = offset + part, count - part
        return b"".join(parts)

    def original(self, offset: int, count: int) -> bytes:
        """Bytes of the real file, zeros beyond what counts of it, and all zeros when it is closed: the garbage
        collector may do that before HDF5 lets go, and nothing is applied then."""
        wanted = max(0, min(count, self._base_bytes - offset))
        descriptor = self._real.descriptor
        if wanted and descriptor < 0:
            return bytes(count)
        found = read_at(descriptor, wanted, offset) if wanted else b""
        if len(found) != wanted:  # zeros in place of structures would be written back as such
            raise OSError(errno.EIO, f"the file ended {wanted - len(found)} bytes early: it was cut short meanwhile")
        return found.ljust(count, b"\0")

    def _unwritten(self, number: int, inside: int, count: int) -> int:
        """Bytes until the next page that was written."""
        end = (number + 1) * PAGE_BYTES
        start = number * PAGE_BYTES + inside
        while end - start < count and end // PAGE_BYTES not in self._pages:
            end += PAGE_BYTES
        return min(count, end - start)

    def _store(self, offset: int, content: bytes) -> None:
        self.structures[offset] = max(len(content), self.structures.get(offset, 0))
        done = 0
        while done < len(content):
            number, inside = divmod(offset + done, PAGE_BYTES)
            part = min(len(content) - done, PAGE_BYTES - inside)
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = bytearray(self.original(number * PAGE_BYTES, PAGE_BYTES))
            page[inside : inside + part] = content[done : done + part]
            done += part
