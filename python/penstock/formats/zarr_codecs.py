"""Zarr's codecs: a chain that made the bytes of a chunk, and its way back on the host.

A chain is: transposes (array to array), one serializer (`bytes` or `sharding_indexed`), packers (bytes to bytes). gzip,
zlib and crc32c need nothing but Python; zstd, blosc and lz4 come from numcodecs. What must stay true: no decoder makes
more bytes than the chunk's shape says, whatever its input; a checksum that is there is verified.
"""

from __future__ import annotations

import importlib
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.formats.crc32c import crc32c
from penstock.formats.zarr_json import Unsupported, integers, named, short

kMissing = (1 << 64) - 1  # in the index of a shard: this inner chunk is not stored
_SLACK = 1 << 16  # a packer makes what it cannot shorten a little longer
_LARGEST_RATIO = 50_000  # zstd repeats 128 KiB with 3 bytes
_MEMBERS = 64  # gzip streams in a row that are one chunk
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Missing(Exception):
    """A package that decodes a codec is not installed."""


@dataclass(frozen=True)
class Packer:
    """A codec from bytes to bytes."""

    name: str


@dataclass(frozen=True)
class Sharding:
    """Chunks inside a chunk, with an index of where they are. `shape`: of an inner chunk."""

    shape: tuple[int, ...]
    inner: Pipeline
    index_at_start: bool
    index_checked: bool  # a crc32c follows the index
    index_big_endian: bool

    def grid(self, outer: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n // step for n, step in zip(outer, self.shape, strict=True))

    def index_bytes(self, outer: tuple[int, ...]) -> int:
        return 16 * math.prod(self.grid(outer)) + 4 * self.index_checked


@dataclass(frozen=True)
class Pipeline:
    """The whole chain. `orders`: of the transposes; `big_endian`: of the serializer `bytes`, None when not said."""

    orders: tuple[tuple[int, ...], ...]
    big_endian: bool | None
    sharding: Sharding | None
    packers: tuple[Packer, ...]

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that the serializer sees."""
        for order in self.orders:
            shape = tuple(shape[axis] for axis in order)
        return shape

    @property
    def order(self) -> tuple[int, ...] | None:
        """All transposes as one; None when there are none."""
        whole: tuple[int, ...] | None = None
        for order in self.orders:
            whole = order if whole is None else tuple(whole[axis] for axis in order)
        return whole

    @property
    def names(self) -> tuple[str, ...]:
        """Of the codecs that change bytes."""
        inner = ("sharding_indexed", *self.sharding.inner.names) if self.sharding else ()
        return (*(("transpose",) if self.orders else ()), *inner, *(packer.name for packer in self.packers))

    @property
    def byte_order(self) -> bool | None:
        return self.sharding.inner.byte_order if self.sharding else self.big_endian


# -- from zarr.json

_PACKERS = {"gzip", "zlib", "zstd", "blosc", "lz4", "crc32c"}


def parse_pipeline(value: Any, shape: tuple[int, ...], depth: int = 0) -> Pipeline:
    """From `codecs`, for chunks of that shape. Raises ValueError and Unsupported."""
    if not isinstance(value, list) or not 0 < len(value) <= 32 or depth > 4:
        raise ValueError(f"codecs is {short(value)}; a short list is expected")
    orders, packers = [], []
    serializer: bool | Sharding | None = None
    seen = False
    for one in value:
        name, configuration = named(one, "a codec")
        if name == "transpose":
            if seen:
                raise ValueError("codec 'transpose' comes behind the one that makes bytes")
            orders.append(_order(configuration.get("order"), len(shape)))
            shape = tuple(shape[axis] for axis in orders[-1])
        elif name in ("bytes", "sharding_indexed"):
            if seen:
                raise ValueError(f"codec {name!r} is the second one that makes bytes")
            seen = True
            serializer = _endian(configuration) if name == "bytes" else _sharding(configuration, shape, depth)
        else:
            packers.append(_packer(name, seen))
    if not seen:
        raise ValueError("no codec makes bytes of the array")
    sharding = serializer if isinstance(serializer, Sharding) else None
    big_endian = serializer if isinstance(serializer, bool) else None
    return Pipeline(tuple(orders), big_endian, sharding, tuple(packers))


def _order(value: Any, rank: int) -> tuple[int, ...]:
    if value in ("C", "F"):  # of drafts of the specification; zarr-python wrote them
        return tuple(range(rank)) if value == "C" else tuple(range(rank))[::-1]
    order = integers(value, "the order of codec 'transpose'", 0)
    if sorted(order) != list(range(rank)):
        raise ValueError(f"the order {short(value)} of codec 'transpose' is no order of {rank} dimensions")
    return order


def _endian(configuration: dict[str, Any]) -> bool | None:
    endian = configuration.get("endian")
    if endian not in ("little", "big", None):
        raise ValueError(f"endian is {short(endian)}")
    return None if endian is None else endian == "big"


def _packer(name: str, seen: bool) -> Packer:
    plain = name.removeprefix("numcodecs.")
    if plain not in _PACKERS:
        raise Unsupported(
            f"codec {name!r} is none of bytes, transpose, sharding_indexed, {', '.join(sorted(_PACKERS))}"
        )
    if not seen:
        raise ValueError(f"codec {name!r} comes before the one that makes bytes")
    return Packer(plain)


def _sharding(configuration: dict[str, Any], shape: tuple[int, ...], depth: int) -> Sharding:
    inner = integers(configuration.get("chunk_shape"), "the shape of inner chunks", 1)
    if len(inner) != len(shape) or any(n % step for n, step in zip(shape, inner, strict=True)):
        raise ValueError(f"inner chunks {inner} do not divide the shard {shape}")
    location = configuration.get("index_location", "end")
    if location not in ("start", "end"):
        raise ValueError(f"index_location is {short(location)}")
    index = parse_pipeline(configuration.get("index_codecs"), (1,), depth + 1)
    names = [packer.name for packer in index.packers]
    if index.orders or index.sharding or names not in ([], ["crc32c"]):
        raise Unsupported("the index of its shards is encoded by more than bytes and crc32c")
    pipeline = parse_pipeline(configuration.get("codecs"), inner, depth + 1)
    return Sharding(inner, pipeline, location == "start", bool(names), bool(index.big_endian))


# -- from bytes of a chunk to an array


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
    for number in np.flatnonzero(entries[:, 0] != kMissing).tolist():
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
    half = (entries == kMissing).sum(axis=1) == 1
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
        raise ValueError("it is no zstd frame")
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
        raise ValueError("it is no blosc buffer, or cut short")
    return _numcodecs("blosc", raw, int.from_bytes(raw[4:8], "little"), limit)


def _lz4(raw: memoryview, limit: int) -> bytes | bytearray:
    """numcodecs puts the length before the block."""
    if len(raw) < 4:
        raise ValueError("it is no lz4 buffer")
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
