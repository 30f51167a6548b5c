"""Applies ordered changes to a file, and repairs a file in which a power failure left some of them half done.

A process that is killed leaves a prefix of the changes, each whole: one write inside a page is not divided, and what
crosses a page is written past the page cache, as one request that the kernel finishes. Power failure may keep any part
of what was not yet on stable storage; so a durable change first writes what it is going to do to a journal beside the
file. What must stay true: the journal is complete and durable before the first change, and goes only when the last
one is; repairing twice does no harm; a journal is only followed where the file still is as it says.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from penstock._descriptor import read_at
from penstock._error import Error
from penstock.formats.faults import unsupported
from penstock.formats.hdf5_order import Change
from penstock.formats.hdf5_overlay import PAGE_BYTES
from penstock.formats.new_file import sync_folder

kUnharmed = "the file has its old datasets and steps"
_MAGIC = "penstock journal 1"
_SECTOR_BYTES = 512  # storage keeps or loses these whole
_NAME_PART = 200  # characters of the file's name: with the rest they must fit NAME_MAX


def journal_path(name: str) -> Path:
    path = Path(name).absolute()
    return path.with_name(f".{path.name[:_NAME_PART]}.penstock-journal")


def write_journal(name: str, descriptor: int, changes: Sequence[Change]) -> None:
    """Durable when it returns."""
    body = json.dumps(
        {
            "inode": os.fstat(descriptor).st_ino,
            "changes": [[one.offset, one.old.hex(), one.new.hex()] for one in changes],
        }
    )
    path = journal_path(name)
    text = f"{_MAGIC}\n{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n"
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(str(path.parent))


def drop_journal(name: str) -> None:
    journal_path(name).unlink(missing_ok=True)


def repair(name: str, descriptor: int) -> bool:
    """Finishes what a journal says was begun. True when there was something to finish. Nobody else may be writing."""
    changes = _read_journal(name, descriptor)
    if changes is None:
        return False
    if all(read_at(descriptor, len(one.new), one.offset) == one.new for one in changes):
        drop_journal(name)
        return False
    for one in changes:
        _check_fits(name, descriptor, one)
    apply(name, descriptor, changes)
    os.fdatasync(descriptor)
    drop_journal(name)
    return True


def _read_journal(name: str, descriptor: int) -> list[Change] | None:
    """None when there is none to follow: one that is incomplete was not yet in force, one of another file never was."""
    path = journal_path(name)
    try:
        magic, digest, body = path.read_text().split("\n")[:3]
        if magic != _MAGIC or hashlib.sha256(body.encode()).hexdigest() != digest:
            raise ValueError(magic)
        found = json.loads(body)
    except FileNotFoundError:
        return None
    except ValueError:
        drop_journal(name)
        return None
    if found["inode"] != os.fstat(descriptor).st_ino:
        drop_journal(name)
        return None
    return [Change((0, 0), "", at, bytes.fromhex(old), bytes.fromhex(new)) for at, old, new in found["changes"]]


def _check_fits(name: str, descriptor: int, change: Change) -> None:
    """Each sector is as before the change or as after it; else somebody else has written there since."""
    found = read_at(descriptor, len(change.new), change.offset)
    begin = 0
    while begin < len(change.new):
        end = begin + _SECTOR_BYTES - (change.offset + begin) % _SECTOR_BYTES
        if found[begin:end] not in (change.old[begin:end], change.new[begin:end]):
            cause = f"an unfinished change is noted in {journal_path(name)}, but the file was changed by others since"
            raise unsupported(name, cause, "if the file reads well, remove that journal")
        begin = end


def check_applicable(name: str, changes: Sequence[Change]) -> None:
    """Raises Error, before anything is touched, when a change cannot be made in one step here."""
    if all(one.in_one_page for one in changes):
        return
    try:
        os.close(_open_direct(name))
    except OSError as error:
        cause = "a structure of it crosses a page, and this file system has no direct I/O to change that in one step"
        raise unsupported(name, cause, "append with h5py, or on another file system") from error


def apply(name: str, descriptor: int, changes: Sequence[Change]) -> None:
    """In order; a process that dies in between leaves the file with the first few of them."""
    try:
        for one in changes:
            if one.in_one_page:
                _need(os.pwrite(descriptor, one.new, one.offset), len(one.new))  # noqa: TID251 - one request
            else:
                _write_direct(name, descriptor, one)
    except OSError as error:
        raise Error.of(error, "change the metadata of", name, kUnharmed) from error


def _write_direct(name: str, descriptor: int, change: Change) -> None:
    """All pages of the change in one request."""
    first = change.offset // PAGE_BYTES * PAGE_BYTES
    last = -(-(change.offset + len(change.new)) // PAGE_BYTES) * PAGE_BYTES
    inside = change.offset - first
    with mmap.mmap(-1, last - first) as pages:  # aligned, as direct I/O wants it
        found = read_at(descriptor, last - first, first)
        pages[: len(found)] = found
        pages[inside : inside + len(change.new)] = change.new
        direct = _open_direct(name)
        try:
            _need(os.pwritev(direct, [pages], first), last - first)
        finally:
            os.close(direct)


def _open_direct(name: str) -> int:
    return os.open(name, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)


def _need(written: int, wanted: int) -> None:
    if written != wanted:
        raise OSError(5, f"{written} of {wanted} bytes were written")
