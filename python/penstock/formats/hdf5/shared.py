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
from weakref import WeakValueDictionary

from h5py import h5f

from penstock._error import Error
from penstock.formats.hdf5.open import Stamp, close_file, open_file, stamp_of

_DRIVERS = 2
_FileKey = tuple[int, int, int]


class SharedHandle:
    """A file, which is closed when the last that holds this lets go of it. There is no count and no lock: a reader may
    end wherever Python collects garbage, in the midst of a call of HDF5 too."""

    def __init__(self, name: str, stamp: Stamp, driver: int) -> None:
        self.name, self.stamp = name, stamp
        self.file: h5f.FileID = open_file(name, is_second=driver > 0)

    def __del__(self) -> None:
        if "file" in self.__dict__ and not sys.is_finalizing():
            close_file(self.file)


_open: WeakValueDictionary[_FileKey, SharedHandle] = WeakValueDictionary()


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
    shared = _open.get(key)
    if shared is None:
        made = SharedHandle(name, stamp, driver)
        found = stamp_of(name)
        if (found.device, found.inode) != key[:2]:
            return made
        shared = _open.setdefault(key, made)
    return shared if shared.stamp == stamp else None
