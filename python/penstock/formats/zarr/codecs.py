"""Zarr's codecs as data: the chain that made the bytes of a chunk, parsed from its metadata.

A chain is: transposes (array to array), one serializer (`bytes` or `sharding_indexed`), packers (bytes to bytes).
`zarr/decode` goes the way back. What must stay true: a chain that is not understood to the end is refused by the name
of its codec, or is a ValueError; inner chunks divide their shard.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._files.documents import Unsupported, integers, named, short


@dataclass(frozen=True)
class Packer:
    """A codec from bytes to bytes. `values`: of shuffle, the bytes of an element. `at_start`: of a checksum, that it
    stands before the bytes. `stored` and `made`: of one that makes other numbers, NumPy's names of the types that it
    leaves and takes. `scale`: what fixedscaleoffset multiplies with, and what it takes away before."""

    name: str
    values: tuple[int, ...] = ()
    at_start: bool = False
    stored: str = ""
    made: str = ""
    scale: tuple[float, float] = (1, 0)


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
    """The whole chain. `orders`: of the transposes; `big_endian`: of the serializer `bytes`, None when not said;
    `objects`: what the serializer makes bytes of, where those are no elements of a fixed size: "utf8" or "bytes"."""

    orders: tuple[tuple[int, ...], ...]
    big_endian: bool | None
    sharding: Sharding | None
    packers: tuple[Packer, ...]
    objects: str = ""

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
        """Names of the codecs that change bytes."""
        inner = ("sharding_indexed", *self.sharding.inner.names) if self.sharding else ()
        return (*(("transpose",) if self.orders else ()), *inner, *(packer.name for packer in self.packers))

    @property
    def byte_order(self) -> bool | None:
        return self.sharding.inner.byte_order if self.sharding else self.big_endian


_NUMBER = re.compile(r"[<>|=]?(?:[iuf][1248]|u?int(?:8|16|32|64)|float(?:16|32|64))")
# Codecs that make other numbers of numbers, and the members that say of which and what.
NUMBERS = {
    "delta": ("dtype", "astype"),
    "fixedscaleoffset": ("dtype", "astype"),
    "quantize": ("dtype", "astype"),
    "astype": ("decode_dtype", "encode_dtype"),
    "packbits": ("", ""),
}
_PACKERS = {
    "gzip",
    "zlib",
    "zstd",
    "blosc",
    "lz4",
    "bz2",
    "lzma",
    "shuffle",
    "crc32c",
    "crc32",
    "adler32",
    "fletcher32",
}
ROUNDED = "bitround"  # numbers that lost bits: there is nothing to undo
_SUMS_AT_START = {"crc32", "adler32"}  # as numcodecs puts them
OBJECTS = {"vlen-utf8": "utf8", "vlen-bytes": "bytes"}  # serializers of text and bytes of any length


def parse_pipeline(value: Any, shape: tuple[int, ...], depth: int = 0) -> Pipeline:
    """From `codecs`, for chunks of that shape. Raises ValueError and Unsupported."""
    if not isinstance(value, list) or not 0 < len(value) <= 32 or depth > 4:
        raise ValueError(f"codecs is {short(value)}; a short list is expected")
    orders: list[tuple[int, ...]] = []
    packers: list[Packer] = []
    numbers: list[tuple[str, dict[str, Any]]] = []
    serializer: bool | Sharding | str | None = None
    seen = False
    for one in value:
        name, configuration = named(one, "a codec")
        if name == "transpose":
            if seen:
                raise ValueError("codec 'transpose' comes behind the one that makes bytes")
            orders.append(_order(configuration.get("order"), len(shape)))
            shape = tuple(shape[axis] for axis in orders[-1])
        elif name.removeprefix("numcodecs.") in (*NUMBERS, ROUNDED) and not seen and not orders:
            numbers.append((name.removeprefix("numcodecs."), configuration))
        elif name in ("bytes", "sharding_indexed", *OBJECTS):
            if seen:
                raise ValueError(f"codec {name!r} is the second one that makes bytes")
            seen = True
            serializer = _serializer(name, configuration, shape, depth)
        elif name.removeprefix("numcodecs.") in (*NUMBERS, ROUNDED):
            raise Unsupported(f"codec {name!r} is behind 'transpose' or what makes bytes, and is read before them")
        else:
            packers.append(parse_packer(name.removeprefix("numcodecs."), configuration, name))
            if not seen:
                raise ValueError(f"codec {name!r} comes before the one that makes bytes")
    if not seen:
        raise ValueError("no codec makes bytes of the array")
    sharding = serializer if isinstance(serializer, Sharding) else None
    big_endian = serializer if isinstance(serializer, bool) else None
    if numbers and (sharding is not None or isinstance(serializer, str)):
        raise Unsupported(f"codec 'numcodecs.{numbers[0][0]}' stands before a codec that makes no plain bytes")
    packers[:0] = [parse_numbers(name, one, ">" if big_endian else "<") for name, one in numbers]
    return Pipeline(
        tuple(orders), big_endian, sharding, tuple(packers), serializer if isinstance(serializer, str) else ""
    )


def _serializer(
    name: str, configuration: dict[str, Any], shape: tuple[int, ...], depth: int
) -> bool | Sharding | str | None:
    if name in OBJECTS:
        return OBJECTS[name]
    return _endian(configuration) if name == "bytes" else _sharding(configuration, shape, depth)


def _order(value: Any, rank: int) -> tuple[int, ...]:
    if value in ("C", "F"):  # of drafts of the specification; zarr-python wrote them
        return tuple(range(rank)) if value == "C" else tuple(range(rank))[::-1]
    order = integers(value, "the order of codec 'transpose'", 0)
    if sorted(order) != list(range(rank)):
        raise ValueError(f"the order {short(value)} of codec 'transpose' is not an order of {rank} dimensions")
    return order


def _endian(configuration: dict[str, Any]) -> bool | None:
    endian = configuration.get("endian")
    if endian not in ("little", "big", None):
        raise ValueError(f"endian is {short(endian)}")
    return None if endian is None else endian == "big"


def parse_packer(plain: str, configuration: dict[str, Any], name: str) -> Packer:
    """From the configuration of version 3, or of version 2, which numcodecs wrote. `name`: for messages."""
    if plain not in _PACKERS:
        known = ("bytes", "transpose", "sharding_indexed", *NUMBERS, ROUNDED, *OBJECTS, *sorted(_PACKERS))
        raise Unsupported(f"codec {name!r} is not one of {', '.join(known)}")
    if plain == "lzma" and configuration.get("format", 1) != 1:
        raise Unsupported(f"codec {name!r} has format {short(configuration['format'])}, which is not that of XZ files")
    location = configuration.get("location")
    if location not in (None, "start", "end"):
        raise ValueError(f"the location of checksum {name!r} is {short(location)}")
    size = configuration.get("elementsize", 4)
    if plain == "shuffle" and (type(size) is not int or not 0 < size < 256):
        raise ValueError(f"the elementsize of codec {name!r} is {short(size)}")
    at_start = location == "start" or (location is None and plain in _SUMS_AT_START)
    return Packer(plain, (size,) if plain == "shuffle" else (), at_start)


def parse_numbers(name: str, configuration: dict[str, Any], order: str = "") -> Packer:
    """One of NUMBERS, or ROUNDED. `order`: of the bytes, where the chain says it elsewhere."""
    if name == ROUNDED:
        return Packer(ROUNDED)
    if name == "packbits":
        return Packer(name, stored="|u1", made="|b1")
    first, second = NUMBERS[name]
    made = configuration.get(first)
    stored = made if configuration.get(second) is None else configuration[second]
    for one in (made, stored):
        if not isinstance(one, str) or not _NUMBER.fullmatch(one):
            raise Unsupported(f"codec {name!r} is of numbers of type {short(one)}")
    made, stored = (np.dtype(one).newbyteorder(order).str if order else one for one in (made, stored))
    return Packer(name, stored=stored, made=made, scale=_scale(configuration) if name == "fixedscaleoffset" else (1, 0))


def _scale(configuration: dict[str, Any]) -> tuple[float, float]:
    scale, offset = configuration.get("scale"), configuration.get("offset")
    for one in (scale, offset):
        if type(one) not in (int, float) or abs(one) >= 1 << 63 or one != one:
            raise Unsupported(f"codec 'fixedscaleoffset' has the scale {short(scale)} and the offset {short(offset)}")
    return scale, offset


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
