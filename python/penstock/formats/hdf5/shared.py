"""Files that are open for reading, each once in the process, however many readers it has.

HDF5 keeps one description of a dataset for all handles of its file, and in it the handle that was there first. What has
no fixed size (text, lists, and their fill values) is then read through that handle, also when it was closed long ago,
and the process dies. What must stay true: the readers of a file have one handle, which is closed with the last of them.
"""

from __future__ import annotations

import sys
from weakref import WeakValueDictionary

from h5py import h5f

from penstock.formats.hdf5.open import Stamp, close_file, open_file, stamp_of

_FileKey = tuple[int, int]


class SharedHandle:
    """A file, which is closed when the last that holds this lets go of it. There is no count and no lock: a reader may
    end wherever Python collects garbage, in the midst of a call of HDF5 too."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.file: h5f.FileID = open_file(name)

    def __del__(self) -> None:
        if "file" in self.__dict__ and not sys.is_finalizing():
            close_file(self.file)


_open: WeakValueDictionary[_FileKey, SharedHandle] = WeakValueDictionary()


def share_file(name: str, stamp: Stamp) -> SharedHandle:
    """The file that has the stamp, opened if no reader has it. Its name there may be another one."""
    key = stamp.device, stamp.inode
    shared = _open.get(key)
    if shared is not None:
        return shared
    made = SharedHandle(name)
    found = stamp_of(name)
    return _open.setdefault(key, made) if (found.device, found.inode) == key else made
