"""HDF5 at work on the metadata of one file, above an overlay: nothing it does reaches the file until it is applied.

What must stay true: the file is locked as HDF5 locks it, so that neither another writer nor a reader of half a change
is there while we are; space that was given out is reserved in the real file at once.
"""

from __future__ import annotations

import fcntl
import io
import os
from contextlib import suppress

import numpy as np
from h5py import h5d, h5f, h5fd, h5p

from penstock._error import Error
from penstock._files.descriptor import read_at, write_at
from penstock.formats.faults import UNHARMED, cut_short, damaged, refused, told
from penstock.formats.hdf5.changing.journal import Note, without_note, write_note
from penstock.formats.hdf5.changing.order import Superblock, read_superblock
from penstock.formats.hdf5.changing.overlay import PAGE_BYTES, Overlay, Real
from penstock.formats.hdf5.faults import busy, fault_of
from penstock.formats.hdf5.library import claim_space, set_link_phase_change
from penstock.formats.hdf5.open import access_list
from penstock.formats.new_file import reserve

NAME = "penstock-overlay"  # what HDF5 calls the file
_HEAD_BYTES = 1 << 20  # a superblock lies at 0, 512, 1024, ...; user blocks beyond this are not looked for
# Kept in an object's header: what lies there can be changed in one step, a heap and its index cannot. Links never move
# to a heap later: HDF5 takes them out one by one, which takes time by the fourth power of their number (minutes of
# 1000). A group that is to have very many begins with a heap instead (`many_members`).
_COMPACT_LINKS = 65535  # the most that HDF5 can be asked for
_COMPACT_OF_MANY = 8  # its own default
_COMPACT_ATTRIBUTES = 200
_ORDER = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED
_LEAST_PAGE, _MOST_PAGE = 512, 1 << 30  # H5F_FILE_SPACE_PAGE_SIZE_MIN and _MAX
_PIECE_BYTES = 8  # at whose multiples small pieces begin
_NO_LOCKS = ("FALSE", "0")


