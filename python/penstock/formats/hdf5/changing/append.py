"""Changing an existing HDF5 file in place, so that it can be read after every single write.

New metadata go behind the old end of the file first; then the changes to existing structures, in the order of
order. What must stay true: when a change cannot be made in steps that are each safe, it is refused before the
first; the file is locked from the first change to the last.
"""

from __future__ import annotations

from contextlib import suppress

from h5py import h5o

from penstock.formats.hdf5.changing.apply import check_applicable
from penstock.formats.hdf5.changing.headers import blocks_of, move_continuations
from penstock.formats.hdf5.changing.journal import note_of
from penstock.formats.hdf5.changing.making import Making, settle_note
from penstock.formats.hdf5.changing.moved import MovedChunks
from penstock.formats.hdf5.changing.order import (
    HEADER,
    MOVED,
    Change,
    Fresh,
    names_apart,
    sort_changes,
    with_end,
)
from penstock.formats.hdf5.changing.proof import Image, check_steps
from penstock.formats.hdf5.changing.session import Session, open_locked
from penstock.formats.hdf5.open import Stamp, explained, name_bytes, stamp_of
from penstock.formats.hdf5.stored import Stored


class InPlace:
    """The changes of one file, from one publish to the next."""

    def __init__(self, name: str, moved: MovedChunks) -> None:
        self._name, self._moved = name, moved
        self._seen: Stamp | None = None  # the file as we left it
        self._last: Session | None = None
        self._headers: set[int] = set()  # addresses of the objects concerned, new ones too
        self._proven: set[str] = set()  # datasets whose extension was found to be safe
        self._added: set[str] = set()  # objects that were added or got attributes, and the groups they are in

    def begin(self) -> tuple[Session, bool]:
        """(HDF5 at work on the file, whether the file is as we left it)."""
        file = open_locked(self._name)
        try:
            is_settled = settle_note(self._name, file.descriptor)
            session = Session(self._name, self._name, file)
            self._last = session
            if not is_settled:  # HDF5 has opened the file as others have made it
                session.forget_note()
        except BaseException:
            with suppress(OSError):
                file.close()
            raise
        return session, stamp_of(self._name) == self._seen

    def remember(self) -> None:
        self._seen = stamp_of(self._name)
        self._forget()

    def note_addition(self, session: Session, path: str) -> None:
        """A dataset was added, or an attribute to an object."""
        if session.old is None:
            return
        parts = path.split("/")
        for above in ["", *("/".join(parts[:count]) for count in range(1, len(parts) + 1))]:
            if above not in self._added:
                self._added.add(above)
                self._note_header(session, h5o.get_info(session.file, name_bytes(above) or b"/").addr)

    def _note_header(self, session: Session, address: int) -> None:
        assert session.old is not None
        self._headers.add(address + session.old.offset)

    def note_extension(self, session: Session, stored: Stored) -> None:
        """A dataset has grown. The first time, it is found out whether that can be made safely."""
        if session.old is None:
            return
        self._note_header(session, h5o.get_info(stored.dataset).addr)
        if stored.info.name in self._proven:
            return
        session.flush()
        self._sorted(session, rehearsal=True)
        self._proven.add(stored.info.name)

    def publish(self, session: Session, durable: bool) -> None:
        try:
            with explained(self._name):
                size = session.finish()
                self._moved.apply(session)
                size = self._move_headers(session, size)
                fresh, changes = self._sorted(session)
                if self._added:
                    image = Image(session.real, session.old.end, size)
                    check_steps(self._name, image, (fresh, changes), self._added)
        except BaseException:
            self.abandon(session)
            raise
        try:
            Making(session, note_of(size, durable, fresh, changes)).run(fresh)
        finally:
            self._forget()
        self.remember()

    def _forget(self) -> None:
        """What was to be changed."""
        self._headers.clear()
        self._added.clear()
        self._moved.clear()

    def abandon(self, session: Session) -> None:
        """The file as it was, before anything of it was changed: space that was reserved is given back."""
        self._forget()
        try:
            session.drop()
            if session.descriptor >= 0:  # else the garbage collector came first, and the next writer cuts it
                session.cut_back()
        finally:
            session.close()

    def let_go(self) -> None:
        """Lets go of the file and its lock, wherever an interrupt came; does nothing the second time."""
        last, self._last = self._last, None
        if last is not None:
            last.drop()
            last.close()

    def _move_headers(self, session: Session, size: int) -> int:
        """Leaves one block of each header to be changed in place; the size of the file then."""
        assert session.old is not None
        overlay, base, free = session.overlay, session.old.offset, size
        for address in sorted(self._headers):
            free = move_continuations(overlay, address, base, session.old.end, free)
        if free == size:
            return size
        end = -(-free // session.page_bytes) * session.page_bytes
        with_end(overlay, session.old, end)
        return end

    def _sorted(self, session: Session, rehearsal: bool = False) -> tuple[list[Fresh], list[Change]]:
        """`rehearsal`: parts of headers have not been moved yet, and are left out."""
        assert session.old is not None
        overlay, base = session.overlay, session.old.offset
        old_headers = [address for address in self._headers if address < session.old.end]
        blocks = [block for address in old_headers for block in blocks_of(overlay, address, base, old=True)]
        known = {block.address: HEADER for block in blocks if block.image[:4] != b"OCHK"}
        if rehearsal:
            known |= {block.address: MOVED for block in blocks if block.pointer is not None}
        if self._added:
            known |= names_apart(overlay, base)
        fresh, changes = sort_changes(self._name, overlay, session.old, known, not self._added)
        check_applicable(self._name, changes)
        return fresh, changes
