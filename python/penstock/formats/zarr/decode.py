"""Zarr's chunks decoded on the host: from stored bytes, back through the chain of codecs, to an array.

gzip, zlib, bz2, lzma, shuffle, checksums, and codecs that make numbers of numbers need nothing but Python and NumPy;
zstd, blosc and lz4 come from numcodecs. What must stay true: no decoder makes more bytes than the chunk's shape says
(of text and bytes of any length, than a limit), whatever its input; a checksum that is there is verified.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import math
import zlib
from collections.abc import Callable

import numpy as np

from penstock.formats.crc32c import crc32c
from penstock.formats.zarr.codecs import ROUNDED, Packer, Pipeline, Sharding

NOT_STORED = (1 << 64) - 1  # in the index of a shard: there is no such inner chunk
_SLACK = 1 << 16  # a packer makes what it cannot shorten a little longer
_LARGEST_RATIO = 50_000  # zstd repeats 128 KiB with 3 bytes
_MOST_OBJECT_BYTES = 1 << 30  # of the text of one chunk
_MOST_LZMA = 1 << 30  # bytes of memory that a stream may ask for
_WIDEST = 8  # of numbers that others are stored as
_MEMBERS = 64  # gzip streams in a row that are one chunk
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Missing(Exception):
    """A package that decodes a codec is not installed."""


def decode_chunk(pipeline: Pipeline, raw: memoryview, shape: tuple[int, ...], fill: np.ndarray) -> np.ndarray:
    """The chunk as an array of that shape. `fill`: an array of one element, whose type is that of the result: Python's
    objects where the pipeline makes such. Raises ValueError where the bytes are damaged."""
    stored = pipeline.stored_shape(shape)
    is_plain = pipeline.sharding is None and not pipeline.objects
    wanted = math.prod(stored) * fill.dtype.itemsize if not fill.dtype.hasobject else _MOST_OBJECT_BYTES
    data = raw
    for number in range(len(pipeline.packers) - 1, -1, -1):
        wider = _WIDEST if any(one.made for one in pipeline.packers[:number]) else 1
        data = _unpack(pipeline.packers[number], data, wanted * wider, number == 0 and is_plain)
    if pipeline.sharding is not None:
        array = decode_shard(pipeline.sharding, data, stored, fill)
    elif pipeline.objects:
        array = decode_objects(data, math.prod(stored), pipeline.objects == "utf8").reshape(stored)
    elif len(data) != wanted:
        raise ValueError(f"it has {len(data)} bytes, its shape says {wanted}")
    else:
        array = np.frombuffer(data, fill.dtype).reshape(stored)
    for order in pipeline.orders[::-1]:
        array = array.transpose(np.argsort(order))
    return array


def decode_objects(raw: memoryview, count: int, is_text: bool) -> np.ndarray:
    """Text or bytes, each behind its length, and all behind their number. What is no UTF-8 becomes half characters."""
    if len(raw) < 4 + 4 * count or int.from_bytes(raw[:4], "little") != count:
        raise ValueError(f"its {len(raw)} bytes do not hold the {count} elements of its shape")
    made, at, end = np.empty(count, object), 4, len(raw)
    for number in range(count):
        length = int.from_bytes(raw[at : at + 4], "little")
        at += 4
        if at > end or length > end - at:
            raise ValueError(f"element {number} of {length} bytes ends behind the chunk")
        one = raw[at : at + length].tobytes()
        made[number] = one.decode("utf-8", "surrogateescape") if is_text else one
        at += length
    return made


def decode_shard(sharding: Sharding, raw: memoryview, shape: tuple[int, ...], fill: np.ndarray) -> np.ndarray:
    """A shard that is itself encoded, or lies in another one: all of it."""
    size = sharding.index_bytes(shape)
    if size > len(raw):
        raise ValueError(f"the shard has {len(raw)} bytes, its index alone {size}")
    grid = sharding.grid(shape)
    entries = parse_index(sharding, raw[:size] if sharding.index_at_start else raw[len(raw) - size :])
    need_places(entries)
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
    return np.frombuffer(body, ">u8" if sharding.index_big_endian else "<u8").astype(np.uint64).reshape(-1, 2)


def need_places(entries: np.ndarray) -> None:
    """Raises ValueError of an entry that is neither a place nor empty: uint64 [n, 2]."""
    half = (entries == NOT_STORED).sum(axis=1) == 1
    if half.any():
        first, length = entries[int(np.argmax(half))].tolist()
        raise ValueError(f"the index of an inner chunk has {first} and {length}, which is neither a place nor empty")


def _unpack(packer: Packer, raw: memoryview, wanted: int, exact: bool) -> memoryview:
    """One packer back. `exact`: the result must have `wanted` bytes, else at most a little more."""
    name = packer.name
    if name in _SUMS:
        return _summed(packer, raw)
    if packer.made:
        return _numbers(packer, raw, wanted)
    if name == ROUNDED:
        return raw
    if name == "shuffle":
        return _unshuffled(raw, *packer.values)
    limit = wanted if exact else wanted + wanted // 16 + _SLACK
    _bounded(wanted if exact else 0, len(raw), "chunk")
    data = _UNPACK[name](raw, limit)
    if exact and len(data) != wanted:
        raise ValueError(f"codec {name} gave {len(data)} bytes, its shape says {wanted}")
    return memoryview(data)


def _summed(packer: Packer, raw: memoryview) -> memoryview:
    """What a checksum is of."""
    if len(raw) < 4:
        raise ValueError(f"{len(raw)} bytes are too few for a checksum")
    body, sum = (raw[4:], raw[:4]) if packer.at_start else (raw[:-4], raw[-4:])
    stored, found = int.from_bytes(sum, "little"), _SUMS[packer.name](body)
    if stored != found:
        raise ValueError(f"its checksum {packer.name} is {found:#010x}, it says {stored:#010x}")
    return body


def _fletcher32(raw: memoryview) -> int:
    """As HDF5 has it: of big-endian words of 16 bits, an odd last byte as the upper half of one."""
    words = np.frombuffer(bytes(raw) + b"\0" * (len(raw) % 2), ">u2").astype(np.uint64)
    weights = np.arange(len(words), 0, -1, dtype=np.uint64) % 65535
    sums = (int(words.sum()), int((words * weights).sum()))
    first, second = ((one % 65535) or (65535 if words.any() else 0) for one in sums)
    return second << 16 | first


def _numbers(packer: Packer, raw: memoryview, wanted: int) -> memoryview:
    """Numbers of which others are stored, by the arithmetic of numcodecs."""
    stored, made = np.dtype(packer.stored), np.dtype(packer.made)
    if packer.name == "packbits":
        return _unpacked_bits(raw, wanted)
    if len(raw) % stored.itemsize or len(raw) // stored.itemsize * made.itemsize > wanted:
        raise ValueError(f"codec {packer.name} has {len(raw)} bytes, which are not the numbers of its shape")
    there = np.frombuffer(raw, stored)
    if packer.name == "delta":
        out = np.empty(len(there), made)
        np.cumsum(there, out=out)
        return memoryview(out.view(np.uint8))
    scale, offset = packer.scale
    with np.errstate(all="ignore"):  # what a scale of 0 makes is what it makes elsewhere
        numbers = there / scale + offset if packer.name == "fixedscaleoffset" else there
        return memoryview(np.ascontiguousarray(numbers.astype(made)).view(np.uint8))


def _unpacked_bits(raw: memoryview, wanted: int) -> memoryview:
    """How many bits of the last byte are none, and then the bits."""
    if not len(raw) or raw[0] > 7 or raw[0] > 8 * (len(raw) - 1) or 8 * (len(raw) - 1) - raw[0] > wanted:
        raise ValueError(f"codec packbits has {len(raw)} bytes, which are not the bits of its shape")
    bits = np.unpackbits(np.frombuffer(raw, np.uint8)[1:])
    return memoryview(bits[: len(bits) - raw[0]])


def _unshuffled(raw: memoryview, size: int) -> memoryview:
    if len(raw) % size:
        raise ValueError(f"codec shuffle has {len(raw)} bytes, which are not whole elements of {size}")
    return memoryview(np.ascontiguousarray(np.frombuffer(raw, np.uint8).reshape(size, -1).T).reshape(-1))


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


def _bz2(raw: memoryview, limit: int) -> bytes:
    stream = bz2.BZ2Decompressor()
    try:
        made = stream.decompress(raw, limit + 1)
    except (OSError, ValueError) as error:
        raise ValueError(f"its bzip2 stream is damaged: {error}") from None
    if len(made) > limit:
        raise ValueError(f"it decodes to more than the {limit} bytes of its shape")
    if not stream.eof:
        raise ValueError("its bzip2 stream is cut short")
    return made


def _lzma(raw: memoryview, limit: int) -> bytes:
    """An XZ file, one of the forms that numcodecs writes."""
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_LZMA)
    try:
        made = stream.decompress(raw, limit + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"its XZ stream is damaged: {error}") from None
    if len(made) > limit:
        raise ValueError(f"it decodes to more than the {limit} bytes of its shape")
    if not stream.eof:
        raise ValueError("its XZ stream is cut short")
    return made


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
    "bz2": _bz2,
    "lzma": _lzma,
}
_SUMS: dict[str, Callable[[memoryview], int]] = {
    "crc32c": crc32c,
    "crc32": zlib.crc32,
    "adler32": zlib.adler32,
    "fletcher32": _fletcher32,
}
