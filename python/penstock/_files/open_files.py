"""Files that transfers need, open no longer than the descriptors of the process allow.

A dataset may lie in ten thousand files (Zarr), a process may have 1,024 descriptors, and the rest of the program needs
some of them. So files are leased: as many of a list as there is room for, at least one, for one transfer to begin. All
datasets of the process share the room, which is what the system allows and the rest of the process leaves, less a
reserve. What must stay true: a file that a transfer works on stays open; a lease never waits, so that no thread waits
with files in hand; what a file that was written says at its end reaches the owner of the file.
"""

from __future__ import annotations

import errno
import itertools
import os
import resource
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import TypeVar

from penstock import _core
from penstock._error import Error

T = TypeVar("T")

KEPT_OPEN = 64  # files that nothing needs now, of the whole process
PORTION_FILES = 256  # of one lease
_UNCOUNTED_FILES = 16  # up to so many, the descriptors of the process are not counted, where it may have
_PLENTY_DESCRIPTORS = 256
_MOST_DESCRIPTORS = 1 << 14  # where it may have so many, files take an eighth of that at most, and nothing is counted
_DESCRIPTORS_A_FILE = 2  # through the page cache and past it
_RESERVE_DESCRIPTORS = 16  # for the rest of the program, at least; a quarter of what is free is left to it
_COUNTED_FOR_S = 0.25
_TRY_AGAIN_S = 0.05
_ROOM_S = 1.0  # of looking for a descriptor
_TRIES = 1000  # a millisecond apart, before it is believed that there is no descriptor


class Use:
    """A transfer, as the files see it that it needs."""

    def __init__(self, transfer: _core.Transfer) -> None:
        self._transfer: _core.Transfer | None = transfer

    @property
    def transfer(self) -> _core.Transfer | None:
        """None after over()."""
        return self._transfer

    @property
    def is_busy(self) -> bool:
        transfer = self._transfer
        return transfer is not None and not transfer.done

    def over(self) -> None:
        """The transfer has ended: it, and the memory it holds, may go."""
        self._transfer = None


class _Open:
    """An open file of one owner; `file` is None when it was closed to make room."""

    __slots__ = ("__weakref__", "_late", "file", "number", "pins", "uses", "version")

    def __init__(self, file: _core.File, version: Hashable, late: list[BaseException] | None) -> None:
        self.file: _core.File | None = file
        self.version = version
        self.number = -1  # in the order of the room, once it is there
        self.pins = 1  # leases that have not begun their transfer
        self.uses: list[Use] = []
        self._late = late  # of a file that is written: where its owner looks for what its end told

    @property
    def busy(self) -> Use | None:
        for use in self.uses:
            if use.is_busy:
                return use
        return None

    def close(self, file: _core.File) -> None:
        """`file` is what was taken out of this. A file that is only read is closed when its last reference goes."""
        if self._late is None:
            return
        try:
            file.close()
        except Error as error:
            self._late.append(error)


_Closing = tuple[_Open, _core.File]


def _unpin(entries: Sequence[_Open | None]) -> None:
    for entry in entries:
        if entry is not None:
            entry.pins -= 1


