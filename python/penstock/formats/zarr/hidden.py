"""Names in a Zarr store for what no reader is to see yet, and the end of what killed writers left under such names.

A writer alone in a store, by its lock, takes names that can be foreseen. So the next writer of a chunk, an array or a
document meets what a killed one left of it, and removes that. What must stay true: nothing is removed that is another
user's, or of a writer that may live.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from penstock.formats.new_file import WriterLock, temporary_name
from penstock.formats.zarr.document import write_document

_FORESEEN = 8  # names of one file, before those that cannot be foreseen
_NAME_PART = 100  # characters of its name: with the rest they must fit NAME_MAX


class HiddenNames:
    """`lock`: of the store; None where all of the store is new, and hidden as a whole."""

    def __init__(self, lock: WriterLock | None) -> None:
        self._alone = lock is not None and lock.held

    def name_for(self, final: str, taken: Collection[str] = ()) -> str:
        """A name beside `final` that nothing has. `taken`: those that this writer uses."""
        (folder, base), free = os.path.split(final), ""
        for number in range(_FORESEEN if self._alone else 0):
            name = os.path.join(folder, f".{base[:_NAME_PART]}.penstock-{number}")
            if name in taken:
                continue
            if not os.path.lexists(name):
                return free or name
            if _remove_dead(name):
                free = free or name
        return free or temporary_name(final)

    def write_document(self, path: str, document: Mapping[str, Any], durable: bool) -> None:
        write_document(path, document, durable, self.name_for(path))


def _remove_dead(name: str) -> bool:
    """Whether it is gone."""
    with suppress(OSError):
        if os.lstat(name).st_uid != os.geteuid():
            return False
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name)
        else:
            os.unlink(name)
    return not os.path.lexists(name)
