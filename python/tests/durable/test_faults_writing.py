"""A disk that is full, fails, or says so only at the end: each writer puts whole what it was given, or raises
penstock.Error and leaves what was there, with nothing beside it, and the next writer goes on from that.

One step of the file system goes wrong, any step that a writer takes, one after the other. PENSTOCK_FAULT_STEPS is how
many of them each writer is tried at in each mode (8 without it, spread evenly over all)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_fs import CHANGING, FaultyFs, Step, faulty_fs
from writers_rig import WRITERS, Broken, Writer, left_behind

import penstock as ps

for module in ("h5py", "netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)

STEPS = int(os.environ.get("PENSTOCK_FAULT_STEPS", "8"))
MODES = {"through": {}, "back": {"writeback": True}}
ERRORS = (errno.ENOSPC, errno.EIO)
REMOVES = ("unlink", "rmdir")


@pytest.fixture(scope="module", params=MODES)
def fs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyFs]:
    with faulty_fs(tmp_path_factory.mktemp("faults"), **MODES[request.param]) as mounted:
        yield mounted


class Case:
    """One writer in a folder of its own, with a first version there that was written without a fault."""

    def __init__(self, fs: FaultyFs, writer: Writer, durable: bool) -> None:
        self.fs, self.writer, self.durable = fs, writer, durable
        self.folder = fs.path / f"{len(list(fs.backing.iterdir()))}"
        self.folder.mkdir()
        self.path = self.folder / writer.file
        self.write(1)

    def write(self, version: int) -> None:
        self.writer.write(self.path, version, self.durable)

    def look(self) -> int:
        """What the file system's own side has: nothing that only the kernel still keeps."""
        return self.writer.look(self.fs.backing / self.folder.name / self.writer.file)

    def steps(self) -> list[Step]:
        with self.fs.logged() as steps:
            self.write(2)
        assert self.look() == 2
        return [one for one in steps if one.operation in CHANGING.split(",")]

    def is_named(self, steps: list[Step]) -> bool:
        """Whether, after these steps, the new content may have its name."""
        ours = self.writer.file
        return any(one.operation in ("rename", "link") and ours in (one.name, one.other) for one in steps)

    def try_once(self, failing: str, may_be_new: bool = False) -> str:
        """Writes the second version while a fault is in force; what is wrong with how it ended, or ''."""
        try:
            self.write(2)
        except ps.Error:
            return self._judge_error(failing, may_be_new or self.writer.appends)
        except Exception as error:
            return f"{type(error).__name__} in place of penstock.Error: {error}"
        return self._judge_version({2}, "success")

    def _judge_error(self, failing: str, may_be_new: bool) -> str:
        wrong = self._judge_version({1, 2} if may_be_new else {1}, "an error")
        left = left_behind(self.folder, self.path)
        if not wrong and left and failing not in REMOVES:
            wrong = f"after an error {left} is left"
        return wrong

    def _judge_version(self, may: set[int], after: str) -> str:
        try:
            found = self.look()
        except Broken as error:
            return f"after {after} the file is broken: {error}"
        return "" if found in may else f"after {after} version {found} is there"

    def go_on(self) -> str:
        """The next writer, without a fault, goes on from what is there. A kernel that keeps writes may tell an error of
        the last writer once more to the next."""
        for again in range(2 if self.fs.keeps_writes else 1):
            try:
                next_version = self.look() + 1
                self.write(next_version)
            except Exception as error:
                found = f"the next writer fails: {type(error).__name__}: {error}"
                if not isinstance(error, ps.Error) or again:
                    return found
            else:
                return "" if self.look() == next_version else "the next writer's version is not there"
        return found


def spread(count: int) -> list[int]:
    """So many places of all, evenly."""
    return sorted({round(one * (count - 1) / max(1, min(STEPS, count) - 1)) for one in range(min(STEPS, count))})


def count_writes(steps: list[Step]) -> int:
    return sum(one.operation == "write" for one in steps)


