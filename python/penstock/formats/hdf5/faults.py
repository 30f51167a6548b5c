"""What HDF5 stumbles over, told as what it is: damage of the file, or something else that hinders.

HDF5 has one kind of error for a file that is cut short, that a program is writing, that needs another driver, that a
newer library wrote, or whose disk fails. What must stay true: only contradictions in the bytes of a file are called
damage; all else is named, with what to do.
"""

from __future__ import annotations

import errno
import os
import re

import h5py

from penstock._error import Error
from penstock._files.descriptor import close_read, read_at
from penstock.formats.faults import cut_short, damaged, foreign, no_memory, unsupported

_CAUSE = re.compile(r"\((.*)\)$", re.DOTALL)
_ERRNO = re.compile(r"errno = (\d+)")
_TRUNCATED = re.compile(r"truncated file: eof = (\d+), sblock->base_addr = (\d+), stored_eof = (\d+)")
_DRIVER = re.compile(r"(\w+) driver should be used")
_VERSION = re.compile(r"\b(bad|wrong|unknown|unsupported|incorrect)\b.*\bversion\b|\bversion\b.*\bunknown\b")
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_STARTS = (0, *(512 << power for power in range(12)))  # a user block may come first
_HEAD_BYTES = 4096  # behind the signature, where HDF5 keeps what a driver needs
_DRIVERS = {b"NCSAfami": "family", b"NCSAmult": "multi"}
_FLAGS_SINCE, _FLAGS_AT, _SWMR = 2, 11, 4  # superblock of version 2: its byte of consistency flags, the bit of SWMR


def cause_of(error: BaseException) -> str:
    """What HDF5 said, without the name of its function."""
    found = _CAUSE.search(str(error))
    return found.group(1) if found else str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def fault_of(file: str, error: BaseException, dataset: str = "") -> Error:
    """The Error of what HDF5 said of a file, or of a dataset in it. An Error stays as it is."""
    if isinstance(error, Error):
        return error
    cause = cause_of(error)
    said = _ERRNO.search(cause)
    number = (error.errno if isinstance(error, OSError) else None) or (int(said.group(1)) if said else 0)
    if number:
        return _of_system(file, number, dataset, "lock" in cause)
    if "memory allocation failed" in cause:
        return no_memory(file, cause, dataset)
    told = None if dataset else _of_whole_file(file, cause)  # of a dataset it may be said of another file
    if told is not None:
        return told
    if _VERSION.search(cause):
        newer = f"a newer HDF5 than {h5py.version.hdf5_version} wrote the file, or it is damaged: try a newer h5py"
        return damaged(file, cause, dataset, newer)
    return damaged(file, cause, dataset)


def _of_whole_file(file: str, cause: str) -> Error | None:
    """What hinders HDF5 at the first bytes of a file."""
    driver, truncated = _DRIVER.search(cause), _TRUNCATED.search(cause)
    if "already open for" in cause:
        return _marked(file)
    if "file locking" in cause:
        return busy(file, "open, with another setting of HDF5's locks")
    if "file signature not found" in cause:
        begin = _begin(file, 0)
        is_start = 0 < len(begin) < len(_SIGNATURE) and _SIGNATURE.startswith(begin)
        return cut_short(file, f"it has {len(begin)} bytes") if is_start else foreign(file, "HDF5", begin)
    if driver is not None:
        return _in_parts(file, driver.group(1))
    return _truncated(file, *map(int, truncated.groups())) if truncated is not None else None


def busy(name: str, how: str = "open for writing") -> Error:
    cause = f"another program, or this one, has it {how}"
    return Error(code="io_error", operation="open", file=name, cause=cause, advice="wait until it is closed there")


def _of_system(file: str, number: int, dataset: str, is_lock: bool) -> Error:
    if is_lock and number in (errno.EAGAIN, errno.EACCES):
        return busy(file)
    advice = "check the name and its permissions"
    if is_lock:
        advice = "HDF5_USE_FILE_LOCKING=FALSE opens it without a lock, where no program writes to it"
    elif dataset or number == errno.EIO:
        advice = "the system refused, not the format: see to the disk, or the server, and read it again"
    operation = f"read dataset {dataset!r} of" if dataset else "open"
    return Error.of(OSError(number, os.strerror(number)), operation, file, advice)


def _marked(file: str) -> Error:
    """The superblock says that the file is open for writing; HDF5 believes it, and no lock says otherwise."""
    begin, how = _superblock(file), "a program"
    if len(begin) > _FLAGS_AT and begin[8] >= _FLAGS_SINCE and begin[_FLAGS_AT] & _SWMR:
        how = "a SWMR writer (h5py: swmr_mode)"
    cause = f"{how} has it open for writing, or ended without closing it: the file is marked so"
    advice = "close it there, and open it again; if no program has it open, `h5clear -s FILE` takes the mark away"
    return Error(code="io_error", operation="open", file=file, cause=cause, advice=advice)


def _truncated(file: str, has: int, base: int, end: int) -> Error:
    """Also a member of several that are one file: it ends before the whole does."""
    head = _superblock(file)
    for mark, driver in _DRIVERS.items():
        if mark in head:
            return _in_parts(file, driver)
    return cut_short(file, f"it has {has} of the {base + end} bytes that it says it has")


def _in_parts(file: str, driver: str) -> Error:
    tool = (
        "h5repart joins them" if driver == "family" else 'h5py.File(name, driver="split") reads two of them for a copy'
    )
    cause = f"it is one of several files that HDF5's {driver} driver makes one of; Penstock reads single files"
    return unsupported(file, cause, f"make one file of them: {tool}")


def _superblock(file: str) -> bytes:
    """The bytes from its signature on."""
    begins = (_begin(file, start) for start in _STARTS)
    return next((begin for begin in begins if begin.startswith(_SIGNATURE)), b"")


def _begin(file: str, start: int) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return read_at(descriptor, _HEAD_BYTES, start)
        finally:
            close_read(descriptor)
    except OSError:
        return b""
