"""A store for zarr-python 3 that reads by Penstock: into GPU memory where zarr is asked for GPU buffers.

    import zarr
    from penstock.zarr_store import PenstockStore

    with zarr.config.enable_gpu():
        array = zarr.open_array(PenstockStore("x.zarr"), mode="r")[:]   # CuPy; chunks went straight to the GPU

Everything else is zarr's LocalStore. What must stay true: what is read is what the file holds at that moment (a chunk
that was replaced is opened again); small reads into host memory stay as fast as those of LocalStore, because they are
those of LocalStore.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

try:
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
    from zarr.storage import LocalStore
except ModuleNotFoundError as absent:
    if (absent.name or "").split(".")[0] != "zarr":
        raise
    raise ModuleNotFoundError("penstock.zarr_store needs zarr 3: pip install 'zarr>=3'", name=absent.name) from None

from penstock import _core
from penstock._api import Context, Transfer
from penstock._error import Error
from penstock._files.descriptor import read_at
from penstock._files.open_files import Full, Lease, OpenFiles
from penstock._shared import shared_context

_SMALL_BYTES = 1 << 20  # of host memory: below, a plain read is faster than handing the work to threads
_ABSENT = ("not_found", "not_a_regular_file")


class _Place(NamedTuple):
    """What is there of a key."""

    path: str
    offset_bytes: int
    length: int


class _Range(NamedTuple):
    """A place, and where it goes; `number` is the caller's."""

    place: _Place
    memory: Any
    number: int


