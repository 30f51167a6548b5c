"""Cuts the power of a disk at random moments and says what the file system then holds of what was written durably.

A loop device lies over a file of the faulty file system, which records every write and every flush that the kernel's
file system sends down. Each cut takes a place in that record: all up to the last flush before it is on the disk, of the
writes after it a part, some of them torn between sectors. The disk is mounted, which repairs it as after a real power
cut, and read by stock libraries.

Run by durable/test_power_cuts.py in a mount namespace of its own. Arguments: file system, cuts, seed, folder. Prints
one JSON object; `skip` in it says why nothing was done.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faulty_fs import FaultyFs, faulty_fs
from writers_rig import GROWING, WRITERS, Broken, Writer, by_bytes, close_histories, values

import penstock as ps

MAKE = {
    "ext4": ("64M", ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]),
    "xfs": ("320M", ["mkfs.xfs", "-q", "-f", "-K"]),
}
VERSIONS = 4
SECTOR = 512
HEAD = struct.Struct("<IIQQ")
WRITE, FLUSH, ZERO, MARK = 1, 2, 3, 4


def synced(path: Path, version: int, durable: bool) -> None:
    """What durable writing takes, in plain calls: the control that must never be found wrong."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as stream:
        stream.write(values(version).tobytes())
        if durable:
            stream.flush()
            os.fsync(stream.fileno())
    part.replace(path)
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def unsynced(path: Path, version: int, durable: bool) -> None:
    """Says that it is durable and is not: the control that must be found wrong."""
    synced(path, version, durable=False)


CONTROLS = {"control-synced": Writer("c1", synced, by_bytes), "control-unsynced": Writer("c2", unsynced, by_bytes)}
CUT = WRITERS | GROWING | CONTROLS


@dataclass
class Entry:
    """An entry of the record: a write, a range of zeros, a flush, or a mark of the workload."""

    kind: int
    offset: int
    length: int
    data: bytes


@dataclass
class Told:
    """What the writers had begun, and what they had called durable, at places of the record."""

    begun: list[tuple[int, str, int]] = field(default_factory=list)
    durable: list[tuple[int, str, int]] = field(default_factory=list)

    def bounds(self, name: str, place: int) -> tuple[int, int]:
        least = max((one[2] for one in self.durable if one[0] < place and one[1] == name), default=0)
        most = max((one[2] for one in self.begun if one[0] < place and one[1] == name), default=0)
        return least, most


def run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)


@contextlib.contextmanager
def mounted(image: Path, place: Path, kind: str) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    run("mount", "-t", kind, "-o", "loop", image, place)
    try:
        yield place
    finally:
        run("umount", place)


def need_mountable(image: Path, folder: Path, kind: str) -> None:
    try:
        with mounted(image, folder / "tried", kind):
            pass
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{kind} cannot be mounted here: {error.stderr.strip()}")


def write_all(fs: FaultyFs, folder: Path, chance: random.Random) -> None:
    """Every writer, durable ones and, between them and under names of their own, others that are not."""
    for name in ("durable", "others"):
        (folder / name).mkdir()
    run("sync", "-f", folder)
    for version in range(1, VERSIONS + 1):
        names = list(CUT)
        chance.shuffle(names)
        for name in names:
            writer = CUT[name]
            fs.mark(f"begin {name} {version}")
            writer.write(folder / "durable" / writer.file, version, True)
            fs.mark(f"durable {name} {version}")
            if chance.random() < 0.5:
                other = WRITERS[chance.choice([one for one, its in WRITERS.items() if not its.appends])]
                other.write(folder / "others" / other.file, version, False)
            if chance.random() < 0.1:
                run("sync", "-f", folder)  # what is not durable reaches the disk at times all the same
    close_histories()


def record_of(kind: str, folder: Path, chance: random.Random) -> tuple[Path, list[Entry]]:
    """The disk before anything was written, and all that was written."""
    size, make = MAKE[kind]
    record, before = folder / "record", folder / "before.img"
    with faulty_fs(folder, direct=True, record=record) as fs:
        behind = fs.backing / "disk.img"
        with behind.open("wb") as stream:
            stream.truncate(int(size[:-1]) << 20)
        run(*make, behind)
        need_mountable(behind, folder, kind)
        run("cp", "--sparse=auto", behind, before)
        with mounted(fs.path / "disk.img", folder / "recorded", kind) as place:
            write_all(fs, place, chance)
    return before, entries_of(record)


def entries_of(record: Path) -> list[Entry]:
    data, at, entries = record.read_bytes(), 0, []
    while at < len(data):
        kind, size, offset, length = HEAD.unpack_from(data, at)
        at += HEAD.size
        assert at + size <= len(data), "the record ends amid an entry"
        entries.append(Entry(kind, offset, length, data[at : at + size]))
        at += size
    return entries


