"""A file or a folder that appears under its name whole or never, the reserving of space in it, and the lock of those
who change one in place.

It is built under a temporary name in the same folder and renamed; a symbolic link stays, and what it leads to is made
or replaced. What must stay true: until `publish` returns, an older file or folder of that name is untouched; after
`abandon`, or an error, nothing is left behind. What a killed process leaves under a temporary name, the next writer of
the same name removes: a living writer holds a lock on its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from penstock import _core
from penstock._error import Error

_ANYBODY, _OWNER_ONLY = 0o777, 0o700  # of folders; the first less the umask
_ATTEMPTS = 1000  # names tried before giving up
_NAME_PART = 100  # characters of the target's name in a temporary's: together they must fit NAME_MAX
_AT_FDCWD, _EXCHANGE = -100, 2  # of renameat2(2)


def temporary_name(name: str) -> str:
    """A name beside `name` that nobody uses."""
    path = Path(name)
    return str(path.with_name(f".{path.name[:_NAME_PART]}.penstock-{os.getpid()}-{secrets.token_hex(6)}"))


def is_temporary(name: str) -> bool:
    """Whether a name (without its folder) is one of those that temporary_name makes."""
    return name.startswith(".") and ".penstock-" in name


class WriterLock:
    """Held by who changes a file or a folder in place; another one is refused, in this process too, and so is who would
    put a new one in its place. An flock: advisory, and given up with the process. File systems without locks have none,
    as with HDF5."""

    def __init__(self, name: str, kind: int = fcntl.LOCK_EX) -> None:
        self._name, self._process = name, os.getpid()
        flags = os.O_RDONLY if Path(name).is_dir() or kind == fcntl.LOCK_SH else os.O_RDWR  # NFS locks what is writable
        self._descriptor = _checked("open for writing", name, lambda: os.open(name, flags | os.O_CLOEXEC))
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
    _need_same(_checked("look at", name, lambda: os.stat(name)), descriptor, name)  # noqa: PTH116 - cheaper


def _need_same(named: os.stat_result, descriptor: int, name: str) -> None:
    if not os.path.samestat(named, os.fstat(descriptor)):
        cause = "another file has taken its name while it was open for writing"
        raise Error(code="io_error", operation="write to", file=name, cause=cause, advice="open it again")


def need_no_writer(name: str) -> None:
    """Error when somebody changes what has this name in place."""
    if os.path.exists(name) and os.access(name, os.R_OK):  # noqa: PTH110 - cheaper
        WriterLock(name, fcntl.LOCK_SH).release()


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


class NewFolder:
    """A new folder under its temporary name; `publish` gives it its own, in place of an older file or folder. A folder
    is replaced, with all that is in it, only if it is empty or holds one of the files `marks`: any other is not one of
    ours, and is refused."""

    def __init__(self, name: str, marks: Sequence[str]) -> None:
        self.name, self.temporary, self._descriptor = _core.target_of(name), "", -1
        self._marks = marks
        self._need_replaceable()
        need_no_writer(self.name)
        self._process = os.getpid()
        self._replaces = _mode(self.name) is not None
        _checked("create", name, self._make)

    def publish(self, durable: bool) -> None:
        """`durable` concerns the names; what is in the folder was made durable by who wrote it."""
        self._need_replaceable()
        need_no_writer(self.name)
        self._take_rights()
        if durable:
            _checked("fsync the folder", self.name, lambda: os.fsync(self._descriptor))
        _checked("rename to", self.name, lambda: _replace_folder(self.temporary, self.name))
        self._close()
        if durable:
            sync_folder(str(Path(self.name).parent))

    def abandon(self) -> None:
        """Does nothing after publish."""
        if self._descriptor >= 0:
            if os.getpid() == self._process:
                shutil.rmtree(self.temporary, ignore_errors=True)
            self._close()

    def __del__(self) -> None:
        """Of one that an interrupt kept from its user."""
        if self.__dict__.get("_descriptor") is not None:
            self.abandon()

    def _make(self) -> None:
        """A locked folder beside the name. Names are tried as the core does for files, so that the next writer of the
        name meets what a killed one left."""
        path = Path(self.name)
        parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for attempt in range(_ATTEMPTS):
                self.temporary = str(path.with_name(_core.temporary_name(path.name, attempt, parent)))
                if self._make_as(self.temporary, _OWNER_ONLY if self._replaces else _ANYBODY):
                    return
        finally:
            os.close(parent)
        raise FileExistsError(errno.EEXIST, "all temporary names are taken", self.name)

    def _make_as(self, name: str, mode: int) -> bool:
        """False: the name is another writer's."""
        if os.path.lexists(name) and not _remove_dead_folder(name):
            return False
        try:
            Path(name).mkdir(mode)
            self._descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileExistsError:
            return False
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).rmdir()
            raise
        if _lock_folder(self._descriptor, name) is not False:
            return True
        self._close()
        return False

    def _close(self) -> None:
        """The lock goes with it, wherever an interrupt comes: it would shut this process out of the folder."""
        descriptor, self._descriptor = self._descriptor, -1
        try:
            if os.getpid() == self._process:  # a forked child has the lock too
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def _need_replaceable(self) -> None:
        mode = _mode(self.name)
        if mode is None:
            return
        if not os.access(self.name, os.W_OK, effective_ids=True):
            cause = "you may not write into what has this name"
            advice = "remove it, or give another name"
            raise Error(code="permission_denied", operation="replace", file=self.name, cause=cause, advice=advice)
        if not stat.S_ISDIR(mode):
            return
        there = _checked("look into", self.name, lambda: os.listdir(self.name))  # noqa: PTH208 - names are enough
        if there and not any(mark in there for mark in self._marks):
            none = " or ".join(self._marks)
            cause = f"a folder of this name has other things in it ({sorted(there)[0]!r}), and no {none}"
            raise Error(operation="create", file=self.name, cause=cause, advice="remove it, or give another name")

    def _take_rights(self) -> None:
        """Those of the folder that is replaced; of a file, that its readers may enter."""
        try:
            older = os.open(self.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Error.of(error, "look at", self.name, "check the folder and its permissions") from error
        try:
            before, kind = os.fstat(self._descriptor).st_mode, os.fstat(older).st_mode
            if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
                return
            _core.carry_rights(older, self._descriptor, self.name)
            mode = os.fstat(self._descriptor).st_mode
            if stat.S_ISREG(kind):
                mode |= (mode & 0o444) >> 2
            if not self._replaces:  # what came since it was made takes rights away only
                mode &= before
            _checked("create", self.name, lambda: os.fchmod(self._descriptor, stat.S_IMODE(mode)))
        finally:
            os.close(older)


def _lock_folder(descriptor: int, name: str) -> bool | None:
    """True: it is ours, and has the name. False: another process holds it, or removed it. None: locks are not known."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(name))
    except FileNotFoundError:
        return False


def _remove_dead_folder(name: str) -> bool:
    """Whether the folder was left by a killed writer of ours, and is gone now."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid() or not _lock_folder(descriptor, name):
            return False
        shutil.rmtree(name, ignore_errors=True)
        return not os.path.lexists(name)
    finally:
        os.close(descriptor)


def reserve(descriptor: int, name: str, offset_bytes: int, bytes: int) -> None:
    """Gives the file space in that range, and at least that size: a full disk shows here, and not in the middle of a
    write. File systems that cannot reserve only get the size."""
    if bytes == 0:
        return
    number = _fallocate(descriptor, offset_bytes, bytes)
    if number in (errno.EOPNOTSUPP, errno.ENOSYS):
        end = offset_bytes + bytes
        if os.fstat(descriptor).st_size < end:
            _checked("set the size of", name, lambda: os.ftruncate(descriptor, end))
    elif number:
        advice = f"{bytes} bytes are needed at offset {offset_bytes}"
        raise Error.of(OSError(number, os.strerror(number)), "reserve space for", name, advice)


def sync_folder(name: str) -> None:
    """Makes the names in a folder durable."""

    def sync() -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    _checked("fsync the folder", name, sync)


def sync_tree(root: str, *, top: bool = True) -> None:
    """Makes all files in a folder and in those inside durable, and all names, from the leaves on. Without `top` its own
    names are left to the caller."""

    def stop(error: OSError) -> None:
        raise Error.of(error, "look into", root, "check the folder and its permissions") from error

    for folder, _, files in os.walk(root, topdown=False, onerror=stop):
        for file in files:
            sync_file(f"{folder}/{file}")
        if top or folder != root:
            sync_folder(folder)


def sync_file(name: str) -> None:
    def sync() -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    _checked("fsync", name, sync)


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


def _mode(name: str) -> int | None:
    """Of what has this name; None: nothing has."""
    try:
        return os.stat(name).st_mode  # noqa: PTH116 - a tenth of the time of a Path's
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Error.of(error, "create", name, "check the name") from error


def _replace_folder(temporary: str, name: str) -> None:
    """An older folder is exchanged in one step where the system can; else there is a moment without either. The older
    one, once it has the temporary name, is removed as a dead one by the next writer if it is not here."""
    older, target = Path(temporary), Path(name)
    if not os.path.lexists(name):
        older.rename(target)
        return
    if not _exchange(temporary, name):
        older = Path(temporary_name(name))
        try:
            target.rename(older)
            Path(temporary).rename(target)
        except BaseException:  # interrupts too
            if os.path.lexists(older) and not os.path.lexists(name):
                older.rename(target)
            raise
    if older.is_dir() and not older.is_symlink():
        shutil.rmtree(older, ignore_errors=True)
    else:
        older.unlink(missing_ok=True)


def _exchange(one: str, other: str) -> bool:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(number, os.strerror(number), other)


def _checked(operation: str, name: str, action: Callable[[], Any]) -> Any:
    """The action's result; what the system refuses as a penstock.Error."""
    try:
        return action()
    except OSError as error:
        raise Error.of(error, operation, name, "check the folder, its permissions and its space") from error
