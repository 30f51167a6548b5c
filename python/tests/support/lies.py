"""Reads that lie: the test's side of tests/faults/liar.cpp, which is preloaded into a command.

told = lies(tmp_path, "*/source.bin", do="nothing", after=10)
ran = penstock("bench", ..., env=told.environment)
assert told.lies                 # the fault was reached
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT

SOURCE = ROOT / "tests" / "faults" / "liar.cpp"
COMPILE = ("g++", "-shared", "-fPIC", "-O1", "-std=c++20")


@dataclass(frozen=True)
class Lies:
    """What a command is given, and what it got."""

    environment: dict[str, str]
    log: Path

    def _count(self, letter: str) -> int:
        return self.log.read_text().count(letter) if self.log.exists() else 0

    @property
    def lies(self) -> int:
        return self._count("l")

    @property
    def reads(self) -> int:
        """All of the file that were seen."""
        return self.lies + self._count("t")


def lies(folder: Path, pattern: str, *, do: str, after: int) -> Lies:
    """For a command whose reads of files that match lie after so many. Skips the test where nothing compiles."""
    log = Path(tempfile.mkdtemp(dir=folder)) / "log"
    environment = {"LD_PRELOAD": str(_library()), "LIAR_FILE": pattern, "LIAR_DO": do, "LIAR_AFTER": str(after)}
    return Lies(environment | {"LIAR_LOG": str(log)}, log)


def _library() -> Path:
    """Compiled once for each state of its source."""
    if not shutil.which("g++") or not SOURCE.exists():
        pytest.skip("no g++, or no source, of the library that lies")
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    build = ROOT / "build" if os.access(ROOT, os.W_OK) else Path(tempfile.gettempdir()) / "penstock-tests"
    library = build / "faults" / f"liar-{digest}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    with (library.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            part = library.with_suffix(".part")
            subprocess.run([*COMPILE, str(SOURCE), "-o", str(part), "-ldl"], check=True)
            part.replace(library)
    return library
