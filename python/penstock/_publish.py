"""A small file that appears whole or not at all: what is made in memory goes to a temporary name beside the target,
onto stable storage, and only then under its own name. An older file of that name stays until then. What a killed
process left under a temporary name, the next one that publishes in the same directory removes: a living one holds a
lock on its file."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from penstock._error import Error

_PREFIX, _SUFFIX = ".penstock-", ".part"
_UNLOCKED_S = 60.0  # no part is without its lock for longer, unless its process was killed


def check_target(path: Path, operation: str, advice: str) -> None:
    """Raises the Error that publish() would raise in the end, as far as can be told before: ask first where what is to
    be published takes long to make."""
    target = Path(os.path.realpath(path))
    cause, code = "", "permission_denied"
    if target.is_dir():
        cause = "it is a directory, not a regular file"
    elif target.exists() and not target.is_file():
        cause = "it is not a regular file"
    elif not target.parent.is_dir():
        cause, code = "there is no such directory", "not_found"
    elif not os.access(target.parent, os.W_OK | os.X_OK):
        cause = "you may not write there"
    if cause:
        raise Error(code=code, operation=operation, file=str(path), cause=cause, advice=advice)


def publish(path: Path, content: bytes, operation: str, advice: str) -> None:
    """Raises Error when it cannot be written; then nothing is left of it. A symbolic link stays one."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise Error(operation=operation, file=str(path), cause="not a regular file", advice=advice)
    _remove_dead(target.parent)
    part = target.with_name(f"{_PREFIX}{os.getpid()}{_SUFFIX}")
    try:
        with part.open("xb") as stream:
            with suppress(OSError):  # a file system without locks: then nobody removes what a killed process left
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # a full disk may show only here
            part.replace(target)
    except OSError as error:
        raise Error.of(error, operation, str(path), advice) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _remove_dead(folder: Path) -> None:
    """The parts of this user's processes that ended without removing them: old, and with a lock that nobody holds."""
    for part in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):  # gone meanwhile, held by a living process, or not ours to remove
            facts = part.lstat()
            ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
            if not ours or time.time() - facts.st_mtime < _UNLOCKED_S:
                continue
            with part.open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