class Session:
    """`create`: of a new file, else it is opened. `name`: as the user knows it; `path`: as it is now."""

    def __init__(self, name: str, path: str, real: Real, create: h5p.PropFCID | None = None) -> None:
        self.name, self.path, self.real = name, path, real
        self.unseen: dict[str, bool] = {}  # datasets by name: whether no reader of the file can see them yet
        self.page_bytes = 8  # the end of the file is a multiple of it
        self.old: Superblock | None = None
        if create is None:
            self.old = read_head(name, self.descriptor)
            size = os.fstat(self.descriptor).st_size
            if size < self.old.end:
                raise cut_short(name, f"it has {size} of the {self.old.end} bytes that it says it has")
            if self.old.end <= self.old.offset:  # what has no bytes HDF5 takes for a new file
                raise damaged(name, f"its superblock at {self.old.offset} says that the file ends at {self.old.end}")
        self.reserved_end = self.old.end if self.old else 0
        self._found_bytes = 0 if self.old is None else os.fstat(self.descriptor).st_size
        self.overlay = Overlay(real, self.reserved_end)
        access = access_list()
        access.set_fileobj_driver(h5fd.fileobj_driver, self.overlay)
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        access.set_alignment(PAGE_BYTES, PAGE_BYTES)
        access.set_libver_bounds(h5f.LIBVER_V18, h5f.LIBVER_V110 if create else h5f.LIBVER_LATEST)
        try:
            if create is not None:
                self.file = h5f.create(NAME.encode(), h5f.ACC_TRUNC, create, access)
            else:
                self.file = h5f.open(NAME.encode(), h5f.ACC_RDWR, access)
        except (OSError, RuntimeError, ValueError) as error:
            raise fault_of(name, error) from error
        if self.old is not None:
            self._check_strategy()

    def _check_strategy(self) -> None:
        create = self.file.get_create_plist()
        strategy, persists, _ = create.get_file_space_strategy()
        if strategy == h5f.FSPACE_STRATEGY_PAGE:
            self.page_bytes = create.get_file_space_page_size()
        if persists:
            self.file.close()
            cause = f"it keeps a list of its free space (strategy {strategy}), which cannot be changed in one step"
            raise refused(self.name, cause, "append with h5py, or write a new file")

    @property
    def descriptor(self) -> int:
        return self.real.descriptor

    @property
    def has_reserved(self) -> bool:
        return self.old is not None and self.reserved_end > self.old.end

    def reserve(self) -> None:
        """Space for all that HDF5 has given out so far."""
        self.grow(self.file.get_filesize())

    def grow(self, size: int) -> None:
        """Space up to there."""
        if size <= self.reserved_end:
            return
        if self.old is not None and not self.has_reserved and self.old.end < self._found_bytes:
            self._cut("cut off what a dead writer left behind the end of", self.old.end)  # nothing leads to it
            self._found_bytes = self.old.end
        reserve(self.descriptor, self.name, self.reserved_end, without_note(size) - self.reserved_end)
        self.reserved_end = size

    def note(self, note: Note) -> None:
        """Behind all that is there."""
        with told("note the changes behind the end of", self.name, UNHARMED):
            write_note(self.descriptor, os.fstat(self.descriptor).st_size, note)

    def cut(self, size: int, advice: str) -> None:
        """The size that the file is to have, without notes; where no space was reserved, the one it was found with."""
        self._cut("cut off the reserved space of", size if self.has_reserved else self._found_bytes, advice)

    def cut_back(self) -> None:
        """As the file was found: nothing leads behind its old end."""
        assert self.old is not None
        self.cut(self.old.end, UNHARMED)

    def forget_note(self) -> None:
        """That a writer left, and others have written since."""
        assert self.old is not None
        self._cut("cut off the note of a dead writer in", self.old.end)
        self._found_bytes = self.old.end

    def _cut(self, operation: str, size: int, advice: str = UNHARMED) -> None:
        with told(operation, self.name, advice):
            if os.fstat(self.descriptor).st_size != size:
                os.ftruncate(self.descriptor, size)

    def place(self, dataset: h5d.DatasetID, origin: tuple[int, ...], content: np.ndarray, mask: int) -> int:
        """Gives a chunk its space; where that is. `content`: as long as the chunk, and never looked at."""
        overlay, size = self.overlay, len(content)
        overlay.swallowed = (content.ctypes.data, size)
        dataset.write_direct_chunk(origin, content, mask)
        assert overlay.swallowed is None
        return overlay.tell() - size

    def claim(self, sizes: np.ndarray) -> np.ndarray:
        """Space that HDF5 gives to nothing: where pieces of these bytes go, behind each other. Those of a page or more
        begin on one."""
        starts, end = np.empty(len(sizes), np.int64), 0
        for turn, size in enumerate(sizes.tolist()):
            step = PAGE_BYTES if size >= PAGE_BYTES else _PIECE_BYTES
            starts[turn] = -(-end // step) * step
            end = int(starts[turn]) + size
        begin = claim_space(self.file, max(end, PAGE_BYTES))  # as much as is aligned
        self.reserve()
        return begin + starts

    def flush(self) -> None:
        h5f.flush(self.file)

    def finish(self) -> int:
        """HDF5 writes all it has to the overlay and lets go; the size of the file then."""
        self.file.close()
        return self.overlay.size_bytes

    def write_all(self, size: int) -> None:
        """The metadata of a new file, all of it, to the file."""
        try:
            for offset, count in self.overlay.structures.items():
                write_at(self.descriptor, self.overlay.bytes_at(offset, count), offset)
            os.ftruncate(self.descriptor, size)
        except OSError as error:
            raise Error.of(error, "write the metadata of", self.name, "nothing was left behind") from error

    def drop(self) -> None:
        """Nothing of it will be applied, so what HDF5 finds wrong in it, as after an interrupt, does not matter."""
        with suppress(OSError, RuntimeError, SystemError):
            if self.file.valid:
                self.file.close()

    def __del__(self) -> None:
        """HDF5 lets go before the descriptor is closed: it prints what it finds wrong."""
        if "file" in self.__dict__:
            self.drop()

    def close(self) -> None:
        """Lets go of an existing file, and of its lock."""
        if isinstance(self.real, LockedFile):
            with told("close", self.name, "read it back: it may not be what was written"):
                self.real.close()


def read_head(name: str, descriptor: int) -> Superblock:
    """What the file says of itself now."""
    return read_superblock(name, read_at(descriptor, _HEAD_BYTES, 0))


class LockedFile(io.FileIO):
    """An existing file. It is closed with its last reference, wherever an interrupt comes."""

    @property
    def descriptor(self) -> int:
        return -1 if self.closed else self.fileno()


def open_locked(name: str) -> LockedFile:
    """To be changed, and locked against other programs that use HDF5."""
    try:
        file = LockedFile(name, "r+b")
    except OSError as error:
        raise Error.of(error, "open for writing", name, "check the name and its permissions") from error
    if os.environ.get("HDF5_USE_FILE_LOCKING", "").upper() in _NO_LOCKS:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise busy(name, "open") from error
    except OSError:  # a file system without locks: as HDF5, where it is built to ignore that
        return file
    return file


def creation_list(page_bytes: int, ordered: bool, many_members: bool = False) -> h5p.PropFCID:
    """Properties of a new file: extents on pages, and nothing else in the rest of their last page. `ordered`: groups
    know the order in which their members were made. `many_members`: of the root, see group_list."""
    if not hasattr(page_bytes, "__index__"):
        raise TypeError(f"page_bytes must be an int, not {type(page_bytes).__name__}")
    if not _LEAST_PAGE <= page_bytes <= _MOST_PAGE:
        raise ValueError(f"page_bytes is {page_bytes}; HDF5 has pages of {_LEAST_PAGE} to {_MOST_PAGE} bytes")
    create = h5p.create(h5p.FILE_CREATE)
    create.set_file_space_strategy(h5f.FSPACE_STRATEGY_PAGE, False, 1)
    create.set_file_space_page_size(page_bytes)
    _shape_group(create, ordered, many_members)
    return create


def group_list(ordered: bool, many_members: bool = False) -> h5p.PropGCID:
    """Properties of a new group. `many_members`: they move to a heap while they are few, where adding one takes the
    same time however many there are; in place none can be added then."""
    create = h5p.create(h5p.GROUP_CREATE)
    _shape_group(create, ordered, many_members)
    return create


def shape_object(create: h5p.PropOCID, ordered: bool) -> None:
    """What groups and datasets have in common."""
    create.set_obj_track_times(False)
    create.set_attr_phase_change(_COMPACT_ATTRIBUTES, _COMPACT_ATTRIBUTES // 2)
    if ordered:
        create.set_attr_creation_order(_ORDER)


def _shape_group(create: h5p.PropGCID | h5p.PropFCID, ordered: bool, many_members: bool) -> None:
    shape_object(create, ordered)
    if ordered:
        create.set_link_creation_order(_ORDER)
    set_link_phase_change(create, _COMPACT_OF_MANY if many_members else _COMPACT_LINKS)
