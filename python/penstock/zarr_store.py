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
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore

from penstock._api import Context, File
from penstock._descriptor import read_at
from penstock._error import Error
from penstock._shared import shared_context

_KEPT_OPEN = 128  # files
_SMALL_BYTES = 1 << 20  # of host memory: below, a plain read is faster than handing the work to threads
_ABSENT = ("not_found", "not_a_regular_file")


class _Range(NamedTuple):
    """A range of a file that is there; `memory` is where it goes."""

    file: File
    offset_bytes: int
    memory: Any


class PenstockStore(LocalStore):
    """A folder as a store.

    Args:
        root, read_only: as of LocalStore.
        context: for reads into GPU memory; by default the one that the process keeps for the current CuPy device.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False, context: Context | None = None) -> None:
        super().__init__(root, read_only=read_only)
        self._context = context
        self._files = _Files()

    def with_read_only(self, read_only: bool = False) -> PenstockStore:
        return type(self)(self.root, read_only=read_only, context=self._context)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which makes its own context."""
        return {"root": self.root, "read_only": self.read_only, "is_open": self._is_open}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["root"], read_only=state["read_only"])  # type: ignore[misc]
        self._is_open = state["is_open"]

    def close(self) -> None:
        self._files.close()
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
        total = sum(place[2] for place in places if place is not None)
        if is_for_gpu(prototype):
            return self._into_gpu(prototype, places, total)
        if total < _SMALL_BYTES:
            return [None if place is None else _plain(prototype, *place) for place in places]
        return self._into(shared_context("host"), np.empty(total, np.uint8), prototype, places)

    def _into_gpu(
        self, prototype: BufferPrototype, places: Sequence[tuple[str, int, int] | None], total: int
    ) -> list[Buffer | None]:
        import cupy

        memory = cupy.empty(total, np.uint8)
        context = self._context or shared_context(f"cuda:{memory.device.id}")
        return self._into(context, memory, prototype, places)

    def _into(
        self,
        context: Context,
        memory: Any,
        prototype: BufferPrototype,
        places: Sequence[tuple[str, int, int] | None],
    ) -> list[Buffer | None]:
        ranges: list[_Range] = []
        parts: list[Any] = []
        end = 0
        for place in places:
            if place is None:
                parts.append(None)
                continue
            path, offset, length = place
            part = memory[end : end + length]
            end += length
            try:
                ranges += [_Range(self._files.of(context, path), offset, part)] if length else []
            except Error as error:
                if error.code not in _ABSENT:
                    raise
                part = None  # deleted since it was looked at
            parts.append(part)
        if ranges:
            _read(context, ranges)
        return [None if part is None else prototype.buffer.from_array_like(part) for part in parts]

    def _place(self, key: str, byte_range: ByteRequest | None) -> tuple[str, int, int] | None:
        """(path, offset, length) of what is there of the range; None: no such key."""
        path = f"{self.root}/{key}"
        try:
            status = os.stat(path)  # noqa: PTH116 - once a chunk
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        first, last = _bounds(byte_range, status.st_size)
        return path, first, max(0, last - first)


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


def _read(context: Context, ranges: Sequence[_Range]) -> None:
    outcome = context.start_read([tuple(one) for one in ranges]).result()
    wanted = sum(len(one.memory) for one in ranges)
    if outcome.bytes != wanted:
        raise Error(
            code="end_of_file",
            operation="read chunks of",
            file=ranges[0].file.name,
            cause=f"{outcome.bytes} of {wanted} bytes were there; a file became shorter meanwhile",
            advice="read again",
        )


class _Files:
    """Open files by context and path, as long as they are still those of that path. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[int, str], tuple[tuple[int, ...], File]] = OrderedDict()
        self._process = os.getpid()

    def of(self, context: Context, path: str) -> File:
        status = os.stat(path)  # noqa: PTH116 - once a chunk
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        key = (id(context), path)
        with self._lock:
            if self._process != os.getpid():  # a forked child: its parent's files are not its own
                self._open.clear()
                self._process = os.getpid()
            kept = self._open.get(key)
            if kept is None or kept[0] != identity:
                kept = self._open[key] = (identity, context.open(path))
            self._open.move_to_end(key)
            while len(self._open) > _KEPT_OPEN:
                self._open.popitem(last=False)
            return kept[1]

    def close(self) -> None:
        with self._lock:
            self._open.clear()
