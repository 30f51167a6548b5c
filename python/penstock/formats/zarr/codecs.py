"""Zarr's codecs as data: the chain that made the bytes of a chunk, parsed from its metadata.

A chain is: transposes (array to array), one serializer (`bytes` or `sharding_indexed`), packers (bytes to bytes).
`zarr/decode` goes the way back. What must stay true: a chain that is not understood to the end is refused by the name
of its codec, or is a ValueError; inner chunks divide their shard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from penstock.formats.zarr.json import Unsupported, integers, named, short


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
        """Names of the codecs that change bytes."""
        inner = ("sharding_indexed", *self.sharding.inner.names) if self.sharding else ()
        return (*(("transpose",) if self.orders else ()), *inner, *(packer.name for packer in self.packers))

    @property
    def byte_order(self) -> bool | None:
        return self.sharding.inner.byte_order if self.sharding else self.big_endian


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
        raise ValueError(f"the order {short(value)} of codec 'transpose' is not an order of {rank} dimensions")
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
            f"codec {name!r} is not one of bytes, transpose, sharding_indexed, {', '.join(sorted(_PACKERS))}"
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
