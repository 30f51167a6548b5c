"""What evidence claims of transfers on one file system, beside what root finds out by other means.

    unshare --mount python programs/evidence_fs.py ext4 FOLDER       prints claims as JSON

Mounts the file system in a mount namespace of its own, so that all mounts go with the process however it ends. Truth is
root's own mincore of the file that holds the bytes (of an overlay: the one below it), and what the block layer counts
for the loop device, which reads its file past the page cache. Transfers are made by root and by another user, each in
a process that holds nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BYTES = 4 << 20
SMALL = 16 << 10
PAGE = os.sysconf("SC_PAGESIZE")
SECTOR = 512
OTHER = 65534
PR_SET_DUMPABLE = 4
BYPASSING = ("direct", "aio", "uring")
READS = ("auto", "buffered", "mmap", *BYPASSING)
NEAR = 0.02  # of the pages: what may come or go between two looks
LITTLE = 0.05  # of the pages: edges and readahead of others
MOST = 0.9
DISKS = {
    "ext4": (64 << 20, ["mkfs.ext4", "-q"], []),
    "ext4-journal": (64 << 20, ["mkfs.ext4", "-q"], ["-o", "data=journal"]),
    "xfs": (320 << 20, ["mkfs.xfs", "-q", "-K"], []),
    "btrfs": (128 << 20, ["mkfs.btrfs", "-q", "-K"], []),
    "btrfs-zstd": (128 << 20, ["mkfs.btrfs", "-q", "-K"], ["-o", "compress-force=zstd"]),
}
IN_MEMORY = ("tmpfs", "ramfs", "overlay-tmpfs")


class NotHere(Exception):
    """The file system cannot be mounted here."""


@dataclass
class Place:
    """Where the file is, and where its bytes really are."""

    file: Path
    real: Path
    in_memory: bool = False
    loop: str = ""  # of a disk: what counts its transfers

    def media(self) -> tuple[int, int] | None:
        """Bytes read from and written to the disk so far."""
        if not self.loop:
            return None
        words = Path(f"/sys/block/{self.loop}/stat").read_text().split()
        return int(words[2]) * SECTOR, int(words[6]) * SECTOR

    def __post_init__(self) -> None:
        # Held: a FUSE file system drops the pages of a file whenever it is opened.
        self.descriptors = [os.open(file, os.O_RDONLY) for file in (self.real, self.file)]

    def resident(self, bytes: int) -> float:
        return resident(self.descriptors[0], bytes)


libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mincore.argtypes = libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def resident(descriptor: int, bytes: int) -> float:
    """The share of pages in the page cache, by mincore."""
    address = libc.mmap(None, bytes, 1, 1, descriptor, 0)
    pages = (ctypes.c_ubyte * (-(-bytes // PAGE)))()
    failed = libc.mincore(address, bytes, pages)
    libc.munmap(address, bytes)
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in pages) / len(pages)


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise NotHere(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def mounted(folder: Path, *words: object) -> Path:
    folder.mkdir(exist_ok=True)
    run("mount", *words, folder)
    return folder


def disk(folder: Path, kind: str) -> tuple[Path, str]:
    size, make, options = DISKS[kind]
    image = folder / f"{kind}.img"
    with image.open("wb") as stream:
        stream.truncate(size)
    run(*make, image)
    loop = run("losetup", "--direct-io=on", "--find", "--show", image)
    try:
        return mounted(folder / kind, *options, loop), Path(loop).name
    finally:
        run("losetup", "--detach", loop)  # goes with the mount


def overlay(folder: Path, below: Path) -> tuple[Path, Path]:
    """The overlay's folder, and the one that its files are really in."""
    lower, upper, work = (below / name for name in ("lower", "upper", "work"))
    for one in (lower, upper, work):
        one.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    return mounted(folder / "overlay", "-t", "overlay", "-o", options, "overlay"), upper


