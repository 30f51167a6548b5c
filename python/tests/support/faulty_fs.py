"""A file system that goes wrong on command: the test's side of tests/faults/faultfs.cpp.

    with faulty_fs(tmp_path, writeback=True) as fs:
        full = fs.fail("write", errno.ENOSPC, name="*.h5", after_bytes=100_000)
        ...                       # fs.path is the mounted folder, fs.backing what lies behind it
        assert full.fired         # the fault was reached

A fault is a rule that lasts until `remove()`. Steps it may match are named as in `fs.counts()`: lookup, getattr,
setattr, truncate, mkdir, mknod, symlink, unlink, rmdir, rename, link, open, create, tmpfile, read, write, flush (each
close of a descriptor), fsync, release, fallocate, opendir, readdir, fsyncdir, statfs, getxattr, setxattr, listxattr,
removexattr, syncfs. Where the file system may not be had (not root, no /dev/fuse, no compiler), the test
is skipped with the reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT

SOURCES = ROOT / "tests" / "faults"
COMPILE = ("g++", "-O1", "-std=c++20", "-pthread")
WAIT_S = 60  # for an answer of the server, on any machine
CHANGING = "create,tmpfile,mkdir,symlink,write,truncate,fallocate,fsync,fsyncdir,link,rename,unlink,rmdir,setattr"


@dataclass(frozen=True)
class Step:
    """One request that the file system got."""

    operation: str
    name: str
    other: str
    offset_bytes: int
    bytes: int
    pid: int


class Fault:
    """A rule that is in force until it is removed."""

    def __init__(self, fs: FaultyFs, number: int) -> None:
        self._fs, self._number = fs, number

    @property
    def fired(self) -> int:
        """How often it made a step go wrong."""
        return int(self._fs.ask(f"fired {self._number}")[0])

    def remove(self) -> None:
        self._fs.ask(f"remove {self._number}")


class FaultyFs:
    """A mounted file system; see `faulty_fs`."""

    def __init__(self, path: Path, backing: Path, control: socket.socket, keeps_writes: bool) -> None:
        self.path, self.backing, self.keeps_writes = path, backing, keeps_writes
        self._control, self._pending, self._rules = control, b"", 0

    def fail(self, operations: str, error: int, **which: object) -> Fault:
        """These operations answer with an errno. `which`: name (a pattern), skip (so many matching steps go well
        first), times (so often), after_bytes (once the matching steps asked for more)."""
        return self._add(operations, "fail", error, **which)

    def short(self, operation: str, count: int, **which: object) -> Fault:
        """read or write: at most `count` bytes are moved, and so it is told."""
        return self._add(operation, "short", count, **which)

    def hang(self, operations: str, *, deaf: bool = False, **which: object) -> Fault:
        """No answer until `release()`, or until the process that asked is killed; `deaf`: not even then."""
        return self._add(operations, "hang", 0, when="deaf" if deaf else "", **which)

    def lose(self, error: int, at: str = "flush,fsync", **which: object) -> Fault:
        """Writes are taken and thrown away; only the operations `at` tell it, with this errno."""
        return self._add("write", "lose", error, when=at, **which)

    def delay(self, operations: str, milliseconds: int, **which: object) -> Fault:
        """The step is done after so long."""
        return self._add(operations, "delay", milliseconds, **which)

    def signal(self, operations: str, number: int, *, before: bool, **which: object) -> Fault:
        """The process that asks gets a signal before the step is done (if killed, it is then not done), or after it."""
        return self._add(operations, "signal", number, when="before" if before else "after", client=1, **which)

    def release(self) -> None:
        """What hangs answers with EINTR."""
        self.ask("release")

    def hanging(self) -> int:
        """How many requests hang."""
        return int(self.ask("hung")[0])

    def counts(self) -> dict[str, int]:
        """How many requests of each operation there were."""
        return {name: int(count) for name, count in (line.split("\t") for line in self.ask("counts"))}

    @contextlib.contextmanager
    def logged(self) -> Iterator[list[Step]]:
        """The steps of the block, known at its end."""
        steps: list[Step] = []
        self.ask("logging 1")
        try:
            yield steps
        finally:
            for line in self.ask("log"):
                operation, name, other, *numbers = line.split("\t")
                steps.append(Step(operation, name, other, *map(int, numbers)))
            self.ask("logging 0")

    def mark(self, text: str) -> None:
        """A note in the record, after all that was done before."""
        self.ask(f"mark {text}")

    def ask(self, line: str) -> list[str]:
        self._control.sendall(line.encode() + b"\n")
        return self.answer()

    def answer(self) -> list[str]:
        return [self._line() for _ in range(int(self._line()))]

    def _add(self, operations: str, what: str, value: int, **which: object) -> Fault:
        self._rules += 1
        words = {"op": operations, "do": what, "value": int(value), **which}
        words["bytes"] = words.pop("after_bytes", 0)
        self.ask(f"add {self._rules} " + " ".join(f"{key}={value}" for key, value in words.items() if value != ""))
        return Fault(self, self._rules)

    def _line(self) -> str:
        while b"\n" not in self._pending:
            some = self._control.recv(1 << 16)
            if not some:
                raise ConnectionError("the faulty file system has ended")
            self._pending += some
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode()


@contextlib.contextmanager
def faulty_fs(
    folder: Path,
    *,
    writeback: bool = False,
    direct: bool = False,
    unnamed: bool = True,
    record: Path | None = None,
) -> Iterator[FaultyFs]:
    """A faulty file system under `folder`, which goes well until it is told otherwise.

    writeback: the kernel keeps writes and brings them later, as NFS does; direct: it keeps nothing, so short counts
    come to the caller as they are; unnamed: O_TMPFILE works; record: a file that gets every write and flush, in order.
    """
    program = _server()
    name = uuid.uuid4().hex[:8]
    place, backing = folder / f"fs-{name}", folder / f"backing-{name}"
    place.mkdir()
    backing.mkdir()
    ours, theirs = socket.socketpair()
    modes = [word for word, on in (("writeback", writeback), ("direct", direct), ("named", not unnamed)) if on]
    modes += [f"record={record}"] if record else []
    words = [str(program), str(backing), str(place), str(theirs.fileno()), *modes]
    server = subprocess.Popen(words, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    ours.settimeout(WAIT_S)
    fs = FaultyFs(place, backing, ours, writeback)
    try:
        first = fs.answer()
        if first != ["ready"]:
            pytest.skip(f"a FUSE file system cannot be mounted here: {first}")
        yield fs
    finally:
        _end(server, ours, place)


def _end(server: subprocess.Popen[bytes], control: socket.socket, place: Path) -> None:
    """The server unmounts and goes as its control ends; killed if it does not, all it owes is given up."""
    control.close()
    try:
        server.wait(WAIT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if os.path.ismount(place):
        subprocess.run(["umount", "-l", str(place)], check=False)


@functools.cache
def _server() -> Path:
    """The server, compiled once for each state of its source; a skip where it cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("mounting a faulty file system needs root")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no /dev/fuse")
    if not shutil.which("g++"):
        pytest.skip("no g++ to compile the faulty file system")
    sources = sorted(SOURCES.glob("*.?pp"))
    if not sources:
        pytest.skip(f"no source of the faulty file system in {SOURCES}")
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:16]
    build = ROOT / "build" if os.access(ROOT, os.W_OK) else Path(tempfile.gettempdir()) / "penstock-tests"
    program = build / "faults" / f"faultfs-{digest}"
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            part = program.with_suffix(".part")
            subprocess.run([*COMPILE, str(SOURCES / "faultfs.cpp"), "-o", str(part)], check=True)
            part.replace(program)
    return program
