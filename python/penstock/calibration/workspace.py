"""The files that trials move: made under a directory of the user's choice, stamped, and always removed.

Removed on every exit that Python sees: the end, an error, Ctrl-C, SIGTERM and SIGHUP. What a killed run left, the next
one in the same directory removes: a living run holds a lock on a file of its folder. The space is checked before the
first byte is written.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import Context, Error, _core
from penstock._api import File, Progress
from penstock._files import windows
from penstock.calibration.media import Media

if TYPE_CHECKING:
    from typing_extensions import Self

SPARE_BYTES = 1 << 30
MARGIN = 1.2
FILE_SEED = 20  # of files that are read
OTHER_SEED = 21  # of files that are written over, until they are: no byte of one passes for a byte of the other
DROP_TRIES = LOAD_TRIES = 4
READ_BYTES = 8 << 20  # of one request that brings a file into the page cache: memory that stays in the cores' caches
CROWDED = "stays in the page cache"
PREFIX = "penstock-bench-"
LOCK = "penstock-bench.lock"
Named = tuple[str, str]  # the command, and its option that names the directory: for messages
NAMED: Named = ("bench", "--dir")
UNBORN = ".new-"  # before the name of a folder that has no lock yet
UNBORN_S = 60.0  # no folder is without one for longer, unless its run was killed


class Scratch:
    """A folder under a directory, with a lock while this process lives: `directory`."""

    def __init__(self, parent: Path, named: Named = NAMED) -> None:
        self._parent = parent
        self._named = named

    def __enter__(self) -> Self:
        remove_dead(self._parent)
        try:
            self._make()
        except OSError as error:
            command, option = self._named
            advice = f"name a directory you can write to with {option}"
            raise Error.of(error, command, str(self._parent), advice) from None
        return self

    def _make(self) -> None:
        made = Path(tempfile.mkdtemp(prefix=f"{UNBORN}{PREFIX}", dir=self._parent))
        try:
            self._lock = _locked(made / LOCK)
            self.directory = made.rename(made.with_name(made.name.removeprefix(UNBORN)))  # from here on it has a lock
        except BaseException:  # a full disk, or Ctrl-C
            shutil.rmtree(made, ignore_errors=True)
            raise

    def __exit__(self, *_: object) -> None:
        _remove(self.directory)
        os.close(self._lock)


class Workspace(Scratch):
    """A scratch folder with one stamped file to read (`source`), one of the same size to overwrite (`target`), and
    room for a third."""

    def __init__(
        self, context: Context, directory: Path, file_bytes: int, files: int = 3, named: Named = NAMED
    ) -> None:
        super().__init__(directory, named)
        self.context = context
        self.file_bytes = file_bytes
        self._needed = int(files * file_bytes * MARGIN) + SPARE_BYTES

    def __enter__(self) -> Self:
        remove_dead(self._parent)
        check_space(self._parent, self._needed, self._named)
        super().__enter__()
        self.media = Media(self.directory)
        return self

    @property
    def source(self) -> Path:
        return self.directory / "source.bin"

    @property
    def target(self) -> Path:
        return self.directory / "target.bin"

    def make(self, path: Path, progress: Progress | None = None, seed: int = FILE_SEED) -> Path:
        """Writes a stamped file of the workspace's size, on stable storage when this returns."""

        def stamp(memory: _core.Buffer, offset: int) -> None:
            self.context.stamp(memory, offset, seed)

        with self.context.create(path, self.file_bytes, durable=True) as file:
            job = windows.LongMove(
                self.context,
                file,
                "write",
                0,
                self.file_bytes,
                {"path": "buffered"},
                prepare=stamp,
                progress=progress,
            )
            windows.run(job)
        return path


