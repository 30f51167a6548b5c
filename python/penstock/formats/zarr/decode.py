"""Zarr's chunks decoded on the host: from stored bytes, back through the chain of codecs, to an array.

gzip, zlib and crc32c need nothing but Python; zstd, blosc and lz4 come from numcodecs. What must stay true: no decoder
makes more bytes than the chunk's shape says, whatever its input; a checksum that is there is verified.
"""

from __future__ import annotations

import importlib
import math
import zlib
from collections.abc import Callable

import numpy as np

from penstock.formats.crc32c import crc32c
from penstock.formats.zarr.codecs import Pipeline, Sharding

NOT_STORED = (1 << 64) - 1  # in the index of a shard: there is no such inner chunk
_SLACK = 1 << 16  # a packer makes what it cannot shorten a little longer
_LARGEST_RATIO = 50_000  # zstd repeats 128 KiB with 3 bytes
_MEMBERS = 64  # gzip streams in a row that are one chunk
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Missing(Exception):
    """A package that decodes a codec is not installed."""


def decode_chunk(pipeline: Pipeline, raw: memoryview, shape: tuple[int, ...], fill: np.ndarray) -> np.ndarray:
    """The chunk as an array of that shape. `fill`: an array of one element, whose type is that of the result. Raises
    ValueError where the bytes are damaged."""
    stored = pipeline.stored_shape(shape)
    wanted = math.prod(stored) * fill.dtype.itemsize
    data = raw
    for number in range(len(pipeline.packers) - 1, -1, -1):
        exact = number == 0 and pipeline.sharding is None
        data = _unpack(pipeline.packers[number].name, data, wanted, exact)
    if pipeline.sharding is not None:
        array = decode_shard(pipeline.sharding, data, stored, fill)
    elif len(data) != wanted:
        raise ValueError(f"it has {len(data)} bytes, its shape says {wanted}")
    else:
        array = np.frombuffer(data, fill.dtype).reshape(stored)
    for order in pipeline.orders[::-1]:
        array = array.transpose(np.argsort(order))
    return array


def decode_shard(sharding: Sharding, raw: memoryview, shape: tuple[int, ...], fill: np.ndarray) -> np.ndarray:
    """A shard that is itself encoded, or lies in another one: all of it."""
    size = sharding.index_bytes(shape)
    if size > len(raw):
        raise ValueError(f"the shard has {len(raw)} bytes, its index alone {size}")
    grid = sharding.grid(shape)
    entries = parse_index(sharding, raw[:size] if sharding.index_at_start else raw[len(raw) - size :])
    _bounded(math.prod(shape) * fill.dtype.itemsize, len(raw), "shard")
    out = np.empty(shape, fill.dtype)
    out[...] = fill
    for number in np.flatnonzero(entries[:, 0] != NOT_STORED).tolist():
        first, length = int(entries[number, 0]), int(entries[number, 1])
        if first + length > len(raw):
            raise ValueError(f"inner chunk {number} ends at {first + length}, the shard at {len(raw)}")
        place = np.unravel_index(number, grid)
        part = tuple(slice(int(at) * n, (int(at) + 1) * n) for at, n in zip(place, sharding.shape, strict=True))
        out[part] = decode_chunk(sharding.inner, raw[first : first + length], sharding.shape, fill)
    return out


def parse_index(sharding: Sharding, raw: memoryview | bytes) -> np.ndarray:
    """uint64 [n, 2]: offset and length of each inner chunk. Raises ValueError when the checksum does not fit."""
    body = raw[: len(raw) - 4] if sharding.index_checked else raw
    if sharding.index_checked:
        stored = int.from_bytes(raw[len(raw) - 4 :], "little")
        found = crc32c(body)
        if stored != found:
            raise ValueError(f"the checksum of the shard's index is {found:#010x}, it says {stored:#010x}")
    entries = np.frombuffer(body, ">u8" if sharding.index_big_endian else "<u8").astype(np.uint64).reshape(-1, 2)
    half = (entries == NOT_STORED).sum(axis=1) == 1
    if half.any():
        raise ValueError(f"the index of inner chunk {int(np.argmax(half))} is neither a place nor empty")
    return entries


