"""Brings the metadata of a change into an existing HDF5 file: either all of it, or none.

New structures go behind the old end, then (of a durable change) a note of what changes (journal), then the changes
themselves; at last the note is cut off. What must stay true: whatever fails or interrupts this, the file is as it was,
or as it is to be. Where storage fails again when changes are taken back, readers find each dataset in one of its
states, and a note brings the file to one end at the next opening for writing. The file is only cut back after every
change was taken back. An error says which of these it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from penstock._error import Error
from penstock._files.descriptor import flush, write_at
from penstock.formats.faults import UNHARMED, told
from penstock.formats.hdf5.changing.apply import apply, undo
from penstock.formats.hdf5.changing.journal import Note, has_note, read_note, settle
from penstock.formats.hdf5.changing.order import Fresh
from penstock.formats.hdf5.changing.session import Session, read_head

_MADE = "the new datasets and steps are in the file"
_NOT_STABLE = f"{_MADE}, and may be gone after a power failure"
_HALF = "some datasets may have their new state, the others have their old one"
_HALF_NOTED = f"{_HALF}: the next opening for writing finishes the changes, or takes them back"


def settle_note(name: str, descriptor: int) -> bool:
    """Finishes or takes back what a writer left half made. False: others have written since, so its note is to be
    forgotten, if HDF5 finds the file right."""
    with told("find half-made changes of", name, "open it again"):
        if not has_note(descriptor):
            return True
        note = read_note(descriptor, read_head(name, descriptor).end)
        if note is None:
            return True
        if not settle(name, descriptor, note):
            return False
        os.ftruncate(descriptor, read_head(name, descriptor).end)
    return True


class Making:
    """One change of one file. Closes the session's descriptor."""

    def __init__(self, session: Session, note: Note) -> None:
        self._session, self._note = session, note
        self._name, self._descriptor = session.name, session.descriptor
        self._began = self._ended = False  # changing existing structures

    def run(self, fresh: Sequence[Fresh]) -> None:
        try:
            self._prepare(fresh)
            self._began = True
            with told("change the metadata of", self._name, UNHARMED):
                apply(self._name, self._descriptor, self._note.changes)
            self._ended = self._note.durable  # what a sync loses then, the note brings to an end
            self._finish()
        except BaseException as error:
            self._back_out(error)
            raise
        finally:
            self._session.close()

    def _prepare(self, fresh: Sequence[Fresh]) -> None:
        self._session.grow(self._note.size)
        with told("write the metadata of", self._name, UNHARMED):
            for one in fresh:
                write_at(self._descriptor, one.content, one.offset)
        if self._note.changes and self._note.durable:  # else only power failure needs it, and it takes milliseconds
            self._session.note(self._note)
        self._settle(UNHARMED)

    def _finish(self) -> None:
        if self._note.changes:
            self._settle(_NOT_STABLE if self._note.durable else UNHARMED)
        self._ended = True
        self._session.cut(self._note.size, _MADE)

    def _settle(self, advice: str) -> None:
        """On stable storage where that is asked for; else what can be told of errors is."""
        with told("fdatasync" if self._note.durable else "flush", self._name, advice):
            self._ask()

    def _ask(self) -> None:
        if self._note.durable:
            os.fdatasync(self._descriptor)
        else:
            flush(self._descriptor)

    def _back_out(self, error: BaseException) -> None:
        if self._ended:
            return
        try:
            if self._began:
                undo(self._name, self._descriptor, self._note.changes)
                self._ask()
        except OSError as second:
            if isinstance(error, Error):
                raise self._half(error, second) from error
            return
        with suppress(Error):  # space behind the end does no harm
            self._session.cut_back()

    def _half(self, error: Error, second: OSError) -> Error:
        return Error(
            code=error.code,
            operation=error.operation,
            file=error.file,
            cause=f"{error.cause}, and then they could not be taken back ({second.strerror or second})",
            advice=_HALF_NOTED if self._note.durable else _HALF,
            system_code=error.system_code,
        )
