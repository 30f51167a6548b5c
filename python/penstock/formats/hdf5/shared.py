"""Files that are open for reading, each state of one once in the process, however many readers it has.

HDF5 keeps one description of a dataset for all handles of its file, and in it the handle that was there first. What has
no fixed size (text, lists, and their fill values) is then read through that handle, also when it was closed long ago,
and the process dies. And it shows a file that is still open as it was when it was opened first, also when it was
rewritten since: new elements in an old shape. Files that are opened by two drivers share nothing.

What must stay true: the readers of a state of a file have one handle, which is closed with the last of them; readers of
another state have another handle, of another driver.
"""

from __future__ import annotations

import gc
import sys

import h5py
from h5py import h5f

from penstock._error import Error
from penstock.formats.hdf5.open import Stamp, changed, close_file, open_file, stamp_of

_DRIVERS = 2
_FileKey = tuple[int, int, int]


class _OpenFile:
    """A file that is open, and its readers. HDF5's lock guards both: who closes the file and who looks for one take
    turns. A reader may also end in the midst of a call of the same thread, wherever Python collects garbage: so a
    reader that has come looks whether the file was closed meanwhile."""

    def __init__(self, name: str, stamp: Stamp, driver: int) -> None:
        self.name, self.stamp = name, stamp
        self.key: _FileKey = (stamp.device, stamp.inode, driver)
        self.file: h5f.FileID = open_file(name, is_second=driver > 0)
        self.readers: set[int] = set()
        self.is_closed = False

    def leave(self, reader: int) -> None:
        self.readers.discard(reader)
        if self.readers or self.is_closed:
            return
        self.is_closed = True
        del _open[self.key]
        close_file(self.file)


class SharedHandle:
    """A file for one reader, which is closed when the last that holds one of these lets go of it."""

    def __init__(self, opened: _OpenFile) -> None:
        self._opened = opened
        self.name, self.file = opened.name, opened.file
        opened.readers.add(id(self))

    @property
    def is_closed(self) -> bool:
        return self._opened.is_closed

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with h5py._objects.phil:
                self._opened.leave(id(self))


_open: dict[_FileKey, _OpenFile] = {}


def is_open_elsewhere() -> bool:
    """Whether this process has HDF5 files open that are no reader's."""
    with h5py._objects.phil:
        return bool(h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_FILE) != len(_open))


def share_file(name: str, stamp: Stamp) -> SharedHandle:
    """The file that has the stamp, opened if no reader has it. Its name there may be another one."""
    shared = _share_any(name, stamp)
    if shared is None:
        gc.collect()  # a reader in a circle of references, as a dataset of xarray may be, holds its state until then
        shared = _share_any(name, stamp)
    if shared is not None:
        return shared
    cause = "readers of two earlier states of the file are open in this process, and HDF5 would show one of these"
    raise Error(code="unsupported", operation="open", file=name, cause=cause, advice="close these readers first")


def _share_any(name: str, stamp: Stamp) -> SharedHandle | None:
    found = (_share(name, stamp, driver) for driver in range(_DRIVERS))
    return next((one for one in found if one is not None), None)


def _share(name: str, stamp: Stamp, driver: int) -> SharedHandle | None:
    """None: readers of another state have the file by this driver."""
    key = stamp.device, stamp.inode, driver
    with h5py._objects.phil:
        while True:
            opened = _open.get(key)
            if opened is None:
                opened = _open[key] = _opened(name, stamp, driver)
            if opened.stamp != stamp:
                return None
            shared = SharedHandle(opened)
            if not shared.is_closed:
                return shared


def _opened(name: str, stamp: Stamp, driver: int) -> _OpenFile:
    """Another file that has taken the name may have readers too, with a handle of their own: none gets a second one."""
    made = _OpenFile(name, stamp, driver)
    found = stamp_of(name)
    if (found.device, found.inode) != (stamp.device, stamp.inode):
        close_file(made.file)
        raise changed(name)
    return made
