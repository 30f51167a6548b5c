"""Signals that land on one step of a writer: kill -9, or Ctrl-C, at each thing that it asks of the file system.

The faulty file system sends the signal to the process that asks, before the step is done or between the deed and its
answer; no moment is left to chance. Every writer is a forked child, so durable/test_signals_at_steps.py runs this as a
process of its own. Arguments: KILL or INT, number of signals, seed, folder. Prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py  # noqa: F401 - what children need is there before they are forked
import netCDF4  # noqa: F401
import pytest
from faulty_fs import CHANGING, FaultyFs, Step, faulty_fs
from writers_rig import WRITERS, Broken, Writer, left_behind

OLD_S = 3600  # the age of what a killed writer left, when the next one comes
INTERRUPTED, FAILED = 42, 43
LIMIT_S = 60
LEFT, NEXT_WRITERS = "left after the next writer", 3


def in_child(write: Callable[[], None], report: Path) -> int:
    """How a forked child ends that does this; what it raised is in the report. One that does not end is an error."""
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            write()
            code = 0
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BaseException:
            report.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    ends = time.monotonic() + LIMIT_S
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError("a writer did not end")
        time.sleep(0.002)


@dataclass(frozen=True)
class Aim:
    """The step of a writer that a signal is for."""

    name: str
    durable: bool
    number: int
    step: Step


class Range:
    """Where writers are shot at."""

    def __init__(self, fs: FaultyFs, signal_number: int) -> None:
        self.fs, self.signal = fs, signal_number
        self._report = fs.path.parent / "report"
        self.fired = 0  # signals that were sent
        self._folders = 0
        self._first: dict[tuple[str, bool], Path] = {}  # folders that hold a first version, to be copied

    def aims(self) -> list[list[Aim]]:
        """The steps of each writer, durable and not."""
        return [self._aims_of(name, durable) for name in WRITERS for durable in (False, True)]

    def shoot(self, aim: Aim, before: bool) -> str:
        """What is wrong after it, or ''."""
        writer, path = WRITERS[aim.name], self._path(WRITERS[aim.name])
        shutil.copytree(self._first[aim.name, aim.durable], path.parent, dirs_exist_ok=True)
        shot = self.fs.signal(CHANGING, self.signal, before=before, skip=aim.number, times=1)
        code = in_child(lambda: writer.write(path, 2, aim.durable), self._report)
        fired = shot.fired
        self.fired += fired
        shot.remove()
        if not fired:
            return ""  # the child took fewer steps than the one that was counted
        wrong = self._judge_end(code) or self._judge_file(writer, path)
        if not wrong and self.signal == signal.SIGINT and left_behind(path.parent, path):
            wrong = f"left behind: {left_behind(path.parent, path)}"
        return wrong or self._judge_next(writer, path, aim.durable)

    def _aims_of(self, name: str, durable: bool) -> list[Aim]:
        writer = WRITERS[name]
        path = self._path(writer)
        self._write(writer, path, 1, durable)
        self._first[name, durable] = self._path(writer).parent
        shutil.copytree(path.parent, self._first[name, durable], dirs_exist_ok=True)
        with self.fs.logged() as steps:
            self._write(writer, path, 2, durable)
        changing = [one for one in steps if one.operation in CHANGING.split(",") and one.pid]
        return [Aim(name, durable, number, step) for number, step in enumerate(changing)]

    def _path(self, writer: Writer) -> Path:
        self._folders += 1
        folder = self.fs.path / str(self._folders)
        folder.mkdir()
        return folder / writer.file

    def _write(self, writer: Writer, path: Path, version: int, durable: bool) -> None:
        code = in_child(lambda: writer.write(path, version, durable), self._report)
        assert code == 0, f"without a signal it ended with {code}: {self._report.read_text()}"

    def _judge_end(self, code: int) -> str:
        if self.signal == signal.SIGKILL:
            return "" if code == -signal.SIGKILL else f"it was killed, and ended with {code}"
        if code == INTERRUPTED:
            return ""
        return f"not KeyboardInterrupt but {self._report.read_text() if code == FAILED else f'exit {code}'}"

    def _judge_file(self, writer: Writer, path: Path) -> str:
        try:
            found = writer.look(path)
        except Broken as error:
            return f"the file is broken: {error}"
        return "" if found in (1, 2) else f"version {found} is there"

    def _judge_next(self, writer: Writer, path: Path, durable: bool) -> str:
        """It comes much later, goes on from what is there, and leaves nothing of either. The kernel may give up the
        lock of a killed process after its parent has heard of the end: then the writer after it clears up."""
        for _ in range(NEXT_WRITERS):
            wrong = self._judge_next_once(writer, path, durable)
            if not wrong.startswith(LEFT):
                break
        return wrong

    def _judge_next_once(self, writer: Writer, path: Path, durable: bool) -> str:
        for name in left_behind(path.parent, path):
            os.utime(path.parent / name, (time.time() - OLD_S,) * 2)
        version = writer.look(path) + 1
        code = in_child(lambda: writer.write(path, version, durable), self._report)
        if code != 0:
            return f"the next writer fails: {self._report.read_text()}"
        try:
            found = writer.look(path)
        except Broken as error:
            return f"after the next writer the file is broken: {error}"
        if found != version:
            return f"after the next writer version {found} is there, not {version}"
        left = left_behind(path.parent, path)
        return f"{LEFT}: {left}" if left else ""


def chosen(aims: list[list[Aim]], count: int, chance: random.Random) -> list[Aim]:
    """So many of all, of each writer as many, spread evenly over its steps."""
    each = -(-count // len(aims))
    begins = [(one, chance.random()) for one in aims]
    return [one[int((place + begin) * len(one) / each)] for one, begin in begins for place in range(each)]


def main(kind: str, count: int, seed: int, folder: Path) -> dict[str, object]:
    chance = random.Random(seed)
    wrong, first, trials = Counter(), {}, 0
    gc.freeze()  # a child that looked through what was there would have a copy of its memory
    with faulty_fs(folder) as fs:
        place = Range(fs, {"KILL": signal.SIGKILL, "INT": signal.SIGINT}[kind])
        aims = place.aims()
        for aim in chosen(aims, count, chance):
            before = chance.random() < 0.5
            found = place.shoot(aim, before)
            trials += 1
            if found:
                wrong[aim.name] += 1
                when = "before" if before else "after"
                first.setdefault(aim.name, f"{when} step {aim.number} ({aim.step}), durable {aim.durable}: {found}")
    return {"trials": trials, "fired": place.fired, "steps": sum(map(len, aims)), "wrong": wrong, "first": first}


if __name__ == "__main__":
    try:
        answer = main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    except pytest.skip.Exception as reason:
        answer = {"skip": str(reason)}
    print(json.dumps(answer))
