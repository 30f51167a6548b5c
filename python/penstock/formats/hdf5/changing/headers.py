"""Object headers, taken apart as far as it needs to change one in a single step.

A header begins at a fixed address, to which links and references lead, and continues in blocks that only it leads to.
HDF5 changes several of them in place, one after the other. Here those that changed are moved to new space instead, so
that the first block, which leads to them, is the one thing that changes in place. What must stay true: only addresses
of continuations and checksums are altered; where anything is not as expected, nothing is moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.formats.hdf5.changing.overlay import Overlay

_CONTINUATION = 16  # message type
_MASK = 0xFFFFFFFF


_Layout = tuple[int, int, int]  # bytes before a message's content, offset of the first message, bytes after the last


class Pointer(NamedTuple):
    """Where a continuation message notes the address of a block."""

    block: int  # number of the block that holds the message
    inside: int  # byte offset in it


@dataclass
class HeaderBlock:
    """A part of an object header. `address` counts from the begin of the file."""

    address: int
    image: bytearray
    pointer: Pointer | None  # None: the first
    moves: bool = field(default=False)


def move_continuations(overlay: Overlay, address: int, base: int, old_end: int, free: int) -> int:
    """Moves changed continuation blocks of one header to `free` and beyond; what is free then. `base`: bytes of the
    user block. What the file holds from `old_end` on is new already."""
    blocks = blocks_of(overlay, address, base)
    if not blocks:
        return free
    if address < old_end:
        _leave_abandoned(overlay, blocks, blocks_of(overlay, address, base, old=True))
    for block in blocks[1:]:
        old = overlay.original(block.address, len(block.image))
        block.moves = block.address < old_end and old != bytes(block.image)
    for block in reversed(blocks):  # what leads to a moved block changes, so it moves too
        above = blocks[block.pointer.block] if block.moves and block.pointer else None
        if above is not None and above.pointer is not None and above.address < old_end:
            above.moves = True
    is_new = blocks[0].image[:4] == b"OHDR"
    touched = set()
    for block in blocks:
        if block.moves and block.pointer is not None:
            free = -(-free // 8) * 8
            overlay.structures.pop(block.address, None)
            block.address, free = free, free + len(block.image)
            holder = blocks[block.pointer.block]
            at = block.pointer.inside
            holder.image[at : at + 8] = (block.address - base).to_bytes(8, "little")
            touched |= {block.pointer.block, blocks.index(block)}
    for number in touched:
        block = blocks[number]
        if is_new:
            block.image[-4:] = checksum(block.image[:-4]).to_bytes(4, "little")
        overlay.seek(block.address)
        overlay.write(memoryview(block.image))
    return free


def _leave_abandoned(overlay: Overlay, blocks: list[HeaderBlock], before: list[HeaderBlock]) -> None:
    """A block that the header no longer leads to stays as it was: until the header changes, it is still read."""
    for block in before[1:]:
        if block.address not in [one.address for one in blocks]:
            overlay.structures.pop(block.address, None)


def blocks_of(overlay: Overlay, address: int, base: int, old: bool = False) -> list[HeaderBlock]:
    """All blocks of the header, as HDF5 left them (`old`: as they were before); empty where it is of no known form."""
    read = overlay.original if old else overlay.bytes_at
    head = read(address, 64)
    if head[:4] == b"OHDR" and head[4] == 2:
        start, size, _ = _start_of_new(head)
        first = HeaderBlock(address, bytearray(read(address, start + size + 4)), None)
    elif head[0] == 1 and head[1] == 0:
        size = int.from_bytes(head[8:12], "little")
        first = HeaderBlock(address, bytearray(read(address, 16 + size)), None)
    else:
        return []
    blocks, number, layout = [first], 0, _layout_of(head)
    while number < len(blocks):
        for inside in _continuations(blocks[number], number, layout):
            image = blocks[number].image
            where, length = (int.from_bytes(image[at : at + 8], "little") for at in (inside, inside + 8))
            blocks.append(HeaderBlock(where + base, bytearray(read(where + base, length)), Pointer(number, inside)))
        number += 1
    return blocks


def _layout_of(head: bytes | bytearray) -> _Layout:
    """How a header that begins so is laid out."""
    if head[:4] != b"OHDR":
        return 8, 16, 0
    start, _, extra = _start_of_new(head)
    return 4 + extra, start, 4


def _start_of_new(head: bytes | bytearray) -> tuple[int, int, int]:
    """(offset of the first message, bytes of messages, bytes that each message has beyond four)."""
    flags = head[5]
    at = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    return at + width, int.from_bytes(head[at : at + width], "little"), 2 if flags & 4 else 0


def message_of(blocks: list[HeaderBlock], kind: int) -> bytes | None:
    """The first message of that type in the blocks of a header."""
    layout = _layout_of(blocks[0].image) if blocks else (0, 0, 0)
    for number, block in enumerate(blocks):
        for found, at, size in _messages(block, number, layout):
            if found == kind:
                return bytes(block.image[at : at + size])
    return None


def _continuations(block: HeaderBlock, number: int, layout: _Layout) -> list[int]:
    """Offsets of the addresses in continuation messages."""
    return [at for kind, at, size in _messages(block, number, layout) if kind == _CONTINUATION and size >= 16]


def _messages(block: HeaderBlock, number: int, layout: _Layout) -> Iterator[tuple[int, int, int]]:
    """Type of each message, and offset and bytes of its content."""
    before, start, after = layout
    at = start if number == 0 else after  # later blocks begin with a mark where they end with a checksum
    end = len(block.image) - after
    while at + before <= end:
        if after:
            kind, size = block.image[at], int.from_bytes(block.image[at + 1 : at + 3], "little")
        else:
            kind, size = (int.from_bytes(block.image[at + part : at + part + 2], "little") for part in (0, 2))
        yield kind, at + before, size
        at += before + size


def checksum(data: bytes | bytearray) -> int:
    """Bob Jenkins' lookup3 (hashlittle, begun with 0), as HDF5 uses it."""
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    whole = max(0, (len(data) - 1) // 12)
    words = memoryview(bytes(data[: 12 * whole])).cast("I") if whole else ()
    for at in range(0, 3 * whole, 3):
        a, b, c = _mix((a + words[at]) & _MASK, (b + words[at + 1]) & _MASK, (c + words[at + 2]) & _MASK)
    rest = bytes(data[12 * whole :]).ljust(12, b"\0")
    if not data:
        return c
    one, two, three = (int.from_bytes(rest[at : at + 4], "little") for at in (0, 4, 8))
    return _final((a + one) & _MASK, (b + two) & _MASK, (c + three) & _MASK)


def _turn(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    a, c = ((a - c) & _MASK) ^ _turn(c, 4), (c + b) & _MASK
    b, a = ((b - a) & _MASK) ^ _turn(a, 6), (a + c) & _MASK
    c, b = ((c - b) & _MASK) ^ _turn(b, 8), (b + a) & _MASK
    a, c = ((a - c) & _MASK) ^ _turn(c, 16), (c + b) & _MASK
    b, a = ((b - a) & _MASK) ^ _turn(a, 19), (a + c) & _MASK
    c, b = ((c - b) & _MASK) ^ _turn(b, 4), (b + a) & _MASK
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    for one, two, bits in ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)):
        words = [a, b, c]
        words[one] = ((words[one] ^ words[two]) - _turn(words[two], bits)) & _MASK
        a, b, c = words
    return c
