"""Opening HDF5 files for their metadata, finding datasets in them by name, and saying what HDF5 says when it cannot.

What must stay true: of a file that is open to change, HDF5 keeps none of the elements (no chunk cache, no sieve
buffer), because the mover writes them behind its back; a file that changes on disk while it is open here is noticed;
every dataset is named once for each link in each group, however links run in circles.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import NamedTuple

import h5py
from h5py import h5, h5d, h5f, h5g, h5i, h5l, h5o, h5p

from penstock._error import Error
from penstock.formats.faults import LinkError, unknown
from penstock.formats.hdf5.faults import busy, fault_of

_OBJECTS = h5f.OBJ_DATASET | h5f.OBJ_GROUP | h5f.OBJ_DATATYPE | h5f.OBJ_ATTR | h5f.OBJ_LOCAL


class Stamp(NamedTuple):
    """What changes when a file changes."""

    device: int
    inode: int
    bytes: int
    modified_ns: int


def stamp_of(name: str) -> Stamp:
    try:
        found = os.stat(name)  # noqa: PTH116 - a tenth of the time of a Path's
    except OSError as error:
        raise Error.of(error, "open", name, "check the name and its permissions") from error
    if not stat.S_ISREG(found.st_mode):  # HDF5 would wait for a pipe
        raise Error(code="not_a_regular_file", operation="open", file=name, cause="it is not a regular file")
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def changed(name: str) -> Error:
    cause = "the file was changed or replaced after it was opened here"
    return Error(code="unsupported", operation="read", file=name, cause=cause, advice="open it again")


def check_unchanged(name: str, stamp: Stamp) -> Stamp:
    """The stamp, when it still is the file's; else an Error."""
    if stamp_of(name) != stamp:
        raise changed(name)
    return stamp


def access_list() -> h5p.PropFAID:
    """How files are opened to change them: nothing of the elements is cached. The rest is as h5py does it, because HDF5
    insists that a file that is opened twice in a process is opened alike."""
    access = h5p.create(h5p.FILE_ACCESS)
    elements, slots, _, policy = access.get_cache()
    access.set_cache(elements, slots, 0, policy)
    access.set_sieve_buf_size(0)
    return access


@cache
def _reading_list(is_second: bool) -> h5p.PropFAID:
    """Shared by all files opened for reading; no code changes it. Making one takes longer than opening a file. The
    caches are as HDF5 has them: all handles of a file in a process have those of the first, h5py's too."""
    access = h5p.create(h5p.FILE_ACCESS)
    if is_second:
        access.set_fapl_stdio()
    return access


def open_file(name: str, *, is_second: bool = False) -> h5f.FileID:
    """Opens an HDF5 file for reading its metadata. `is_second`: by a driver that no other code of this process takes,
    so that HDF5 reads the file as it is now, also if it is open."""
    try:
        file = h5f.open(os.fsencode(name), h5f.ACC_RDONLY, _reading_list(is_second))
    except BlockingIOError as error:
        raise busy(name) from error
    except OSError as error:
        raise fault_of(name, error) from error
    if file.get_intent() & h5f.ACC_RDWR:  # this process has it open: HDF5 shares that, with what is not yet on disk
        file.close()
        raise busy(name)
    return file


def close_file(file: h5f.FileID) -> None:
    """Closes the file and all that was opened by it: HDF5 keeps a file open for as long as one of its datasets is, and
    an exception may hold one for long. close() of h5py would look at every object of the process afterwards."""
    for one in h5f.get_obj_ids(file, _OBJECTS) if h5f.get_obj_count(file, _OBJECTS) else ():
        release(one)
    with suppress(OSError, RuntimeError):  # what a close tells is of writes, and the file was only read
        h5i.dec_ref(file)


def release(one: h5d.DatasetID | h5g.GroupID) -> None:
    """Closes an object, whoever holds it."""
    while one.valid:
        h5i.dec_ref(one)


_DAMAGE = (OSError, RuntimeError, ValueError, TypeError, OverflowError, UnicodeError)


class explained:  # noqa: N801 - reads as a function; a generator would take longer than most blocks
    """What HDF5 stumbles over in the block as an Error: mostly damage of the file. A KeyError says that a name is
    unknown, unless all names in the block were found in the file itself."""

    __slots__ = ("_about",)

    def __init__(self, file: str, dataset: str = "", names_exist: bool = False) -> None:
        self._about = file, dataset, names_exist

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            return
        file, dataset, names_exist = self._about
        if isinstance(error, KeyError):
            if names_exist:
                raise fault_of(file, error, dataset) from error
        elif isinstance(error, _DAMAGE):
            raise fault_of(file, error, dataset) from error


def name_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def name_text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def open_dataset(file: h5f.FileID, file_name: str, name: str) -> h5d.DatasetID:
    """The dataset of that name, links followed, those to other files too. KeyError lists names that come close."""
    try:
        found = h5o.open(file, name_bytes(name))
    except KeyError as error:
        _explain_absence(file, file_name, name, error)
        raise unknown(file_name, name, names_of(file)) from None
    except (OSError, RuntimeError, ValueError) as error:
        raise fault_of(file_name, error, name) from error
    if not isinstance(found, h5d.DatasetID):
        kind = "a group" if isinstance(found, h5g.GroupID) else "a named type"
        inside = [one for one in names_of(file) if one.startswith(f"{name}/")][:3]
        hint = f"; it holds {', '.join(inside)}" if inside else ""
        raise KeyError(f"{file_name}: {name!r} is {kind}, not a dataset{hint}")
    return found


