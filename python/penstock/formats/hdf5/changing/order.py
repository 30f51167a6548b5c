"""In which order HDF5's changes to existing metadata reach a file, so that it is valid after each of them.

The rules, from what a reader follows (superblock -> object header -> chunk index -> chunk):
  new structures first: nothing leads to them yet;
  the superblock's end of file: it may only grow, and addresses beyond it are errors;
  of a B-tree the highest level first: a parent that already leads past an old node is right as long as the old node
    still holds all it held, and a node only loses entries to new nodes that its parent knows by then;
  object headers last: until a header says the new extent, what is beyond it is not looked at (headers sees to it
    that only the first block of a header changes in place).
Each step is one write of one structure. What must stay true: a change that is not known to be safe is refused before
the file is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from penstock.formats.faults import unsupported
from penstock.formats.hdf5.changing.headers import checksum
from penstock.formats.hdf5.changing.overlay import PAGE_BYTES, Overlay

SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEADER, MOVED = "object header", "part of an object header"
_SUPERBLOCK, _NAMES = "superblock", "names of links"
_SUPERBLOCK_BYTES = 128  # more than any version has
_HEAP_BYTES, _NO_FREE = 32, 1  # of a local heap: its head, and the address that ends the list of free space
# What may change in place, in the order of application. A B-tree's level refines its rank.
_RANKS = {
    _SUPERBLOCK: 0,
    "GCOL": 1,  # values of variable length: new ones go where nothing was
    _NAMES: 1,
    "EADB": 2,  # the extensible array: data blocks, then what leads to them
    "EASB": 3,
    "EAIB": 4,
    "EAHD": 5,
    "FADB": 2,  # the fixed array: its data block leads to chunks
    "TREE": 6,
    "SNOD": 7,
    HEADER: 8,
}
_ONLY_EXTENDING = (_SUPERBLOCK, "EADB", "EASB", "EAIB", "EAHD", "FADB", "TREE", HEADER)


class Superblock(NamedTuple):
    """Where the file begins to be HDF5, and where it ends."""

    offset: int
    version: int
    end: int  # of what belongs to the file
    extension: int | None  # address of its own object header


class Change(NamedTuple):
    """One structure's changed bytes: one write."""

    rank: tuple[int, int]
    kind: str
    offset: int
    old: bytes
    new: bytes

    @property
    def in_one_page(self) -> bool:
        return self.offset // PAGE_BYTES == (self.offset + len(self.new) - 1) // PAGE_BYTES


class Fresh(NamedTuple):
    """Bytes where nothing was."""

    offset: int
    content: bytes


def read_superblock(name: str, head: bytes) -> Superblock:
    """`head`: the first bytes of the file, user block included."""
    start = next((at for at in _starts(len(head)) if head[at : at + 8] == SIGNATURE), None)
    if start is None:
        raise unsupported(name, "it has no HDF5 superblock")
    head = head.ljust(start + _SUPERBLOCK_BYTES, b"\0")
    version = head[start + 8]
    sizes, end = (start + 13, start + 40) if version == 0 else (start + 13, start + 44)
    if version >= 2:
        sizes, end = start + 9, start + 28
    if version > 3 or head[sizes : sizes + 2] != b"\x08\x08":
        raise unsupported(name, f"superblock version {version} with addresses of {head[sizes]} bytes is not known here")
    extension = None
    if version >= 2 and head[start + 20 : start + 28] != b"\xff" * 8:
        extension = start + int.from_bytes(head[start + 20 : start + 28], "little")
    return Superblock(start, version, int.from_bytes(head[end : end + 8], "little"), extension)


def _starts(size: int) -> list[int]:
    starts, at = [0], 512
    while at + 8 <= size:
        starts.append(at)
        at *= 2
    return starts