def _unpack(name: str, raw: memoryview, wanted: int, exact: bool) -> memoryview:
    """One packer back. `exact`: the result must have `wanted` bytes, else at most a little more."""
    if name == "crc32c":
        if len(raw) < 4:
            raise ValueError(f"{len(raw)} bytes are too few for a checksum")
        stored, found = int.from_bytes(raw[len(raw) - 4 :], "little"), crc32c(raw[: len(raw) - 4])
        if stored != found:
            raise ValueError(f"its checksum is {found:#010x}, it says {stored:#010x}")
        return raw[: len(raw) - 4]
    limit = wanted if exact else wanted + wanted // 16 + _SLACK
    _bounded(wanted if exact else 0, len(raw), "chunk")
    data = _UNPACK[name](raw, limit)
    if exact and len(data) != wanted:
        raise ValueError(f"codec {name} gave {len(data)} bytes, its shape says {wanted}")
    return memoryview(data)


def _bounded(wanted: int, stored: int, what: str) -> None:
    if wanted > stored * _LARGEST_RATIO + _SLACK:
        raise ValueError(f"a {what} of {wanted} bytes cannot come from {stored} bytes")


def _deflated(window_bits: int) -> Callable[[memoryview, int], bytes]:
    def unpack(raw: memoryview, limit: int) -> bytes:
        parts: list[bytes] = []
        total, left = 0, raw
        while len(left) or not parts:
            if len(parts) == _MEMBERS:
                raise ValueError(f"it has more than {_MEMBERS} deflate streams")
            stream = zlib.decompressobj(window_bits)
            try:
                parts.append(stream.decompress(left, limit - total + 1))
            except zlib.error as error:
                raise ValueError(f"its deflate stream is damaged: {error}") from None
            total += len(parts[-1])
            if total > limit:
                raise ValueError(f"it decodes to more than the {limit} bytes of its shape")
            if not stream.eof:
                raise ValueError("its deflate stream is cut short")
            left = memoryview(stream.unused_data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    return unpack


def _zstd(raw: memoryview, limit: int) -> bytes | bytearray:
    content = _zstd_content(raw)
    return _numcodecs("zstd", raw, limit if content is None else content, limit)  # unknown: it must fill the chunk


def _zstd_content(raw: memoryview) -> int | None:
    """Frame_Content_Size of RFC 8878, 3.1.1.1; None when the frame does not say."""
    if len(raw) < 6 or raw[:4] != _ZSTD_MAGIC:
        raise ValueError("it is not a zstd frame")
    descriptor = raw[4]
    single = descriptor >> 5 & 1
    at = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    width = (single, 2, 4, 8)[descriptor >> 6]
    if width == 0:
        return None
    if len(raw) < at + width:
        raise ValueError("its zstd frame is cut short")
    return int.from_bytes(raw[at : at + width], "little") + (256 if width == 2 else 0)


def _blosc(raw: memoryview, limit: int) -> bytes | bytearray:
    """Header of c-blosc: 4 bytes of versions and flags, then sizes: content, block, all."""
    if len(raw) < 16 or int.from_bytes(raw[12:16], "little") != len(raw):
        raise ValueError("it is not a blosc buffer, or was cut short")
    return _numcodecs("blosc", raw, int.from_bytes(raw[4:8], "little"), limit)


def _lz4(raw: memoryview, limit: int) -> bytes | bytearray:
    """numcodecs puts the length before the block."""
    if len(raw) < 4:
        raise ValueError("it is not a lz4 buffer")
    return _numcodecs("lz4", raw, int.from_bytes(raw[:4], "little"), limit)


def _numcodecs(name: str, raw: memoryview, content: int, limit: int) -> bytes | bytearray:
    if content > limit:
        raise ValueError(f"it decodes to {content} bytes, more than the {limit} of its shape")
    _bounded(content, len(raw), "chunk")
    try:
        module = importlib.import_module(f"numcodecs.{name}")
    except ImportError:
        raise Missing(name) from None
    out = bytearray(content)
    if content == 0:
        return out
    try:
        module.decompress(raw, out)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"codec {name} cannot decode it: {error}") from None
    return out


_UNPACK: dict[str, Callable[[memoryview, int], bytes | bytearray]] = {
    "gzip": _deflated(31),
    "zlib": _deflated(15),
    "zstd": _zstd,
    "blosc": _blosc,
    "lz4": _lz4,
}
