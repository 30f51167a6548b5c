"""Unmodified programs, run as they are and under `penstock run`; compiled here, from tests/preload or from text.

A run under the library leaves its report. Stand-ins for libcuda and for the engine show what
the library does with memory of a GPU.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from command import PENSTOCK
from places import ROOT

from penstock import _core

SOURCES = ROOT / "tests" / "preload"
LIBRARY = Path(str(_core.__file__)).parent / "lib" / "libpenstock_preload.so"
COMPILERS = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}
FLANG = ("flang", "flang-new", "flang-new-19")  # LLVM's compiler of Fortran, as distributions name it
LIMIT_S = 120
IN_MEMORY = "the file lies in memory"  # what reports say where a test's folder is one


@cache
def folder() -> Path:
    made = Path(mkdtemp(prefix="preload-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def need_library() -> None:
    if not LIBRARY.is_file():
        pytest.skip("this build has no libpenstock_preload.so")


def compiler(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"no {names[0]}")
    return found


@cache
def built(name: str, *flags: str, target_name: str = "") -> Path:
    """A program or library of tests/preload, in C, C++ or Fortran."""
    source = next(place for suffix in COMPILERS if (place := SOURCES / f"{name}{suffix}").exists())
    target = folder() / (target_name or name)
    command = [compiler(COMPILERS[source.suffix]), "-O1", "-o", target, source, *flags]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    return target


@cache
def compiled(suffix: str, text: str, *compilers: str) -> Path:
    """A program from its text: .c, .cpp or .f90. By the first of some compilers that is there."""
    place = Path(mkdtemp(dir=folder()))
    source = place / f"program{suffix}"
    source.write_text(text)
    command = [compiler(*(compilers or (COMPILERS[suffix],))), "-O1", "-o", "program", source.name]
    subprocess.run(command, check=True, timeout=LIMIT_S, cwd=place)
    return place / "program"


@dataclass(frozen=True)
class Run:
    """How a program ended, and the report of a run under the library."""

    code: int
    out: str
    err: str
    report: dict[str, Any] | None = None

    def file(self, name: str | Path) -> dict[str, Any]:
        assert self.report is not None
        found = [row for row in self.report["files"] if Path(row["name"]).name == Path(name).name]
        assert len(found) == 1, self.report
        return found[0]


def plain(*words: object, **options: Any) -> Run:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False, **options
    )
    return Run(done.returncode, done.stdout, done.stderr)


def under(*words: object, options: tuple[str, ...] = (), **more: Any) -> Run:
    """The same under `penstock run`, by a shell's command line."""
    need_library()
    report = Path(mkdtemp(dir=folder())) / "report.json"
    done = plain(*PENSTOCK, "run", "--report", report, *options, "--", *words, **more)
    text = report.read_text(errors="surrogateescape") if report.exists() else ""
    return Run(done.code, done.out, done.err, json.loads(text) if text else None)


def preloaded(**more: str) -> dict[str, str]:
    """An environment for a program whose start is not what a test is about."""
    need_library()
    return os.environ | {"LD_PRELOAD": str(LIBRARY)} | more