class PenstockStore(LocalStore):
    """A folder as a store.

    Args:
        root, read_only: as of LocalStore.
        context: for reads into GPU memory; by default the one that the process keeps for the current CuPy device.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False, context: Context | None = None) -> None:
        super().__init__(Path(root).absolute(), read_only=read_only)
        self._context = context
        self._reader = _Reader()

    def with_read_only(self, read_only: bool = False) -> PenstockStore:
        return type(self)(self.root, read_only=read_only, context=self._context)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which makes its own context."""
        return {"root": self.root, "read_only": self.read_only, "is_open": self._is_open}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["root"], read_only=state["read_only"])  # type: ignore[misc]
        self._is_open = state["is_open"]

    def close(self) -> None:
        self._reader.close()
        super().close()

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        self._ensure_open_sync()
        return self._get_all(prototype or default_buffer_prototype(), [(key, byte_range)])[0]

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if not self._is_open:
            await self._open()
        found = await asyncio.to_thread(self._get_all, prototype or default_buffer_prototype(), [(key, byte_range)])
        return found[0]

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """All of the ranges in one submission, into one allocation."""
        if not self._is_open:
            await self._open()
        return await asyncio.to_thread(self._get_all, prototype, list(key_ranges))

    def _get_all(
        self, prototype: BufferPrototype, wanted: Sequence[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        places = [self._place(key, byte_range) for key, byte_range in wanted]
        total = sum(place.length for place in places if place is not None)
        if is_for_gpu(prototype):
            return self._into_gpu(prototype, places, total)
        if total < _SMALL_BYTES:
            return [None if place is None else _plain(prototype, *place) for place in places]
        return self._into(shared_context("host"), np.empty(total, np.uint8), prototype, places)

    def _into_gpu(self, prototype: BufferPrototype, places: Sequence[_Place | None], total: int) -> list[Buffer | None]:
        import cupy

        memory = cupy.empty(total, np.uint8)
        context = self._context or shared_context(f"cuda:{memory.device.id}")
        return self._into(context, memory, prototype, places)

    def _into(
        self,
        context: Context,
        memory: Any,
        prototype: BufferPrototype,
        places: Sequence[_Place | None],
    ) -> list[Buffer | None]:
        ranges, parts, end = [], [], 0
        for place in places:
            if place is None:
                parts.append(None)
                continue
            part = memory[end : end + place.length]
            end += place.length
            parts.append(part)
            ranges += [_Range(place, part, len(parts) - 1)] if place.length else []
        for absent in self._reader.read(context, ranges):
            parts[absent] = None
        return [None if part is None else prototype.buffer.from_array_like(part) for part in parts]

    def _place(self, key: str, byte_range: ByteRequest | None) -> _Place | None:
        """(path, offset, length) of what is there of the range; None: no such key."""
        path = f"{self.root}/{key}"
        try:
            status = os.stat(path)  # noqa: PTH116 - once a chunk
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        first, last = _bounds(byte_range, status.st_size)
        return _Place(path, first, max(0, last - first))


def is_for_gpu(prototype: BufferPrototype) -> bool:
    """Whether buffers of this prototype are CuPy's."""
    return any(kind.__module__ == "zarr.core.buffer.gpu" for kind in prototype.buffer.__mro__)


def _bounds(byte_range: ByteRequest | None, size: int) -> tuple[int, int]:
    """[first, last) of a file of that size."""
    if byte_range is None:
        return 0, size
    if isinstance(byte_range, RangeByteRequest):
        return min(byte_range.start, size), min(byte_range.end, size)
    if isinstance(byte_range, OffsetByteRequest):
        return min(byte_range.offset, size), size
    if isinstance(byte_range, SuffixByteRequest):
        return max(0, size - byte_range.suffix), size
    raise TypeError(f"a byte range of zarr is expected, not {byte_range!r}")


def _plain(prototype: BufferPrototype, path: str, offset: int, length: int) -> Buffer | None:
    try:
        with Path(path).open("rb", buffering=0) as file:
            raw = read_at(file.fileno(), length, offset)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if len(raw) != length:
        raise Error.cut_short(path, offset, length, len(raw))
    return prototype.buffer.from_bytes(raw)


class _Reader:
    """Reads ranges of files, which are kept open as long as they are still those of their path. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[int, tuple[Context, OpenFiles]] = {}
        self._process = os.getpid()

    def read(self, context: Context, ranges: Sequence[_Range]) -> list[int]:
        """Returns the numbers of ranges whose files were deleted since they were looked at."""
        files, left, absent = self._of(context), dict[str, list[_Range]](), list[int]()
        for one in ranges:
            left.setdefault(one.place.path, []).append(one)
        while left:
            names = list(left)
            try:
                lease = files.lease(names, versions=[*map(_version, names)])
            except Error as error:
                if error.code not in _ABSENT or error.file not in left:
                    raise
                absent += [one.number for one in left.pop(error.file)]
                continue
            if isinstance(lease, Full):
                lease.settle(None)
            else:
                some = [left.pop(name) for name in names[: len(lease.files)]]
                _read(context, lease, some)
        return absent

    def _of(self, context: Context) -> OpenFiles:
        with self._lock:
            if self._process != os.getpid():  # a forked child: its parent's files are not its own
                self._files.clear()
                self._process = os.getpid()
            return self._files.setdefault(id(context), (context, OpenFiles(context._raw)))[1]

    def close(self) -> None:
        with self._lock:
            self._files.clear()


def _version(path: str) -> tuple[int, ...] | None:
    """None of a file that is gone, which opening it says."""
    try:
        status = os.stat(path)  # noqa: PTH116 - once a chunk
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read(context: Context, lease: Lease, ranges: Sequence[list[_Range]]) -> None:
    """`ranges`: of each of the files of the lease."""
    with lease:
        pairs = [(file, one) for file, some in zip(lease.files, ranges, strict=True) for one in some]
        wanted = [(file, one.place.offset_bytes, one.memory) for file, one in pairs]
        transfer = _core.start(context._raw, "read", wanted)
        use = lease.began(transfer)
    try:
        outcome = Transfer(transfer)._finish()
    finally:
        use.over()
    OpenFiles.settle()
    asked = sum(one.place.length for _, one in pairs)
    if outcome.bytes != asked:
        first = pairs[0][1].place
        raise Error.cut_short(first.path, first.offset_bytes, asked, outcome.bytes)