@contextlib.contextmanager
def place(kind: str, folder: Path) -> Iterator[Place]:
    loop, below = "", folder
    if kind == "fuse":
        from faulty_fs import faulty_fs

        with faulty_fs(folder) as served:
            yield made(served.path, served.path)
        return
    name = kind.removeprefix("overlay-")
    if name in DISKS:
        below, loop = disk(folder, name)
    else:
        below = mounted(folder / name, "-t", name, "-o", "mode=0755", name)
    below.chmod(0o755)
    top, real = overlay(folder, below) if kind.startswith("overlay-") else (below, below)
    yield made(top, real, kind in IN_MEMORY, loop)


def made(top: Path, real: Path, in_memory: bool = False, loop: str = "") -> Place:
    file = top / "file"
    file.write_bytes(b"what is written again and again\n" * (BYTES // 32))
    file.chmod(0o644)
    return Place(file, real / "file", in_memory, loop)


class Agent:
    """A process of a user that makes the transfers it is asked for."""

    def __init__(self, user: int) -> None:
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            try:
                _serve(theirs.makefile("rw"), user)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        theirs.close()
        self._stream = ours.makefile("rw")

    def ask(self, **what: Any) -> dict[str, Any]:
        self._stream.write(json.dumps(what) + "\n")
        self._stream.flush()
        return json.loads(self._stream.readline())

    def end(self) -> None:
        self._stream.close()
        os.waitpid(self.pid, 0)


def _serve(stream: Any, user: int) -> None:
    import penstock

    # The other user may not be allowed to read Python's own modules: all that transfers need is imported before.
    with penstock.Context(device="host") as context, context.open(__file__) as file:
        _transfer(penstock, file, context.allocate(PAGE, "system"), {"path": "auto", "strict": False, "writes": False})
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # The kernel forbids a process that changed its user to open its own descriptors in /proc. This call allows it.
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    context = penstock.Context(device="host")
    memory = context.allocate(BYTES, "system")
    for line in stream:
        what = json.loads(line)
        with context.open(what["file"], write=what["writes"]) as file:  # which may read some of it
            stream.write("{}\n")
            stream.flush()
            stream.readline()
            part = context.allocate(BYTES, "system", first_touch="none") if what["untouched"] else memory
            stream.write(json.dumps(_transfer(penstock, file, part, what)) + "\n")
            stream.flush()


def _transfer(penstock: Any, file: Any, memory: Any, what: dict[str, Any]) -> dict[str, Any]:
    move = file.write if what["writes"] else file.read
    part = memory.slice(0, what["bytes"]) if what.get("bytes", BYTES) < BYTES else memory
    options = {} if what["path"] == "auto" else {"path": what["path"]}
    try:
        outcome = move(part, 0, strict=what["strict"], **options)
    except penstock.Error as error:
        return {"refused": f"{error.code}: {error.cause}"}
    found = file.residency()["resident_fraction"]
    return {"direct": file.facts["direct"], "residency": found, "evidence": outcome.evidence}


@dataclass
class Case:
    """One transfer: who asks for what, in which state."""

    user: int
    path: str
    strict: bool
    hot: bool
    writes: bool = False
    bytes: int = BYTES
    half: bool = False  # of a hot file: its second half is cold
    untouched: bool = False  # the memory has no pages yet: btrfs then reads by the page cache

    def __str__(self) -> str:
        words = ["write" if self.writes else "read", self.path, "hot" if self.hot else "cold"]
        words += ["strict"] * self.strict + ["small"] * (self.bytes < BYTES) + ["other"] * bool(self.user)
        words += ["half"] * self.half + ["untouched"] * self.untouched
        return " ".join(words)


@dataclass
class Claims:
    """What was said, beside what is so."""

    place: Place
    all: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    proved: list[str] = field(default_factory=list)  # cases whose bytes are claimed to have gone past the page cache

    def add(self, case: Case, what: str, said: object, so: object, true: bool) -> None:
        self.all.append({"case": str(case), "what": what, "said": said, "so": so, "true": true})


def prepare(place: Place, case: Case) -> None:
    for descriptor in place.descriptors:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if case.hot:
        os.pread(place.descriptors[1], BYTES, 0)
    if case.half:
        os.posix_fadvise(place.descriptors[0], BYTES // 2, 0, os.POSIX_FADV_DONTNEED)


def observe(claims: Claims, agent: Agent, case: Case) -> None:
    """Makes one transfer and compares all that its evidence says with what is so."""
    place = claims.place
    what = {name: getattr(case, name) for name in ("writes", "path", "strict", "bytes", "untouched")}
    agent.ask(file=str(place.file), **what)
    prepare(place, case)
    before, media_before = place.resident(case.bytes), place.media()
    told = agent.ask()
    after, media_after = place.resident(case.bytes), place.media()
    if "refused" in told:
        claims.refused[str(case)] = told["refused"]
        return
    if place.in_memory:
        claims.add(case, "direct I/O is possible", told["direct"], False, not told["direct"])
    evidence = told["evidence"]
    for name, so in (("before", before), ("after", after)):
        found = evidence[f"residency_{name}"]
        if found is not None and found["resident_fraction"] is not None:
            said = found["resident_fraction"]
            claims.add(case, f"resident {name}", said, so, abs(said - so) <= NEAR)
    if told["residency"] is not None:
        whole = place.resident(BYTES)
        claims.add(case, "File.residency", told["residency"], whole, abs(told["residency"] - whole) <= NEAR)
    _words_of_the_plan(claims, case, evidence, before)
    moved = None
    if media_before is not None and media_after is not None:
        moved = media_after[case.writes] - media_before[case.writes]
    _past_the_page_cache(claims, case, evidence, {"came": after - (0 if case.writes else before), "moved": moved})


def _words_of_the_plan(claims: Claims, case: Case, evidence: dict[str, Any], before: float) -> None:
    if case.path != "auto" or case.bytes < BYTES:
        return
    said = evidence["reason"]
    if "not in the page cache" in said:
        claims.add(case, "the plan", said, before, before < 0.25)
    elif ", in the page cache" in said or "lives in memory" in said:
        claims.add(case, "the plan", said, before, before > 0.75)
    if case.hot and not case.half and not case.writes and not case.user:
        fetched = [share["path"] for share in evidence["paths"] if share["path"] in BYPASSING]
        claims.add(case, "what is hot is not fetched again", fetched, before, not fetched)


def _past_the_page_cache(claims: Claims, case: Case, evidence: dict[str, Any], so: dict[str, Any]) -> None:
    for share in evidence["paths"]:
        if share["path"] not in BYPASSING or not share["bytes"]:
            continue
        said = share.get("past_page_cache", True)  # a path that says nothing of it claims it by its name
        if said is None:
            claims.add(case, "strict, and nothing is known", said, so, not case.strict or case.path == "auto")
            continue
        true = not claims.place.in_memory and so["came"] <= LITTLE
        true &= so["moved"] is None or so["moved"] >= MOST * share["bytes"]
        claims.add(case, f"{share['path']} went past the page cache", said, so, true == said)
        if said:
            claims.proved.append(str(case))


def cases(user: int) -> Iterator[Case]:
    for path in READS:
        for strict in (False, True):
            for hot in (False, True):
                yield Case(user, path, strict, hot)
    if user:
        return
    for path in ("auto", "buffered", *BYPASSING):
        for strict in (False, True):
            yield Case(user, path, strict, hot=True, writes=True)
    for strict in (False, True):
        yield Case(user, "direct", strict, hot=False, bytes=SMALL)
        for path in BYPASSING:
            yield Case(user, path, strict, hot=True, half=True)
            for state in ({"hot": False}, {"hot": True}, {"hot": True, "half": True}):
                yield Case(user, path, strict, untouched=True, **state)


def main(kind: str, folder: Path) -> dict[str, Any]:
    with place(kind, folder) as found:
        claims = Claims(found)
        for user in (0, OTHER):
            if user and kind == "fuse":
                continue  # only the user that mounted it may look at it
            agent = Agent(user)
            try:
                for case in cases(user):
                    observe(claims, agent, case)
            finally:
                agent.end()
    return {"claims": claims.all, "refused": claims.refused, "proved": claims.proved}


if __name__ == "__main__":
    try:
        print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
    except NotHere as why:
        print(json.dumps({"not_here": str(why)}))