def told_by(entries: list[Entry]) -> Told:
    told = Told()
    for place, entry in enumerate(entries):
        if entry.kind == MARK:
            what, name, version = entry.data.decode().split()
            (told.begun if what == "begin" else told.durable).append((place, name, int(version)))
    return told


def put(disk: int, entry: Entry, chance: random.Random | None = None) -> None:
    """With `chance`, a write is torn: each sector of it arrives or does not."""
    data = entry.data if entry.kind == WRITE else bytes(entry.length)
    if entry.kind not in (WRITE, ZERO):
        return
    step = SECTOR if chance else len(data) or 1
    for begin in range(0, len(data), step):
        if chance is None or chance.random() < 0.5:
            os.pwrite(disk, data[begin : begin + step], entry.offset + begin)


def cut(disk: int, pending: list[Entry], chance: random.Random) -> None:
    """Of what was not flushed, a part arrives."""
    part = chance.choice([0, 0.3, 0.7, 1])
    torn = chance.random() < 0.5
    for entry in pending:
        if chance.random() < part:
            put(disk, entry, chance if torn and chance.random() < 0.3 else None)


def place_of_cut(entries: list[Entry], told: Told, chance: random.Random) -> int:
    """Anywhere, or just after a writer called its file durable: nothing that comes later has then helped it."""
    if chance.random() < 0.5:
        return min(len(entries), chance.choice(told.durable)[0] + chance.randrange(1, 4))
    return chance.randrange(told.begun[0][0], len(entries) + 1)


def states(before: Path, entries: list[Entry], places: list[int], chance: random.Random) -> Iterator[tuple[int, Path]]:
    """The disk after a cut at each of the places, which must ascend. Each is good until the next is asked for."""
    flushed, image = before.with_name("flushed.img"), before.with_name("cut.img")
    run("cp", "--sparse=auto", before, flushed)
    done = 0
    disk = os.open(flushed, os.O_RDWR)
    for place in places:
        last = max((one for one in range(place) if entries[one].kind == FLUSH), default=0)
        for entry in entries[done:last]:
            put(disk, entry)
        done = max(done, last)
        run("cp", "--sparse=auto", flushed, image)
        target = os.open(image, os.O_RDWR)
        cut(target, entries[last:place], chance)
        os.close(target)
        yield place, image
    os.close(disk)


def look(writer: Writer, path: Path, summary: Counter[str], name: str) -> int:
    """The version; after what docs/formats/hdf5.md promises for a power failure: opening for writing repairs."""
    try:
        return writer.look(path)
    except Broken:
        if not path.with_name(f".{path.name}.penstock-journal").exists():
            raise
        ps.open(path, write=True, device="host").close()
        summary[f"repaired {name}"] += 1
        return writer.look(path)


def judge(folder: Path, told: Told, place: int, summary: Counter[str]) -> list[str]:
    """What is wrong after this cut, a line each."""
    wrong = []
    for name, writer in CUT.items():
        least, most = told.bounds(name, place)
        summary["looked"] += 1
        try:
            found = look(writer, folder / "durable" / writer.file, summary, name)
        except (Broken, ps.Error) as error:
            found, cause = -1, str(error)
            if least == 0:  # nothing was promised of it yet
                summary[f"broken before it was durable: {name}"] += 1
                continue
        if found == -1:
            wrong.append(f"{name}: {least} was durable, the file is broken: {cause}")
        elif not least <= found <= most:
            wrong.append(f"{name}: {least} was durable, {most} begun, {found or 'nothing'} is there")
    for writer in WRITERS.values():
        try:
            writer.look(folder / "others" / writer.file)
        except Broken:
            summary["not durable and broken"] += 1
    return wrong


def main(kind: str, cuts: int, seed: int, folder: Path) -> dict[str, object]:
    chance = random.Random(seed)
    before, entries = record_of(kind, folder, chance)
    told = told_by(entries)
    places = sorted(place_of_cut(entries, told, chance) for _ in range(cuts))
    summary: Counter[str] = Counter(entry.kind for entry in entries)  # type: ignore[arg-type]
    found = {"cuts": cuts, "writes": summary[WRITE], "flushes": summary[FLUSH]}  # type: ignore[index]
    summary, wrong, worst = Counter(), Counter(), {}
    for place, image in states(before, entries, places, chance):
        with mounted(image, folder / "after", kind) as after:
            for line in judge(after, told, place, summary):
                name = line.split(":")[0]
                wrong[name] += 1
                worst.setdefault(name, f"cut at {place} of {len(entries)}: {line}")
    return found | {"wrong": wrong, "first": worst, **summary}


if __name__ == "__main__":
    try:
        answer = main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    except pytest.skip.Exception as reason:
        answer = {"skip": str(reason)}
    print(json.dumps(answer))
