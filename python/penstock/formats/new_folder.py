"""A folder that appears under its name whole or never, as new_file has it for files.

What must stay true besides: with all that is in it, nothing is removed but what this writer made, what it replaced, and
what a killed writer of ours left. Others may rename what lies beside the new folder, so these are held open from the
moment they were looked at, and emptied through their descriptors, whatever has their names then.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from penstock import _core
from penstock._error import Error
from penstock._files.open_files import with_room
from penstock.formats.new_file import checked, folder_of, is_temporary, need_no_writer, temporary_name

_ANYBODY, _OWNER_ONLY = 0o777, 0o700  # of folders; the first less the umask
_ATTEMPTS = 1000  # names tried before giving up
_AT_FDCWD, _EXCHANGE = -100, 2  # of renameat2(2)
_READ_ONLY = "remount the file system read-write, or name a folder on another one"
_AS_IT_IS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFolder:
    """A new folder under its temporary name; `publish` gives it its own, in place of an older file or folder. A folder
    is replaced, with all that is in it, only if it is empty or holds one of the files `marks`: any other is not one of
    ours, and is refused."""

    def __init__(self, name: str, marks: Sequence[str]) -> None:
        self.name, self.temporary = _core.target_of(name), ""
        self._descriptor = self._older = -1
        self._aside = ""  # where the older one is once the new one has its name, if not under the temporary one
        self._marks, self._process = marks, os.getpid()
        try:
            self._look()
            need_no_writer(self.name)
            self._replaces = self._older >= 0
            checked("create", name, self._make)
        except BaseException:  # the error may be kept for long, and this object with it
            self.abandon()
            raise

    def need_named(self) -> None:
        """Error unless the folder still has its temporary name: what is put into it is put there by name."""
        if not _has_name(self._descriptor, self.temporary):
            cause = f"its temporary folder, {self.temporary}, was moved or replaced"
            advice = "write it again, in a folder in which no other program renames"
            raise Error(code="io_error", operation="create", file=self.name, cause=cause, advice=advice)

    def publish(self, durable: bool) -> None:
        """`durable` concerns the names; what is in the folder was made durable by who wrote it."""
        self.need_named()
        self._look()
        need_no_writer(self.name)
        self._take_rights()
        if not durable:
            self._appear()
            return
        checked("fsync the folder", self.name, lambda: os.fsync(self._descriptor))
        with _opened(folder_of(self.name), self.name) as folder:  # what cannot be synced is known before the name
            self._appear()
            advice = "the store has its name, but may lose it with the power"
            checked("fsync the directory of", self.name, lambda: os.fsync(folder), advice)

    def _appear(self) -> None:
        checked("rename to", self.name, self._give_name)
        self._unlock(self._descriptor)  # removing the older one may take long, and others may write this one
        self.abandon()  # what is left under other names is the older one

    def abandon(self) -> None:
        """Does nothing after publish. Where an interrupt ends it, it may be called again, and goes on."""
        if os.getpid() == self._process:
            self._clear()
        self._close()

    def __del__(self) -> None:
        """Of one that an interrupt kept from its user."""
        if self.__dict__.get("_process") is not None:
            self.abandon()

    def _clear(self) -> None:
        if self._descriptor >= 0 and _has_name(self._descriptor, self.temporary):
            _remove(self._descriptor, self.temporary, self._marks)
        for name in (self.temporary, self._aside):
            if self._older >= 0 and name and _has_name(self._older, name):
                _remove_alone(self._older, name, self._marks)

    def _make(self) -> None:
        """A locked folder beside the name. Names are tried as the core does for files, so that the next writer of the
        name meets what a killed one left."""
        folder, base = os.path.split(self.name)
        parent = with_room(lambda: os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            for attempt in range(_ATTEMPTS):
                name = os.path.join(folder, _core.temporary_name(base, attempt, parent))
                if self._make_as(name, _OWNER_ONLY if self._replaces else _ANYBODY):
                    return
        finally:
            os.close(parent)
        raise FileExistsError(errno.EEXIST, "all temporary names are taken", self.name)

    def _make_as(self, name: str, mode: int) -> bool:
        """False: the name is another writer's."""
        if os.path.lexists(name) and not _remove_dead(name, self._marks):
            return False
        try:
            os.mkdir(name, mode)
            self._descriptor = with_room(lambda: os.open(name, _FOLDER))
        except FileExistsError:
            return False
        except FileNotFoundError:  # another writer took it for a dead one's before it was locked
            if not os.path.isdir(folder_of(name)):
                raise
            return False
        except BaseException:
            with suppress(OSError):
                os.rmdir(name)
            raise
        self.temporary = name
        if _lock(self._descriptor, name) is not False:
            return True
        descriptor, self._descriptor, self.temporary = self._descriptor, -1, ""
        os.close(descriptor)
        return False

    def _close(self) -> None:
        """The lock goes with it, wherever an interrupt comes: it would shut this process out of the folder."""
        descriptor, self._descriptor = self._descriptor, -1
        older, self._older = self._older, -1
        try:
            self._unlock(descriptor)
        finally:
            for held in (descriptor, older):
                if held >= 0:
                    os.close(held)

    def _unlock(self, descriptor: int) -> None:
        if descriptor >= 0 and os.getpid() == self._process:  # a forked child has the lock too
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _look(self) -> None:
        """Holds what has the name now. Raises Error where that is not to be replaced."""
        held, self._older = self._older, -1
        if held >= 0:
            os.close(held)
        try:
            self._older = with_room(lambda: os.open(self.name, _AS_IT_IS))
        except FileNotFoundError:
            return
        except OSError as error:
            raise Error.of(error, "replace", self.name, "check the folder and its permissions") from error
        _need_replaceable(self._older, self.name)
        if not stat.S_ISDIR(os.fstat(self._older).st_mode):
            return
        there = checked("list", self.name, lambda: os.listdir(_inside(self._older)))
        if there and not any(mark in there for mark in self._marks):
            none = " or ".join(self._marks)
            cause = f"a folder of this name has other things in it ({sorted(there)[0]!r}), and no {none}"
            raise Error(operation="create", file=self.name, cause=cause, advice="remove it, or give another name")

    def _take_rights(self) -> None:
        """Those of the folder that is replaced; of a file, that its readers may enter."""
        if self._older < 0:
            return
        before = os.fstat(self._descriptor).st_mode
        _core.carry_rights(self._older, self._descriptor, self.name)
        mode = os.fstat(self._descriptor).st_mode
        if stat.S_ISREG(os.fstat(self._older).st_mode):
            mode |= (mode & 0o444) >> 2
        if not self._replaces:  # what came since it was made takes rights away only
            mode &= before
        checked("create", self.name, lambda: os.fchmod(self._descriptor, stat.S_IMODE(mode)))

    def _give_name(self) -> None:
        """An older one is exchanged in one step where the system can; else there is a moment without either. Once it
        has the temporary name, the next writer removes it as a dead one if it is not removed here."""
        if not os.path.lexists(self.name):
            os.rename(self.temporary, self.name)
            return
        if self._older < 0 or not _has_name(self._older, self.name):  # it came, or changed, since it was looked at
            self._look()
            self._take_rights()
        if _exchange(self.temporary, self.name):
            return
        aside = temporary_name(self.name)
        try:
            os.rename(self.name, aside)
            os.rename(self.temporary, self.name)
        except BaseException:  # interrupts too
            if os.path.lexists(aside) and not os.path.lexists(self.name):
                os.rename(aside, self.name)
            raise
        self._aside = aside


