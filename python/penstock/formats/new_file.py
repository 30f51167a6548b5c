"""A file that appears under its name whole or never, the reserving of space in it, its syncs, and the lock of those who
change a file or a folder in place. new_folder has the same for a folder.

It is built under a temporary name in the same folder and renamed; a symbolic link stays, and what it leads to is made
or replaced. What must stay true: until `publish` returns, an older file of that name is untouched; after `abandon`, or
an error, nothing is left behind. What a killed process leaves under a temporary name, the next writer of the same name
removes: a living writer holds a lock on its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any

from penstock import _core
from penstock._error import Error
from penstock._files.open_files import with_room

_ADVICE = "check the folder, its permissions and its space"
_NAME_PART = 100  # characters of the target's name in a temporary's: together they must fit NAME_MAX


def temporary_name(name: str) -> str:
    """A name beside `name` that no file has."""
    folder, base = os.path.split(name)
    return os.path.join(folder, f".{base[:_NAME_PART]}.penstock-{os.getpid()}-{secrets.token_hex(6)}")


def folder_of(name: str) -> str:
    """Where a file or folder lies whose name ends with no slash."""
    return os.path.dirname(name) or "."


def is_temporary(name: str) -> bool:
    """Whether a name (without its folder) is one of those that temporary_name makes."""
    return name.startswith(".") and ".penstock-" in name


class WriterLock:
    """Held by who changes a file or a folder in place; another one is refused, in this process too, and so is who would
    put a new one in its place. An flock: advisory, and given up with the process. File systems without locks have none,
    as with HDF5."""

    def __init__(self, name: str, kind: int = fcntl.LOCK_EX) -> None:
        self._name, self._process = name, os.getpid()
        flags = os.O_CLOEXEC | os.O_NONBLOCK  # a pipe that came meanwhile is not waited for
        flags |= os.O_RDONLY if os.path.isdir(name) or kind == fcntl.LOCK_SH else os.O_RDWR  # for the locks of NFS
        self._descriptor = checked("open for writing", name, lambda: with_room(lambda: os.open(name, flags)))
        self.held = False
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
            self.held = True
        except BlockingIOError as error:
            self._close()
            cause = "another program, or this one, has it open for writing"
            advice = "wait until it is closed there"
            raise Error(code="io_error", operation="open", file=name, cause=cause, advice=advice) from error
        except OSError:
            pass

    def status(self) -> os.stat_result:
        """Of what was locked, whatever has its name now."""
        return os.fstat(self._descriptor)

    def is_of_history(self) -> bool:
        """Whether a history writes the file: it shares the flock with readers, and has a lock of its own."""
        return _core.is_of_history(self._descriptor)

    def need_same(self, descriptor: int, name: str) -> None:
        """Error unless the descriptor, of what has the name now, is of what was locked."""
        _need_same(os.fstat(descriptor), self._descriptor, name)

    def need_named(self) -> None:
        """Error unless what was locked still has its name."""
        need_named(self._descriptor, self._name)

    def release(self) -> None:
        """Forked children have the descriptor too, so closing ours would not do."""
        if self._descriptor >= 0 and os.getpid() == self._process:
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):  # nothing was written by it
                os.close(descriptor)

    def __del__(self) -> None:
        if self.__dict__.get("_descriptor") is not None:
            self.release()


def need_named(descriptor: int, name: str) -> None:
    """Error unless the name is still that of the file or folder of the descriptor: elements are written by name."""
    _need_same(checked("find", name, lambda: os.stat(name)), descriptor, name)  # noqa: PTH116 - cheaper


def _need_same(named: os.stat_result, descriptor: int, name: str) -> None:
    if not os.path.samestat(named, os.fstat(descriptor)):
        cause = "another file has taken its name while it was open for writing"
        raise Error(code="io_error", operation="write to", file=name, cause=cause, advice="open it again")


def need_no_writer(name: str) -> None:
    """Raises Error when a writer changes the file of this name in place, or a history writes it."""
    if os.path.exists(name) and os.access(name, os.R_OK):  # noqa: PTH110 - cheaper
        lock = WriterLock(name, fcntl.LOCK_SH)
        is_history = lock.is_of_history()
        lock.release()
        if is_history:
            cause = "a history, of this program or another one, writes it"
            raise Error(code="io_error", operation="replace", file=name, cause=cause, advice="close it first")


class NewFile:
    """A new file under its temporary name; `publish` gives it its own. How, os::NewFile of the core knows: its mode,
    owner and lists are those of the file it replaces, and errors that the kernel tells late come before the name."""

    def __init__(self, name: str) -> None:
        self._file = _core.NewFile(name)
        self.name = self._file.path
        self.temporary = self._file.temporary
        self._descriptor = self._file.descriptor
        try:
            need_no_writer(self.name)
        except BaseException:
            self.abandon()
            raise

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def publish(self, durable: bool) -> None:
        """Raises Error when it cannot; then the older file is untouched and nothing is left of this one."""
        need_no_writer(self.name)
        self._file.publish(durable)
        self._close()

    def abandon(self) -> None:
        """Does nothing after publish."""
        if self._descriptor >= 0:
            self._file.abandon()
            self._close()

    def _close(self) -> None:
        self._descriptor = -1
        self._file.close()


def reserve(descriptor: int, name: str, offset_bytes: int, bytes: int) -> None:
    """Gives the file space in that range, and at least that size: a full disk shows here, and not in the middle of a
    write. File systems that cannot reserve only get the size."""
    if bytes == 0:
        return
    number = _fallocate(descriptor, offset_bytes, bytes)
    if number in (errno.EOPNOTSUPP, errno.ENOSYS):
        end = offset_bytes + bytes
        if os.fstat(descriptor).st_size < end:
            checked("set the size of", name, lambda: os.ftruncate(descriptor, end))
    elif number:
        advice = f"{bytes} bytes are needed at offset {offset_bytes}"
        raise Error.of(OSError(number, os.strerror(number)), "reserve space for", name, advice)


def sync_folder(name: str) -> None:
    """Makes the names in a folder durable."""

    def sync() -> None:
        descriptor = with_room(lambda: os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    checked("fsync the folder", name, sync)


def sync_tree(root: str, *, top: bool = True) -> None:
    """Makes all files in a folder and in those inside durable, and all names, from the leaves on. Without `top` its own
    names are left to the caller."""

    def stop(error: OSError) -> None:
        raise Error.of(error, "list", root, "check the folder and its permissions") from error

    for folder, _, files in os.walk(root, topdown=False, onerror=stop):
        for file in files:
            sync_file(f"{folder}/{file}")
        if top or folder != root:
            sync_folder(folder)


def sync_file(name: str) -> None:
    def sync() -> None:
        descriptor = with_room(lambda: os.open(name, os.O_RDONLY | os.O_CLOEXEC))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    checked("fsync", name, sync)


@cache
def _fallocate_call() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "fallocate64", library.fallocate)


def _fallocate(descriptor: int, offset_bytes: int, bytes: int) -> int:
    """errno, or 0. Not os.posix_fallocate: where the system cannot, that one writes into every block instead."""
    call = _fallocate_call()
    while True:
        done = call(descriptor, 0, ctypes.c_int64(offset_bytes), ctypes.c_int64(bytes))
        number = ctypes.get_errno() if done != 0 else 0
        if number != errno.EINTR:
            return number


def checked(operation: str, name: str, action: Callable[[], Any], advice: str = _ADVICE) -> Any:
    """The action's result; what the system refuses as a penstock.Error."""
    try:
        return action()
    except OSError as error:
        raise Error.of(error, operation, name, advice) from error
