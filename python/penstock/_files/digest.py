"""SHA-256 of device memory, fetched back from the device in pieces while the piece before is hashed."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

from penstock._api import Buffer, Context

PIECE_BYTES = 8 << 20


class DeviceDigest:
    """Feeds device memory, in the order of the calls, to SHA-256. As a context manager: ends its thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._hash = hashlib.sha256()
        self._pieces: list[Buffer] = []
        self._thread = ThreadPoolExecutor(1)

    def update(self, memory: Buffer) -> None:
        size = memory.bytes
        if not self._pieces:
            self._pieces = [self._context.allocate(min(PIECE_BYTES, max(size, 4096)), "pinned") for _ in range(2)]
        step = self._pieces[0].bytes
        fetched = None
        for turn, start in enumerate(range(0, size, step)):
            piece = self._pieces[turn % 2].slice(0, min(step, size - start))
            fetching = self._thread.submit(self._context.copy_to_host, piece, memory.slice(start, piece.bytes))
            if fetched is not None:
                self._hash.update(fetched)
            fetching.result()
            fetched = piece
        if fetched is not None:
            self._hash.update(fetched)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def __enter__(self) -> DeviceDigest:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