def _locked(path: Path) -> int:
    """A descriptor that holds the lock until it is closed, also by the end of the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # a file system without locks: the folder of a killed run stays there
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def remove_dead(parent: Path) -> list[str]:
    """Removes the folders of runs that were killed, and returns their names. A folder whose lock is held is a living
    run's, one without a lock file is none of ours, and what belongs to another user is that user's."""
    removed = []
    for folder in sorted([*parent.glob(f"{PREFIX}*"), *parent.glob(f"{UNBORN}{PREFIX}*")]):
        with suppress(OSError):  # gone meanwhile, or not to be had: then it is not ours to remove
            facts = folder.lstat()
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
                continue
            unborn = folder.name.startswith(UNBORN)
            if _is_old(facts) if unborn else _is_dead(folder):
                _remove(folder)
                removed.append(folder.name)
    return removed


def _remove(folder: Path) -> None:
    """The lock goes last: whoever is stopped in the middle leaves a folder that the next run knows for one of ours."""
    with suppress(OSError):
        for one in folder.iterdir():
            if one.is_dir() and not one.is_symlink():
                shutil.rmtree(one, ignore_errors=True)
            elif one.name != LOCK:
                with suppress(OSError):
                    one.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _is_old(facts: os.stat_result) -> bool:
    return time.time() - facts.st_mtime > UNBORN_S


def _is_dead(folder: Path) -> bool:
    """Whether it has a lock file that no process holds. OSError: it has none."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)
    return True


def check_space(directory: Path, needed: int, named: Named = NAMED) -> None:
    """Raises Error unless `needed` bytes are free under the directory."""
    command, option = named
    if not directory.is_dir():
        raise Error(
            code="not_found",
            operation=command,
            file=str(directory),
            cause="it is not a directory" if directory.exists() else "there is no such directory",
            advice=f"name an existing one with {option}",
        )
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise Error(
            code="no_space",
            operation=command,
            file=str(directory),
            cause=f"{free} bytes are free, {needed} are needed (1.2 times the files and 1 GiB to spare)",
            advice=f"free some space, choose another {option} or a smaller --file-bytes",
        )


class NotPossible(Exception):
    """A trial that this file system or machine cannot do, with the reason. It is listed as missing, never faked."""


def resident(file: File, bytes: int, offset_bytes: int = 0) -> float:
    """The share of these bytes that the page cache holds, 0 to 1. Raises NotPossible where nothing tells."""
    found = file.residency(offset_bytes, bytes)
    if found["resident_fraction"] is None:
        raise NotPossible(f"nothing tells what the page cache holds: {found.get('cause', 'there are no bytes')}")
    return float(found["resident_fraction"])


def make_resident(file: File, bytes: int) -> float:
    """Brings the first bytes into the page cache and proves it. Returns the resident fraction. What other programs push
    out again at once is brought in once more, a few times."""
    found = resident(file, bytes)
    for _ in range(LOAD_TRIES):
        if found < 0.999:
            _read_by_host(file, bytes)
            found = resident(file, bytes)
        if found >= 0.99:
            return found
    raise NotPossible(f"only {found:.0%} of the file {CROWDED}")


def make_hot(file: File, bytes: int) -> float:
    """As make_resident, and reads the bytes once more: at the second access Linux moves each page to its active list.

    That is paid once in a page's life, by whoever comes second; it is a probe of its own, not a part of `hot`.
    """
    found = make_resident(file, bytes)
    _read_by_host(file, bytes)
    return found


def _read_by_host(file: File, bytes: int) -> None:
    """Reads the first bytes through the page cache, into host memory that it drops. Raises Error."""
    memory = memoryview(bytearray(min(bytes, READ_BYTES)))
    for offset in range(0, bytes, READ_BYTES):
        wanted = min(READ_BYTES, bytes - offset)
        moved = file.read(memory[:wanted], offset, path="buffered", workers=2)
        if moved.bytes < wanted:
            raise Error(
                code="end_of_file",
                operation="read",
                file=file.name,
                offset_bytes=offset,
                length_bytes=wanted,
                cause="the file became shorter while it was measured",
                advice="let no other program write to it",
            )


def make_cold(file: File, bytes: int) -> float:
    """Drops the file from the page cache and proves it. Returns the resident fraction."""
    for _ in range(DROP_TRIES):
        file.drop_cache()
        found = resident(file, bytes)
        if found <= 0.01:
            return found
        time.sleep(0.02)  # pages on their way into the cache's lists are skipped; they arrive at once
    raise NotPossible(f"{found:.0%} of the file stays in memory: {file.facts['file_system']} cannot be made cold")
