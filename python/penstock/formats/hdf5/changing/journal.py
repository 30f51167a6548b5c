"""A note behind the end of an HDF5 file of the durable changes that a writer makes to it, while it makes them.

A writer that dies, or cannot go on, leaves some changes made and others not; after a power failure that may be any
sector of any of them. The next writer finds the note as the last bytes of the file, and either finishes the changes or
takes them back. The note is bytes of the file itself: it goes where the file goes, cannot be put there by others than
those who may change the file, and is cut off with the space that the changes needed, in one step.

What must stay true:
  the note is whole and on stable storage before the first change;
  it lies behind the end that the superblock tells, where no dataset has its elements, and gives the file a size that
    no writer of Penstock reserves: elements that a dead writer left there are never taken for a note;
  changes are finished only where the new structures are there, whole; settling twice does no harm;
  where a sector is none of what the changes make of it, others have written since, and nothing is touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from penstock._files.descriptor import read_at, write_at
from penstock.formats.hdf5.changing.apply import apply, undo
from penstock.formats.hdf5.changing.order import Change, Fresh
from penstock.formats.hdf5.changing.overlay import PAGE_BYTES

_MAGIC = b"penstock note 1\n"
_TRAILER = struct.Struct("<16sQQ32s")  # magic, where the note begins, its bytes, digest of all of that and the note
_REST_BYTES = PAGE_BYTES - 1  # of the last page of a file with a note
_SECTOR_BYTES = 512  # storage keeps or loses these whole
_MOST_BYTES = 1 << 30  # of a note; more is none of ours


class Note(NamedTuple):
    """`size`: of the file with the new structures. `durable`: it is written, and elements and structures are on stable
    storage before the first change."""

    size: int
    durable: bool
    fresh: list[tuple[int, int]]  # offsets and bytes of new structures
    fresh_digest: str
    changes: list[Change]


def note_of(size: int, durable: bool, fresh: Sequence[Fresh], changes: Sequence[Change]) -> Note:
    digest = hashlib.sha256(b"".join(one.content for one in fresh)).hexdigest()
    return Note(size, durable, [(one.offset, len(one.content)) for one in fresh], digest, list(changes))


def without_note(size: int) -> int:
    """The least size from there on that says that the file has no note."""
    return size + (size % PAGE_BYTES == _REST_BYTES)


def write_note(descriptor: int, end: int, note: Note) -> None:
    """Behind `end`, in pages of its own, which writing whole pages of changes does not touch. Raises OSError of the
    system."""
    at = -(-end // PAGE_BYTES) * PAGE_BYTES
    body = json.dumps(
        {
            "size": note.size,
            "fresh": note.fresh,
            "fresh_digest": note.fresh_digest,
            "changes": [[one.offset, one.old.hex(), one.new.hex()] for one in note.changes],
        }
    ).encode()
    whole = -(-(len(body) + _TRAILER.size + PAGE_BYTES - _REST_BYTES) // PAGE_BYTES) * PAGE_BYTES
    body = body.ljust(whole - PAGE_BYTES + _REST_BYTES - _TRAILER.size)
    write_at(descriptor, body + _TRAILER.pack(_MAGIC, at, len(body), _digest(at, body)), at)


def has_note(descriptor: int) -> bool:
    """Whether the file ends as one with a note does."""
    size = os.fstat(descriptor).st_size
    ends_so = size % PAGE_BYTES == _REST_BYTES
    return ends_so and read_at(descriptor, len(_MAGIC), size - _TRAILER.size) == _MAGIC


def read_note(descriptor: int, end: int) -> Note | None:
    """None where there is none, or one that is not whole: its changes had not begun. `end`: as the superblock says."""
    at_trailer = os.fstat(descriptor).st_size - _TRAILER.size
    if not has_note(descriptor):
        return None
    _, at, length, digest = _TRAILER.unpack(read_at(descriptor, _TRAILER.size, at_trailer))
    if at < end or length > _MOST_BYTES or at + length != at_trailer:
        return None
    body = read_at(descriptor, length, at)
    return _parsed(body) if _digest(at, body) == digest else None


def _digest(at: int, body: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<QQ", at, len(body)) + body).digest()


def _parsed(body: bytes) -> Note | None:
    try:
        found = json.loads(body)
        changes = [Change((0, 0), "", int(at), bytes.fromhex(a), bytes.fromhex(b)) for at, a, b in found["changes"]]
        fresh = [(int(at), int(count)) for at, count in found["fresh"]]
        note = Note(int(found["size"]), True, fresh, str(found["fresh_digest"]), changes)
    except (ValueError, KeyError, TypeError):
        return None
    fits = all(len(one.old) == len(one.new) > 0 and one.offset >= 0 for one in changes)
    inside = all(at >= 0 and count >= 0 and at + count <= note.size for at, count in fresh)
    return note if changes and fits and inside else None


def settle(name: str, descriptor: int, note: Note) -> bool:
    """Brings all changes of a note to one end, on stable storage: made where that is known to be right, else taken
    back. False, and nothing is touched, where others have written since. Raises OSError of the system."""
    state = _state(descriptor, note.changes)
    if state == _CONTRADICTED:
        return False
    if state != _NONE and _has_fresh(descriptor, note):
        apply(name, descriptor, note.changes)  # once more: what a failed fsync has forgotten is written again
    else:
        undo(name, descriptor, note.changes)
    os.fsync(descriptor)
    return True


_NONE, _PARTLY, _MADE, _CONTRADICTED = "none is made", "some are made", "all are made", "others have written since"


def _state(descriptor: int, changes: Sequence[Change]) -> str:
    """Of what the file holds. In each sector, what a change concerns is as it was before all of them, or after any."""
    is_before = is_after = True
    for number, pieces in _by_sector(changes).items():
        held = read_at(descriptor, _SECTOR_BYTES, number * _SECTOR_BYTES).ljust(_SECTOR_BYTES, b"\0")
        states = _states(held, pieces)
        for inside, old, _ in pieces:
            concerned = slice(inside, inside + len(old))
            if not any(held[concerned] == one[concerned] for one in states):
                return _CONTRADICTED
        is_before &= held == states[0]
        is_after &= held == states[-1]
    return _NONE if is_before else _MADE if is_after else _PARTLY


def _by_sector(changes: Sequence[Change]) -> dict[int, list[tuple[int, bytes, bytes]]]:
    """Numbers of sectors, and of each what is changed in it, in order: (place inside, old, new)."""
    found: dict[int, list[tuple[int, bytes, bytes]]] = {}
    for one in changes:
        begin = 0
        while begin < len(one.new):
            number, inside = divmod(one.offset + begin, _SECTOR_BYTES)
            end = min(len(one.new), begin + _SECTOR_BYTES - inside)
            found.setdefault(number, []).append((inside, one.old[begin:end], one.new[begin:end]))
            begin = end
    return found


def _states(held: bytes, pieces: Sequence[tuple[int, bytes, bytes]]) -> list[bytes]:
    """The sector before the pieces and after each; where none concerns it, as it is held."""
    sector = bytearray(held)
    for inside, old, _ in reversed(pieces):  # of bytes that change several times the first old value
        sector[inside : inside + len(old)] = old
    states = [bytes(sector)]
    for inside, _, new in pieces:
        sector[inside : inside + len(new)] = new
        states.append(bytes(sector))
    return states


def _has_fresh(descriptor: int, note: Note) -> bool:
    """Whether the new structures are there, as they were written."""
    if os.fstat(descriptor).st_size < note.size:
        return False
    found = hashlib.sha256()
    for offset, count in note.fresh:
        found.update(read_at(descriptor, count, offset))
    return found.hexdigest() == note.fresh_digest
