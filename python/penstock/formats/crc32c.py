"""CRC-32C, the checksum of Zarr's shard indices and of its codec crc32c.

google-crc32c (Zarr's own package needs it, so it is mostly there) uses the processor's instruction. Without it, NumPy
computes many lanes at a time: the checksum is linear, so the checksums of equal pieces are computed side by side and
joined afterwards. What must stay true: both give the same number.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed
_ONES = np.uint32(0xFFFFFFFF)
_LANES = 1024


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """The CRC-32C of the bytes."""
    fast = _library()
    return fast(bytes(data)) if fast is not None else crc32c_numpy(data)


@functools.cache
def _library() -> Callable[[bytes], int] | None:
    try:
        return importlib.import_module("google_crc32c").value
    except ImportError:
        return None


def crc32c_numpy(data: bytes | bytearray | memoryview) -> int:
    """The same without a library."""
    raw = np.frombuffer(data, np.uint8)
    lane_bytes = len(raw) // _LANES
    state = np.array([_ONES])
    if lane_bytes >= 8:
        head, raw = raw[: _LANES * lane_bytes], raw[_LANES * lane_bytes :]
        lanes = np.zeros(_LANES, np.uint32)
        lanes[0] = _ONES
        state = _join(_advance(lanes, head.reshape(_LANES, lane_bytes)), lane_bytes)
    return int((_advance(state, raw.reshape(1, -1)) ^ _ONES)[0])


def _advance(state: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Each row's bytes go into the checksum of its own."""
    table = _table()
    for column in np.ascontiguousarray(rows.T):
        state = table[(state ^ column) & 0xFF] ^ (state >> np.uint32(8))
    return state


def _join(state: np.ndarray, lane_bytes: int) -> np.ndarray:
    """Checksums of equal pieces in a row to that of the whole: neighbours first, then pairs, and so on."""
    operator = _zeros_operator(lane_bytes)
    while len(state) > 1:
        state = _apply(operator, state[0::2]) ^ state[1::2]
        operator = _apply(operator, operator)  # twice as far
    return state


def _zeros_operator(count: int) -> np.ndarray:
    """What `count` zero bytes do to a checksum, as the images of its 32 bits."""
    result, power = np.uint32(1) << np.arange(32, dtype=np.uint32), None
    one_byte = _advance(result.copy(), np.zeros((32, 1), np.uint8))
    while count:
        power = one_byte if power is None else _apply(power, power)
        if count & 1:
            result = _apply(power, result)
        count >>= 1
    return result


def _apply(operator: np.ndarray, values: np.ndarray) -> np.ndarray:
    bits = (values[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return np.bitwise_xor.reduce(bits * operator, axis=1).astype(np.uint32)


@functools.cache
def _table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    return table.astype(np.uint32)