def sort_changes(
    name: str, overlay: Overlay, old: Superblock, known: Mapping[int, str], extends_only: bool
) -> tuple[list[Fresh], list[Change]]:
    """What HDF5 wrote, as new bytes and ordered changes. `known`: what lies where, of headers of the objects
    concerned, and of structures that bear no mark; those that are MOVED are left out. Raises Error when a change is
    not known to be safe."""
    fresh, changes = [], []
    for offset, size in sorted(overlay.structures.items()):
        if offset >= old.end:
            fresh.append(Fresh(offset, overlay.bytes_at(offset, size)))
            continue
        before, after = overlay.original(offset, size), overlay.bytes_at(offset, size)
        if before == after:
            continue
        if offset + size > old.end:
            raise _refused(name, f"a structure at {offset} grows beyond the old end of the file")
        kind = _kind(offset, (before, after), old, known)
        if kind == MOVED:
            continue
        if kind not in (_ONLY_EXTENDING if extends_only else _RANKS):
            raise _refused(name, f"HDF5 would change {kind} at {offset} in place")
        if kind == _NAMES:
            changes += _steps_of_names(offset, before, after)
            continue
        changes.append(_change((_RANKS[kind], -after[5] if kind == "TREE" else 0), kind, offset, (before, after)))
    return fresh, sorted(changes, key=lambda one: (one.rank, one.offset))


def _change(rank: tuple[int, int], kind: str, offset: int, images: tuple[bytes, bytes]) -> Change:
    """Only what differs, as one write."""
    before, after = images
    differ = np.flatnonzero(np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8))
    first, last = int(differ[0]), int(differ[-1]) + 1
    return Change(rank, kind, offset + first, before[first:last], after[first:last])


def _steps_of_names(offset: int, before: bytes, after: bytes) -> list[Change]:
    """A local heap's list of free space runs through its data, so head and data must not disagree: first it has none,
    then the data change, then it has its new one."""
    if before[:4] != b"HEAP":  # the data, which lie apart
        return [_change((_RANKS[_NAMES], 1), _NAMES, offset, (before, after))]
    none = _NO_FREE.to_bytes(8, "little")
    head_before, head_after = before[:_HEAP_BYTES], after[:_HEAP_BYTES]
    closed = head_before[:16] + none + head_before[24:]
    steps = [((0, head_before, closed), 0), ((_HEAP_BYTES, before[_HEAP_BYTES:], after[_HEAP_BYTES:]), 1)]
    steps.append(((0, closed, head_after), 2))
    return [
        _change((_RANKS[_NAMES], turn), _NAMES, offset + inside, (one, other))
        for (inside, one, other), turn in steps
        if one != other
    ]


def _kind(offset: int, images: tuple[bytes, bytes], old: Superblock, known: Mapping[int, str]) -> str:
    """The kind of a structure that was there before. One that took the place of another has no kind that is allowed."""
    before, after = images
    if offset == old.offset:
        return _SUPERBLOCK
    if offset in known or offset == old.extension:
        return known.get(offset, HEADER)
    mark = after[:4]
    if before[:4] != mark:
        return f"{_text(before[:4])} to {_text(mark)}"
    if mark == b"HEAP":
        return _NAMES
    if mark == b"TREE" and before[4] != after[4]:
        return "one kind of B-tree to another"
    return _text(mark)


def _text(mark: bytes) -> str:
    return mark.decode("ascii") if mark.isalnum() else f"bytes {mark.hex()}"


def _refused(name: str, cause: str) -> Exception:
    advice = "this layout cannot be changed in steps that are each safe: append with h5py, or write a new file"
    return unsupported(name, cause, advice)


def names_apart(overlay: Overlay, base: int) -> dict[int, str]:
    """Addresses of the data of local heaps that changed, which bear no mark."""
    heads = [at for at in overlay.structures if overlay.original(at, 4) == b"HEAP"]
    return {int.from_bytes(overlay.original(at + 24, 8), "little") + base: _NAMES for at in heads}


def with_end(overlay: Overlay, old: Superblock, end: int) -> None:
    """Notes another end of the file in the superblock, as HDF5 left it."""
    size = {0: 96, 1: 100}.get(old.version, 48)
    block = bytearray(overlay.bytes_at(old.offset, size))
    at = {0: 40, 1: 44}.get(old.version, 28)
    block[at : at + 8] = end.to_bytes(8, "little")
    if old.version >= 2:
        block[44:48] = checksum(block[:44]).to_bytes(4, "little")
    overlay.seek(old.offset)
    overlay.write(memoryview(block))
