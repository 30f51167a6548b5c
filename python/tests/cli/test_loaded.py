"""Most tests run the command in a process forked from one that has loaded it; that tells what a started one tells."""

from __future__ import annotations

import os
from pathlib import Path

import command
import pytest
from command import LIMIT_S, LOADED, run_penstock, start_penstock

LINES = [
    ["read", "a", "--to", "host", "--bytes", "3"],
    ["read", "no such file"],
    ["read", "a", "--bytes", "-1"],
    ["write", "\udcff\u00e9", "--bytes", "1KiB", "--verify"],
    ["bench", "--help"],
    [],
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_run_is_what_a_started_command_is(tmp_path: Path, line: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "start_penstock", lambda *_words, **_options: pytest.fail("it was started"))
    (tmp_path / "a").write_bytes(b"abc")
    ran, started = run_penstock(*line, cwd=tmp_path), start_penstock(*line, cwd=tmp_path)
    assert (ran.code, _without_times(ran.out), ran.err) == (started.code, _without_times(started.out), started.err)


def _without_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if "/s" not in line and not line.startswith("  cpu ")]


def test_a_run_has_its_own_environment_and_each_starts_anew(tmp_path: Path) -> None:
    line = ["write", tmp_path / "a", "--bytes", "8MiB"]
    drawn = [run_penstock(*line, env={"PENSTOCK_PROGRESS": wanted}).err != "" for wanted in ("1", "0", "1")]
    assert drawn == [True, False, True]


@pytest.mark.parametrize("name", ["PYTHONPATH", "LC_ALL", "HOME", "TERM"])
def test_what_modules_may_read_while_they_load_starts_a_command(tmp_path: Path, name: str) -> None:
    run_penstock("--version")
    assert LOADED.run(["--version"], {**os.environ, name: str(tmp_path)}, tmp_path, LIMIT_S) is None
