"""Decoding on an NVIDIA GPU by nvCOMP, many chunks in one batch. See decoding.py for the contract.

Memory, copies and waiting are the context's; nvCOMP gets addresses of that memory and works on the default stream. What
must stay true: what was queued is done on return; the status and the size of every chunk are read back, and a status
that is no success is a fault. nvCOMP verifies no checksum, and promises nothing about damaged streams; callers do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.reading.decoders.decoding import Decoded, Streams
from penstock.formats.reading.decoders.nvcomp_library import CODECS, Library, library

_LARGEST_CHUNK = (1 << 31) - 1  # zstd's; the others reach further
_TEMP_ALIGNMENT = 256


@dataclass
class NvComp:
    """nvCOMP on the device of a context."""

    raw: _core.Context
    library: Library
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"gpu by nvCOMP {self.library.version}"

    def refusal(self, codec: str, chunk_bytes: int) -> str:
        if codec not in CODECS:
            return f"nvCOMP does not know the codec {codec}"
        if chunk_bytes > _LARGEST_CHUNK:
            return f"its chunks of {chunk_bytes} bytes are larger than nvCOMP takes ({_LARGEST_CHUNK})"
        return ""

    def decode(self, streams: Streams) -> Decoded:
        """Works in memory of its own: temporary memory of nvCOMP, then columns of words that go there, one of sizes of
        chunks that come back, and their statuses. Taking it costs a millisecond, and keeping it would be gigabytes."""
        count = len(streams.offset)
        largest, total = int(streams.room.max()), int(streams.room.sum())
        status, temp = self.library.temp_bytes(streams.codec, count, largest, total)
        self._check(status, "ask for temporary memory")
        begin = -(-temp // _TEMP_ALIGNMENT) * _TEMP_ALIGNMENT
        columns = self._columns(streams)
        space = _core.allocate(self.raw, begin + columns.nbytes + 4 * count, "device", "none")
        self.raw.copy_to_device(space.slice(begin, columns.nbytes), columns)
        source, sizes, room, chunks, made, statuses = (space.address + begin + 8 * count * i for i in range(6))
        where = [source, sizes, room, made, chunks, statuses]
        status = self.library.decompress(streams.codec, count, where, (space.address, begin))
        _core.synchronize_stream(self.raw, 0)
        self._check(status, "decompress")
        return self._results(space.slice(begin + 32 * count, 12 * count), count)

    @staticmethod
    def _columns(streams: Streams) -> np.ndarray:
        """int64 [5, n]: streams, their sizes, room for chunks, chunks, and sizes of chunks (none yet)."""
        base, count = streams.memory.address, len(streams.offset)
        none = np.zeros(count, np.int64)
        return np.array([base + streams.offset, streams.bytes, streams.room, base + streams.to, none], np.int64)

    def _results(self, memory: _core.Buffer, count: int) -> Decoded:
        made, statuses = np.empty(count, np.int64), np.empty(count, np.int32)
        self.raw.copy_to_host(made, memory.slice(0, 8 * count))
        self.raw.copy_to_host(statuses, memory.slice(8 * count, 4 * count))
        bad = np.flatnonzero(statuses).tolist()
        return Decoded(made, {row: f"nvCOMP says {self.library.words(int(statuses[row]))!r}" for row in bad})

    def _check(self, status: int, what: str) -> None:
        if status:
            raise Error(
                code="device_error",
                operation=f"{what} ({self.name})",
                cause=f"nvCOMP says {self.library.words(status)!r}",
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
