"""The installed command run as a user would, and what each of its errors looks like."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loaded_command import RUN, LoadedCommand
from places import EXAMPLES

from penstock import cli

PENSTOCK = [sys.executable, "-c", f"import sys; {RUN}"]
LIMIT_S = 120  # "in bounded time" of every command here
LOADED = LoadedCommand()


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


def run_penstock(*arguments: str | Path, **options: Any) -> Ran:
    environment = os.environ | {"PENSTOCK_PROGRESS": "0"} | options.pop("env", {})
    words = [str(argument) for argument in arguments]
    if options.keys() <= {"cwd"}:
        ran = LOADED.run(words, environment, Path.cwd() / options.get("cwd", ""), LIMIT_S)
        if ran is not None:
            return Ran(*ran)
    return start_penstock(*words, env=environment, **options)


def start_penstock(*arguments: str | Path, **options: Any) -> Ran:
    """By an interpreter of its own, whose start is then part of what is tested."""
    command = [*PENSTOCK, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, **options)
    return Ran(done.returncode, done.stdout, done.stderr)


def run_example(name: str, *arguments: object) -> str:
    """What an example prints that is run on the emulated device."""
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments), "--device", "host"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the command in this process: it does not listen to signals. It would listen on after its end, and end this
    process at a signal that some later test sends to itself."""
    monkeypatch.setattr(cli, "_listen", lambda _answer: None)
    monkeypatch.setattr(cli._Signals, "listen", lambda _signals: None)


def assert_one_line_error(ran: Ran, *words: str) -> None:
    """Not 0, nothing on stdout, one line on stderr without a traceback, holding all words."""
    assert ran.code not in (0, None), ran.out
    assert ran.err.startswith("penstock: "), f"exit code {ran.code}, stdout {ran.out!r}, stderr {ran.err!r}"
    assert ran.err.count("\n") == 1, ran.err
    assert "Traceback" not in ran.err
    assert "internal error" not in ran.err, ran.err
    for word in words:
        assert word in ran.err, ran.err
