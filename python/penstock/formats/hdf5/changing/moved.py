"""Chunks that readers see, written anew: each goes to new space, and its entry in the chunk index leads there.

Entries are changed in the image that HDF5 leaves when it lets go, so they reach the file as its own changes do: in
order, noted where that is asked for, and taken back after an error. An entry is one place in one node, so a reader
finds a chunk as it was or as it is. The index must be a B-tree of version 1, which all writers make but those that ask
for `libver="latest"` or "v110". What must stay true: the old chunk stays as it was; its space is not used again.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from h5py import h5o

from penstock.formats.faults import damaged
from penstock.formats.hdf5.changing.headers import blocks_of, message_of
from penstock.formats.hdf5.changing.overlay import Overlay
from penstock.formats.hdf5.changing.place import grid_of
from penstock.formats.hdf5.changing.session import Session
from penstock.formats.hdf5.index import ChunkIndex, number_of
from penstock.formats.hdf5.library import can_claim
from penstock.formats.hdf5.stored import Stored
from penstock.formats.model import Shape

_LAYOUT = 8  # message type
_LAYOUT_VERSION, _CHUNKED = 3, 2
_HEAD = struct.Struct("<4sBBH16x")  # of a node: mark, type, level, entries, and siblings
_OF_CHUNKS = 1  # type of a node
_SIZE_AND_MASK = struct.Struct("<II")
_ADDRESS = struct.Struct("<Q")
_MOST_LEVELS = 64


class _Tree(NamedTuple):
    """The index of a dataset. Addresses count from the begin of the HDF5 part, `base`, of the file, but that of the
    dataset's `header`, which tells the root: there is none before the first chunk has its place."""

    header: int
    rank: int
    base: int


@dataclass
class MovedChunks:
    """Of all datasets of a file, until it is published."""

    _chunks: dict[str, dict[Shape, tuple[int, int]]] = field(default_factory=dict)  # offset and bytes, by first element
    _trees: dict[str, _Tree | None] = field(default_factory=dict)  # None: an index that cannot be changed here

    def can(self, session: Session, stored: Stored) -> bool:
        """Whether the index of the dataset can be changed."""
        name = stored.info.name
        if name not in self._trees:
            self._trees[name] = _tree_of(session, stored) if can_claim() else None
        return self._trees[name] is not None

    def place(
        self, session: Session, stored: Stored, index: ChunkIndex, origin: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, ChunkIndex]:
        """Gives new space to chunks that are there; where it is, and the index with them. Requires: can()."""
        offsets = session.claim(sizes)
        chunks = self._chunks.setdefault(stored.info.name, {})
        for row, offset, size in zip(origin.tolist(), offsets.tolist(), sizes.tolist(), strict=True):
            chunks[tuple(row)] = (offset, size)
        chunk = stored.info.chunk_shape[: stored.rank]
        cell = number_of(origin, grid_of(stored.info.shape[: stored.rank], chunk), chunk)
        return offsets, index.with_new(cell, origin, offsets, sizes)

    def apply(self, session: Session) -> None:
        """Changes the entries in the image that HDF5 has left. Raises Error of an index that is damaged."""
        for name, chunks in self._chunks.items():
            tree = self._trees[name]
            assert tree is not None
            _lead(session, tree, chunks)

    def clear(self) -> None:
        self._chunks.clear()
        self._trees.clear()


def _tree_of(session: Session, stored: Stored) -> _Tree | None:
    """None: an index of another kind."""
    assert session.old is not None
    tree = _Tree(h5o.get_info(stored.dataset).addr + session.old.offset, stored.rank, session.old.offset)
    return None if _root_of(session, tree) is None else tree


def _root_of(session: Session, tree: _Tree) -> int | None:
    """As the overlay has it. None: the dataset has another index."""
    layout = message_of(blocks_of(session.overlay, tree.header, tree.base), _LAYOUT)
    if layout is None or tuple(layout[:2]) != (_LAYOUT_VERSION, _CHUNKED) or layout[2] != tree.rank + 1:
        return None
    return int.from_bytes(layout[3:11], "little")


def _lead(session: Session, tree: _Tree, chunks: dict[Shape, tuple[int, int]]) -> None:
    """Each leaf is written once."""
    overlay = session.overlay
    left = dict(chunks)
    for address, image, keys in _leaves(session, tree, sorted(chunks)):
        key_bytes = 8 * (tree.rank + 2)
        for number, key in enumerate(keys):
            found = left.pop(key, None)
            if found is not None:
                at = _HEAD.size + number * (key_bytes + _ADDRESS.size)
                _SIZE_AND_MASK.pack_into(image, at, found[1], 0)
                _ADDRESS.pack_into(image, at + key_bytes, found[0] - tree.base)
        overlay.seek(address)
        overlay.write(memoryview(image))
    if left:
        raise damaged(session.name, f"its index of chunks has no entry for the one at {next(iter(left))}")


def _leaves(session: Session, tree: _Tree, wanted: list[Shape]) -> Iterator[tuple[int, bytearray, list[Shape]]]:
    """Leaves that lead to chunks with these first elements: place in the file, image, and first elements of theirs."""
    root = _root_of(session, tree)
    assert root is not None
    nodes = [(root, wanted, _MOST_LEVELS)]
    while nodes:
        address, inside, above = nodes.pop()
        image, level, keys = _node(session, tree, address + tree.base)
        if level >= above:
            raise damaged(session.name, f"its index of chunks at {address} has a level {level} below a level {above}")
        if level == 0:
            yield address + tree.base, image, keys
            continue
        below: dict[int, list[Shape]] = {}
        for one in inside:
            below.setdefault(max(0, bisect_right(keys, one) - 1), []).append(one)
        pitch = 8 * (tree.rank + 2) + _ADDRESS.size
        for number, part in below.items():
            at = _HEAD.size + number * pitch + pitch - _ADDRESS.size
            nodes.append((_ADDRESS.unpack_from(image, at)[0], part, level))


def _node(session: Session, tree: _Tree, at: int) -> tuple[bytearray, int, list[Shape]]:
    """As HDF5 left it: its image as far as it is used, its level, and the first element that each entry begins with."""
    overlay: Overlay = session.overlay
    mark, kind, level, count = _HEAD.unpack(overlay.bytes_at(at, _HEAD.size))
    if mark != b"TREE" or kind != _OF_CHUNKS or not count:
        raise damaged(session.name, f"its index of chunks has no node at {at}")
    words = tree.rank + 3  # of an entry: size and mask, first element and a zero, address of what it leads to
    image = bytearray(overlay.bytes_at(at, _HEAD.size + 8 * count * words))
    table = np.frombuffer(image, "<u8", offset=_HEAD.size).reshape(count, words)
    keys = [tuple(row) for row in table[:, 1 : 1 + tree.rank].tolist()]
    return image, level, keys