@pytest.mark.parametrize("durable", [False, True], ids=["kept", "durable"])
@pytest.mark.parametrize("name", WRITERS)
def test_any_step_may_fail(fs: FaultyFs, name: str, durable: bool) -> None:
    writer = WRITERS[name]
    steps = Case(fs, writer, durable).steps()
    wrong, reached = [], 0
    for number in spread(len(steps)):
        error = ERRORS[number % 2]
        case = Case(fs, writer, durable)
        fault = fs.fail(CHANGING, error, skip=number, times=1)
        found = case.try_once(steps[number].operation, case.is_named(steps[: number + 1]))
        reached += fault.fired
        fault.remove()
        found = found or case.go_on()
        if found:
            wrong.append(f"{errno.errorcode[error]} at step {number} of {len(steps)}, {steps[number]}: {found}")
    assert reached > 0
    assert not wrong, f"{len(wrong)} of {reached}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", ["nc3", "zarr"])
def test_a_file_that_has_its_name_is_no_failure_though_it_cannot_be_opened_again(fs: FaultyFs, name: str) -> None:
    """Their writers look at what they have published, to go on with it. No caller has asked for that yet."""
    writer, document = WRITERS[name], "zarr.json" if name == "zarr" else WRITERS[name].file
    folder = fs.path / f"opened-{name}"
    folder.mkdir()
    with fs.logged() as steps:
        writer.write(folder / writer.file, 1, False)
    opened = sum(one.operation == "open" and one.name == document for one in steps)
    again = fs.path / f"again-{name}"
    again.mkdir()
    fault = fs.fail("open", errno.EIO, name=document, skip=opened - 1, times=1)
    writer.write(again / writer.file, 1, False)
    assert fault.fired
    fault.remove()
    assert writer.look(again / writer.file) == 1


@pytest.mark.parametrize("name", WRITERS)
def test_errors_that_come_late_are_told(fs: FaultyFs, name: str) -> None:
    """Writes are taken and lost; only the close, or only the fsync of who asks for that, says so."""
    wrong = []
    for at, durable in (("flush", False), ("flush,fsync", True), ("fsync", True)):
        case = Case(fs, WRITERS[name], durable)
        lost = fs.lose(errno.EDQUOT, at=at)
        found = case.try_once("write")
        assert lost.fired
        lost.remove()
        if found:
            wrong.append(f"told at {at}, durable {durable}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", WRITERS)
def test_any_write_may_be_lost_and_told_by_the_next_close(fs: FaultyFs, name: str) -> None:
    """The others arrive, so what was lost must be known before anything leads to it. A writer need not have as many
    writes each time: HDF5 notes the second of a change, and that may be the second of the change before."""
    writes = count_writes(Case(fs, WRITERS[name], False).steps())
    assert writes > 0
    wrong = []
    for number in range(min(writes, 2 * STEPS)):
        case = Case(fs, WRITERS[name], False)
        lost = fs.lose(errno.EIO, at="flush", skip=number, times=1)
        with fs.logged() as steps:
            found = case.try_once("write")
        reached = lost.fired
        lost.remove()
        assert reached == (count_writes(steps) > number)
        if found:
            wrong.append(f"write {number} of {writes}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", WRITERS)
def test_no_write_arrives(fs: FaultyFs, name: str) -> None:
    wrong = []
    for durable in (False, True):
        case = Case(fs, WRITERS[name], durable)
        full = fs.fail("write", errno.ENOSPC)
        found = case.try_once("write")
        assert full.fired
        full.remove()
        found = found or case.go_on()
        if found:
            wrong.append(f"durable {durable}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [one for one in WRITERS if one != "mmap"])  # only what is kept can be mapped
def test_writes_may_be_short(tmp_path: Path, name: str) -> None:
    with faulty_fs(tmp_path, direct=True) as fs:
        case = Case(fs, WRITERS[name], False)
        short = fs.short("write", 1000)
        found = case.try_once("write")
        assert short.fired
        assert not found