class _Room:
    """The descriptors of the whole process. `lock` guards every member, except where a comment says otherwise."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """In a forked child the files are the parent's, and another thread's lock would never be free."""
        self.lock = threading.Lock()
        self.order: OrderedDict[int, weakref.ref[_Open]] = OrderedDict()  # least recently used first
        self.coming = 0  # files that are being opened
        self._foreign = 0  # descriptors of others, as counted last
        self._counted_at = float("-inf")
        self._opened = 0  # files since then

    def add(self, entry: _Open) -> None:
        entry.number = next(self._numbers)
        self.order[entry.number] = weakref.ref(entry)
        self._opened += 1

    def take(self, entry: _Open) -> _core.File | None:
        """Takes the file out, for closing."""
        file, entry.file = entry.file, None
        self.order.pop(entry.number, None)
        return file

    def _entries(self) -> list[_Open]:
        """Open ones; those whose owner is gone are forgotten."""
        entries = [reference() for reference in self.order.values()]
        if None in entries:
            gone = [number for number, entry in zip(self.order, entries, strict=True) if entry is None]
            for number in gone:
                del self.order[number]
        return [entry for entry in entries if entry is not None]

    def files(self) -> int:
        """That may be open at once."""
        soft, now = _limit(), time.monotonic()
        if soft >= _MOST_DESCRIPTORS:
            return _MOST_DESCRIPTORS // 8 // _DESCRIPTORS_A_FILE
        if now > self._counted_at + _COUNTED_FOR_S or self._opened >= 2 * _UNCOUNTED_FILES:
            self._foreign = max(0, _descriptors(soft) - _DESCRIPTORS_A_FILE * (len(self.order) + self.coming))
            self._counted_at, self._opened = now, 0
        free = soft - self._foreign
        return max(0, free - max(_RESERVE_DESCRIPTORS, free // 4)) // _DESCRIPTORS_A_FILE

    def recount(self) -> None:
        """The system has no descriptor: what was counted of the rest of the program is out of date."""
        self._counted_at = float("-inf")

    def grant(self, wanted: int) -> tuple[int, list[_Closing]]:
        """How many files more may be opened now, and those that must be closed first."""
        if len(self.order) + self.coming + wanted <= _UNCOUNTED_FILES and _limit() >= _PLENTY_DESCRIPTORS:
            return wanted, []
        entries = self._entries()
        most = self.files()
        closing = self._close_idle(entries, len(entries) + self.coming + wanted - min(most, KEPT_OPEN))
        held = len(entries) - len(closing) + self.coming
        return max(min(wanted, most - held), 1 if held == 0 else 0), closing

    def _close_idle(self, entries: Sequence[_Open], count: int) -> list[_Closing]:
        closing = []
        for entry in entries:
            if len(closing) >= count:
                break
            if entry.pins == 0 and not (entry.uses and entry.busy):
                file = self.take(entry)
                closing += [(entry, file)] if file is not None else []
        return closing

    def make_way(self, kept: int = 0) -> Full | bool:
        """Closes files that nothing needs, all but `kept` of the open ones: True. Where there is none: what is waited
        for until there is one, or False when all that Penstock holds is gone. Takes the lock."""
        if len(self.order) + self.coming <= kept:
            return False
        with self.lock:
            entries = self._entries()
            closing = self._close_idle(entries, len(entries) - kept)
            full = self._full(entries)
        _close(closing)
        return True if closing else full or False

    def full(self) -> Full | None:
        """What is waited for until there is room; None: all that Penstock holds is idle."""
        return self._full(self._entries())

    def _full(self, entries: Sequence[_Open]) -> Full | None:
        held = [entry for entry in entries if entry.file is not None]
        busy = next((use for use in (entry.busy for entry in held) if use is not None), None)
        if busy is None and self.coming == 0 and all(entry.pins == 0 for entry in held):
            return None
        return Full(busy)


_room = _Room()


def _limit() -> int:
    """How many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def _descriptors(soft: int) -> int:
    """That this process has open; all of them where that cannot be told."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208 - names only; less the one that lists them
    except OSError:
        return soft


def _close(closing: list[_Closing]) -> None:
    while closing:
        entry, file = closing.pop()
        entry.close(file)
        del file


def is_out_of_descriptors(error: BaseException) -> bool:
    code = error.system_code if isinstance(error, Error) else getattr(error, "errno", None)
    return code in (errno.EMFILE, errno.ENFILE)


def with_room(open: Callable[[], T]) -> T:
    """What `open` gives. When there is no descriptor left, files that datasets keep open make way. Other threads hold
    theirs for a moment only, so it is tried for a second, or three times where one takes longer."""
    ends = time.monotonic() + _ROOM_S
    tries = 0
    while True:
        try:
            return open()
        except (Error, OSError) as error:
            tries += 1
            if not is_out_of_descriptors(error) or (tries >= 3 and time.monotonic() > ends):
                raise
            _room.recount()
            _room.make_way()
            time.sleep(0.001)  # what made way may go to another thread: this one looks again


class Full:
    """No room now; pending.PendingWork may yield it. settle() is True when it is worth trying again."""

    def __init__(self, use: Use | None) -> None:
        self._use = use

    def settle(self, timeout: float | None) -> bool:
        """At most 50 ms at a time, so that work that was cancelled notices."""
        slice_s = _TRY_AGAIN_S if timeout is None else min(timeout, _TRY_AGAIN_S)
        transfer = None if self._use is None else self._use.transfer
        if transfer is not None:
            return transfer.wait(slice_s, None) or slice_s == _TRY_AGAIN_S
        time.sleep(min(slice_s, 0.001))  # a thread is between opening its files and using them
        return True


class Lease:
    """Files that stay open until the block ends, or the transfer that began in it."""

    def __init__(self, entries: list[_Open]) -> None:
        self._entries = entries
        self.files: list[_core.File] = [entry.file for entry in entries]  # type: ignore[misc]

    def began(self, transfer: _core.Transfer) -> Use:
        """over() is called on what comes back, when the transfer has ended."""
        use = Use(transfer)
        with _room.lock:
            for entry in self._entries:
                entry.uses = [one for one in entry.uses if one.is_busy]
                entry.uses.append(use)
        return use

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.files.clear()
        with _room.lock:
            _unpin(self._entries)
        self._entries.clear()


class OpenFiles:
    """Those of one owner, a file or store of datasets, in a context, by name. Safe for threads."""

    def __init__(self, context: _core.Context) -> None:
        self._context = context
        self._open: dict[tuple[str, bool], _Open] = {}
        self._late: list[BaseException] = []  # what the ends of written files told

    def lease(self, names: Sequence[str], writes: bool = False, versions: Sequence[Hashable] = ()) -> Lease | Full:
        """The first few of the files, at least one, in the order of the names; Full when others must end first. A file
        that was opened as another version is opened anew. Raises Error of the first that cannot be opened."""
        wanted = [*zip(names, versions or itertools.repeat(None), [writes] * len(names), strict=False)]
        with _room.lock:
            if len(wanted) > _UNCOUNTED_FILES:
                wanted = wanted[: max(1, min(PORTION_FILES, _room.files() // 2))]
            entries, closing = self._reserve([self._pinned(*one) for one in wanted])
            reserved = entries.count(None)
            _room.coming += reserved
        whole, out = False, None
        try:
            _close(closing)
            for at in [at for at, entry in enumerate(entries) if entry is None]:
                entries[at] = self._new(*wanted[at])
            whole = True
        except Error as error:
            if not is_out_of_descriptors(error):
                raise
            whole, out = True, error  # those before it will do
        finally:
            with _room.lock:
                _room.coming -= reserved
                ready = self._keep(wanted, entries, whole)
        return Lease(ready) if ready else self._without_any(names, (writes, versions), out)

    def _pinned(self, name: str, version: Hashable, writes: bool) -> _Open | None:
        entry = self._open.get((name, writes))
        if entry is None or entry.number not in _room.order or entry.version != version:
            return None
        entry.pins += 1
        _room.order.move_to_end(entry.number)
        return entry

    def _new(self, name: str, version: Hashable, writes: bool) -> _Open:
        file = _core.open(self._context, name, mode="read_write" if writes else "read")
        return _Open(file, version, self._late if writes else None)

    def _reserve(self, entries: list[_Open | None]) -> tuple[list[_Open | None], list[_Closing]]:
        """The first entries, as far as there is room for those that are missing."""
        missing = [at for at, entry in enumerate(entries) if entry is None]
        if not missing:
            return entries, []
        count, closing = _room.grant(len(missing))
        if count < len(missing):
            entries, beyond = entries[: missing[count]], entries[missing[count] :]
            _unpin(beyond)
        return entries, closing

    def _keep(
        self, wanted: Sequence[tuple[str, Hashable, bool]], entries: list[_Open | None], whole: bool
    ) -> list[_Open]:
        """Those that are open, up to the first that is not. None, and no pins, when the lease has failed."""
        for at, (entry, (name, _, writes)) in enumerate(zip(entries, wanted, strict=False)):
            if entry is not None and entry.number < 0:
                entries[at] = self._registered((name, writes), entry)
        count = entries.index(None) if None in entries else len(entries)
        if not whole:
            count = 0
        _unpin(entries[count:])
        return [entry for entry in entries[:count] if entry is not None]

    def _registered(self, key: tuple[str, bool], entry: _Open) -> _Open:
        """The entry, or what another thread opened meanwhile."""
        other = self._open.get(key)
        if other is not None and other.file is not None and other.version == entry.version:
            other.pins += 1
            return other
        self._open[key] = entry
        _room.add(entry)
        return entry

    def _without_any(
        self, names: Sequence[str], kind: tuple[bool, Sequence[Hashable]], out: Error | None
    ) -> Lease | Full:
        """No file is open, or may be opened now."""
        writes, versions = kind
        if out is not None:
            return self._without_descriptors(names[0], (writes, versions[:1]), out)
        with _room.lock:
            full = _room.full()
        if full is not None or len(names) == 1:
            return full or Full(None)
        return self.lease(names[:1], writes, versions[:1])  # those that are open already took all the room

    def _without_descriptors(self, name: str, kind: tuple[bool, Sequence[Hashable]], out: Error) -> Lease | Full:
        """The system has none for this file."""
        for _ in range(_TRIES):
            found = _room.make_way()
            if isinstance(found, Full):
                return found
            try:
                entry = self._new(name, kind[1][0] if kind[1] else None, kind[0])
            except Error as error:
                if not is_out_of_descriptors(error):
                    raise
                _room.recount()
                time.sleep(0.001)  # the engine lets go of files a moment after their transfer; other threads take some
                continue
            with _room.lock:
                return Lease([self._registered((name, kind[0]), entry)])
        raise out

    def close(self) -> None:
        """Waits for transfers on files that were written; raises Error of late writes."""
        taken = self._take_all()
        try:
            _close(taken)
        finally:
            late, self._late = self._late, []
        if late:
            raise late[0]

    def forget(self) -> None:
        """Lets go of all without a word."""
        self._take_all()

    def _take_all(self) -> list[_Closing]:
        with _room.lock:
            taken = [(entry, _room.take(entry)) for entry in self._open.values()]
            self._open.clear()
        return [(entry, file) for entry, file in taken if file is not None]

    @staticmethod
    def settle() -> None:
        """A transfer has ended: what nothing needs is closed, but for the few that are kept."""
        _room.make_way(KEPT_OPEN)
