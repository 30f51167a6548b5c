"""Decoding on an NVIDIA GPU by nvCOMP, many chunks in one batch. See decoding.py for the contract.

Memory, copies and waiting are the context's; nvCOMP gets addresses of that memory and works on the default stream. What
must stay true: all that was queued is done on return, also when it raises; the status and the size of every chunk are
read back, and a status that is no success is a fault. nvCOMP verifies no checksum, and promises nothing about
damaged streams; what it finds is reported.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.decoding import Decoded, Streams
from penstock.formats.nvcomp_library import CODECS, Library, library

_LARGEST_CHUNK = (1 << 31) - 1  # zstd's; the others reach further
_TEMP_ALIGNMENT = 256


@dataclass
class NvComp:
    """nvCOMP on the device of a context."""

    raw: _core.Context
    library: Library
    name: str = field(init=False)
    _workspace: _core.Buffer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.name = f"gpu by nvCOMP {self.library.version}"

    def refusal(self, codec: str, chunk_bytes: int) -> str:
        if codec not in CODECS:
            return f"nvCOMP does not know the codec {codec}"
        if chunk_bytes > _LARGEST_CHUNK:
            return f"its chunks of {chunk_bytes} bytes are larger than nvCOMP takes ({_LARGEST_CHUNK})"
        return ""

    def decode(self, streams: Streams) -> Decoded:
        with self._lock:
            return self._decode(streams)

    def _decode(self, streams: Streams) -> Decoded:
        """The workspace holds temporary memory, then columns: five of words that go there, the last one for sizes of
        chunks that come back, with statuses behind."""
        count = len(streams.offset)
        status, temp = self.library.temp_bytes(streams.codec, count, streams.chunk_bytes)
        self._check(status, "ask for temporary memory")
        begin = -(-temp // _TEMP_ALIGNMENT) * _TEMP_ALIGNMENT
        columns = self._columns(streams)
        space = self._room(begin + columns.nbytes + 4 * count)
        self.raw.copy_to_device(space.slice(begin, columns.nbytes), columns)
        at = [space.address + begin + 8 * count * number for number in range(6)]
        status = self.library.decompress(
            streams.codec, count, [at[0], at[1], at[2], at[4], at[3], at[5]], (space.address, begin)
        )
        _core.synchronize_stream(self.raw, 0)
        self._check(status, "decompress")
        made, statuses = np.empty(count, np.int64), np.empty(count, np.int32)
        self.raw.copy_to_host(made, space.slice(begin + 32 * count, 8 * count))
        self.raw.copy_to_host(statuses, space.slice(begin + 40 * count, 4 * count))
        bad = np.flatnonzero(statuses)
        return Decoded(made, {row: f"nvCOMP says {self.library.words(int(statuses[row]))}" for row in bad.tolist()})

    @staticmethod
    def _columns(streams: Streams) -> np.ndarray:
        """int64 [5, n]: streams, their sizes, room for chunks, chunks, and sizes of chunks (none yet)."""
        base, count = streams.memory.address, len(streams.offset)
        room, none = np.full(count, streams.chunk_bytes), np.zeros(count, np.int64)
        return np.array([base + streams.offset, streams.bytes, room, base + streams.to, none], np.int64)

    def _room(self, bytes: int) -> _core.Buffer:
        if self._workspace is None or self._workspace.bytes < bytes:
            self._workspace = None
            self._workspace = _core.allocate(self.raw, bytes, "device", "none")
        return self._workspace

    def _check(self, status: int, what: str) -> None:
        if status:
            raise Error(
                code="device_error",
                operation=f"{what} ({self.name})",
                cause=f"nvCOMP says {self.library.words(status)}",
                advice='decode="host" goes without it',
                system_code=status,
            )


def opened(raw: _core.Context) -> NvComp | str:
    """nvCOMP on the device of a context; or why not."""
    found = library()
    if isinstance(found, str):
        return found
    driver = int(raw.device_info["driver_version"])
    built = found.cuda_version // 1000
    if built > driver // 1000:
        return f"nvCOMP {found.version} was built for CUDA {built}, the driver has {driver // 1000}"
    return NvComp(raw, found)