def _explain_absence(file: h5f.FileID, file_name: str, name: str, error: KeyError) -> None:
    """A link that leads nowhere says where to; of one that leads to a damaged object HDF5 says what is wrong."""
    root = h5g.open(file, b"/")
    try:
        kind = root.links.get_info(name_bytes(name)).type
        if kind == h5l.TYPE_HARD:
            raise fault_of(file_name, error, name) from error
        target = root.links.get_val(name_bytes(name))
    except (KeyError, ValueError, RuntimeError, OSError):
        return
    if kind == h5l.TYPE_EXTERNAL:
        other, path = (name_text(part) for part in target)
        cause = f"it is a link to {path!r} in file {other!r}, which cannot be opened"
        raise _leads_nowhere(file_name, cause, "put that file where the link says", name)
    if kind == h5l.TYPE_SOFT:
        cause = f"it is a link to {name_text(target)!r}, which does not exist"
        raise _leads_nowhere(file_name, cause, "the program that wrote the file left it so", name)


def _leads_nowhere(file: str, cause: str, advice: str, name: str) -> LinkError:
    return LinkError(code="unsupported", operation=f"use dataset {name!r} of", file=file, cause=cause, advice=advice)


def object_at(file: h5f.FileID, name: str) -> h5d.DatasetID | h5g.GroupID | None:
    """The dataset or group of that name, links followed; None where it is neither, or cannot be opened."""
    try:
        found = h5o.open(file, name_bytes(name))
    except (KeyError, OSError, RuntimeError, ValueError):
        return None
    return found if isinstance(found, (h5d.DatasetID, h5g.GroupID)) else None


def has(file: h5f.FileID, path: str) -> bool:
    try:
        h5o.open(file, name_bytes(path))
    except (KeyError, OSError, RuntimeError, ValueError):
        return False
    return True


def home_of(dataset: h5d.DatasetID) -> str:
    """Name of the file that a dataset lies in: another one, when an external link led to it."""
    return os.fsdecode(h5f.get_name(dataset))


def names_of(file: h5f.FileID, group: str = "/") -> list[str]:
    """All datasets below a group, each group visited once; external links are not followed. What is broken is listed as
    a dataset: asking for it tells why it cannot be read."""
    root = h5g.open(file, name_bytes(group))
    number = h5o.get_info(root).fileno
    seen, found = {h5o.get_info(root).addr}, []
    waiting: list[tuple[str, h5g.GroupID]] = [("", root)]
    soft: list[str] = []
    while waiting:
        path, group = waiting.pop()
        inner: list[tuple[str, h5g.GroupID]] = []
        for name, link, address in _links(group):
            full = f"{path}{name_text(name)}"
            kind = _kind_of(group, name) if link == h5l.TYPE_HARD else None
            below = _group_in(group, name) if kind == h5o.TYPE_GROUP and address not in seen else None
            if link == h5l.TYPE_SOFT:
                soft.append(full)
            elif below is not None:
                seen.add(address)
                inner.append((f"{full}/", below))
            elif kind == h5o.TYPE_DATASET or (kind == h5o.TYPE_GROUP and address not in seen):
                found.append(full)
        waiting += reversed(inner)
    return found + [one for one in soft if _is_dataset(root, one, number)]


def _kind_of(group: h5g.GroupID, name: bytes) -> int:
    """A broken object may be anything, and counts as a dataset, so that it is listed."""
    try:
        return h5o.get_info(group, name).type
    except (KeyError, OSError, RuntimeError, ValueError):
        return h5o.TYPE_DATASET


def _group_in(group: h5g.GroupID, name: bytes) -> h5g.GroupID | None:
    """None: it is broken."""
    try:
        found = h5g.open(group, name)
        _links(found)
    except (KeyError, OSError, RuntimeError, ValueError):
        return None
    return found


def _links(group: h5g.GroupID) -> list[tuple[bytes, int, int]]:
    """(name, kind, address) of each link, as they were made where the group keeps that order, else by name. h5py hands
    out the same object each time, so what it says is copied."""
    links: list[tuple[bytes, int, int]] = []
    is_kept = len(group) > 1 and group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    order = h5.INDEX_CRT_ORDER if is_kept else h5.INDEX_NAME
    group.links.iterate(lambda name, link: links.append((name, link.type, link.u)), idx_type=order, info=True)
    return links


def _is_dataset(root: h5g.GroupID, name: str, number: int) -> bool:
    """Whether a soft link leads to a dataset of the same file."""
    try:
        found = h5o.get_info(root, name_bytes(name))
    except (KeyError, ValueError, RuntimeError, OSError):
        return False
    return found.type == h5o.TYPE_DATASET and found.fileno == number


def high_level(identifier: h5d.DatasetID | h5g.GroupID) -> h5py.Dataset | h5py.Group:
    """h5py's comfortable face of an object, for its attributes."""
    return h5py.Dataset(identifier) if isinstance(identifier, h5d.DatasetID) else h5py.Group(identifier)