@contextmanager
def _opened(folder: str, name: str) -> Iterator[int]:
    descriptor = checked(
        "open the directory of", name, lambda: with_room(lambda: os.open(folder, _FOLDER & ~os.O_NOFOLLOW))
    )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _need_replaceable(there: int, name: str) -> None:
    """As os::need_replaceable of the core, and of folders too: who may not write into what is there does not replace
    it, nor, where others may put names and not take them away, what belongs to a stranger."""
    facts, folder = os.fstat(there), checked("replace", name, lambda: os.stat(folder_of(name)))
    if not (stat.S_ISDIR(facts.st_mode) or stat.S_ISREG(facts.st_mode)):
        cause = "something that is neither a file nor a folder has this name"
        advice = "give another name"
        raise Error(code="not_a_regular_file", operation="create", file=name, cause=cause, advice=advice)
    if os.statvfs(_inside(there)).f_flag & os.ST_RDONLY:
        raise Error.of(OSError(errno.EROFS, os.strerror(errno.EROFS)), "create", name, _READ_ONLY)
    cause = ""
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if shared and facts.st_uid not in (os.geteuid(), folder.st_uid):
        cause = "what has this name belongs to another user, and its folder is sticky"
    elif not os.access(_inside(there), os.W_OK, effective_ids=True):
        cause = "you may not write into what has this name"
    if cause:
        advice = "remove it, or give another name"
        raise Error(code="permission_denied", operation="replace", file=name, cause=cause, advice=advice)


def _inside(descriptor: int) -> str:
    """A path that leads to what is held, whatever its name is."""
    return f"/proc/self/fd/{descriptor}"


def _has_name(held: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(held), os.lstat(name))
    except OSError:
        return False


def _remove(held: int, name: str, marks: Sequence[str]) -> None:
    """A file, or a folder with all that is in it, as far as the system lets it. The marks go last: what a killed
    process leaves is known by them."""
    if not stat.S_ISDIR(os.fstat(held).st_mode):
        with suppress(FileNotFoundError):
            os.unlink(name)
        return
    with suppress(OSError):
        for one in sorted(os.listdir(_inside(held)), key=lambda one: one in marks):
            _remove_one(f"{_inside(held)}/{one}")
    with suppress(OSError):
        os.rmdir(name)


def _remove_alone(held: int, name: str, marks: Sequence[str]) -> None:
    """Locked meanwhile: else the next writer may take it for a dead one's, and have its own folder of that name removed
    here."""
    if not stat.S_ISDIR(os.fstat(held).st_mode):
        _remove(held, name, marks)
        return
    try:
        lock = with_room(lambda: os.open(_inside(held), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:  # who may not look into it cannot empty it
        return
    try:
        if _lock(lock, name) is not False:
            _remove(held, name, marks)
    finally:
        os.close(lock)


def _remove_one(path: str) -> None:
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _lock(descriptor: int, name: str) -> bool | None:
    """True: it is ours, and has the name. False: another process holds it, or removed it. None: locks are not known."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return _has_name(descriptor, name)


def _remove_dead(name: str, marks: Sequence[str]) -> bool:
    """Whether the folder was left by a killed writer of ours, and is gone now. A user that may rename there
    may have given any folder that name; one of ours has a mark in it, or nothing that is finished."""
    try:
        descriptor = with_room(lambda: os.open(name, _FOLDER))
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid() or not _lock(descriptor, name):
            return False
        there = os.listdir(descriptor)
        if not all(map(is_temporary, there)) and not any(mark in there for mark in marks):
            return False
        _remove(descriptor, name, marks)
        return not os.path.lexists(name)
    finally:
        os.close(descriptor)


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
