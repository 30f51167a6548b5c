"""A decoder of streams on the emulated device, by zlib and numcodecs: what nvCOMP does on a GPU, without one.

It keeps to the contract of decoding.DeviceDecoder and asserts what callers promise, so that all of the way but the
library itself runs in tests everywhere.
"""

from __future__ import annotations

import importlib
import zlib

import numpy as np

from penstock.formats.reading.decoders.decoding import STREAM_ALIGNMENT, Decoded, Streams


class HostStreams:
    """Decodes in ordinary memory."""

    name = "gpu by zlib"

    def refusal(self, codec: str, chunk_bytes: int) -> str:
        return "" if codec in ("deflate", "gzip", "zstd", "lz4") else f"it does not know the codec {codec}"

    def decode(self, streams: Streams) -> Decoded:
        memory = np.frombuffer(streams.memory, np.uint8)
        assert not (streams.offset % STREAM_ALIGNMENT).any()
        assert not (streams.to % STREAM_ALIGNMENT).any()
        self._check_apart(streams, len(memory))
        made, faults = np.zeros(len(streams.offset), np.int64), dict[int, str]()
        rows = zip(streams.offset, streams.bytes, streams.to, streams.room.tolist(), strict=True)
        for row, (at, size, to, room) in enumerate(rows):
            try:
                plain = _decode(streams.codec, memory[at : at + size].tobytes(), room)
            except (zlib.error, RuntimeError, ValueError) as error:
                faults[row] = str(error)
                continue
            made[row] = len(plain)
            memory[to : to + len(plain)] = np.frombuffer(plain, np.uint8)
        return Decoded(made, faults)

    @staticmethod
    def _check_apart(streams: Streams, memory_bytes: int) -> None:
        begins = np.concatenate([streams.offset, streams.to])
        sizes = np.concatenate([streams.bytes, streams.room])
        order = np.argsort(begins)
        ends = (begins + sizes)[order]
        assert (begins[order][1:] >= ends[:-1]).all()
        assert ends[-1] <= memory_bytes


def _decode(codec: str, raw: bytes, limit: int) -> bytes:
    if codec in ("deflate", "gzip"):
        stream = zlib.decompressobj(-15)  # which looks at no checksum, as nvCOMP does not
        plain = stream.decompress(raw if codec == "deflate" else raw[10:], limit + 1)
        if not stream.eof and len(plain) <= limit:
            raise ValueError("the stream is cut short")
    else:
        module = importlib.import_module(f"numcodecs.{codec}")
        plain = bytes(module.decompress(limit.to_bytes(4, "little") + raw if codec == "lz4" else raw))
    if len(plain) > limit:
        raise ValueError("the stream is longer than its room")
    return plain
