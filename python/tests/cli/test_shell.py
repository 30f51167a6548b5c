"""What surrounds the command in a shell: signals, streams, limits, and names that are no text."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import PENSTOCK, Ran, assert_one_line_error

import penstock as library

Run = Callable[..., Ran]
STRANGE = os.fsdecode(b"not \xff\xfe text")


def in_shell(line: str, place: Path, **environment: str) -> Ran:
    """Runs a line of bash in which "$@" is the command."""
    command = ["bash", "-c", line, "bash", *PENSTOCK]
    settings = os.environ | {"PENSTOCK_PROGRESS": "0"} | environment
    done = subprocess.run(command, cwd=place, env=settings, capture_output=True, text=True, timeout=60)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_names_that_are_no_text(penstock: Run, tmp_path: Path) -> None:
    ran = penstock("write", STRANGE, "--bytes", "1MiB", "--verify", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert [os.fsencode(path.name) for path in tmp_path.iterdir()] == [b"not \xff\xfe text"]
    ran = penstock("read", STRANGE, "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert os.fsencode(ran.json["file"]) == b"not \xff\xfe text"
    assert penstock("read", STRANGE, cwd=tmp_path).code == 0
    assert penstock("doctor", STRANGE, "--json", cwd=tmp_path).code == 0
    assert_one_line_error(penstock("read", STRANGE + "x", cwd=tmp_path), "open", "No such file")


def test_an_error_has_the_name_as_python_spells_it(tmp_path: Path) -> None:
    with pytest.raises(library.Error) as caught:
        library.load(tmp_path / STRANGE, device="host")
    assert caught.value.file == str(tmp_path / STRANGE)


def test_line_ends_and_control_characters_in_names_are_spelled_out(penstock: Run, tmp_path: Path) -> None:
    (tmp_path / "two\nlines\x1b[31m").write_bytes(b"1")
    ran = penstock("read", "two\nlines\x1b[31m", cwd=tmp_path)
    assert ran.out.startswith("read two\\nlines\\x1b[31m: 1 B in ")
    assert_one_line_error(penstock("read", "no\nfile", cwd=tmp_path), "no\\nfile")


@pytest.mark.parametrize("arguments", ["read sample.bin", "doctor --json", "--help"])
def test_stdout_that_is_full(sample: Path, arguments: str) -> None:
    ran = in_shell(f'"$@" {arguments} > /dev/full', sample.parent)
    assert_one_line_error(ran, "stdout", "No space left")


@pytest.mark.parametrize("command", ["read", "write", "explain"])
def test_help_lists_every_path(penstock: Run, command: str) -> None:
    words = penstock(command, "--help", env={"COLUMNS": "200"}).out.replace(",", " ").replace(".", " ").split()
    assert set(library.path_names()) <= set(words)


def test_streams_that_are_closed(sample: Path) -> None:
    assert_one_line_error(in_shell('"$@" read sample.bin >&-', sample.parent), "stdout", "closed")
    assert in_shell('"$@" read absent.bin 2>&-', sample.parent).code == 1
    assert in_shell('"$@" read sample.bin <&-', sample.parent).code == 0


def test_a_closed_pipe_is_silent(sample: Path) -> None:
    ran = in_shell('"$@" read sample.bin --json | true', sample.parent)
    assert ran.err == ""


def test_a_terminal_without_these_letters(sample: Path) -> None:
    line = '"$@" bench core --quick --dir . --file-bytes 1MiB --repeats 1 --seconds 1 --out rows.jsonl'
    ran = in_shell(line, sample.parent, PYTHONIOENCODING="ascii")
    assert ran.code == 0, ran.err


def test_few_files_and_little_memory(sample: Path) -> None:
    for limit in ("-n 5", "-v 100000"):
        ran = in_shell(f'ulimit {limit}; "$@" read sample.bin --digest', sample.parent)
        if ran.code != 0 and "memory for thread-local data" not in ran.err:  # the loader's words, before any of ours
            assert_one_line_error(ran)


IN_A_CALL = """
import hashlib, pathlib, sys, time
import penstock.cli.app
from penstock import cli
from penstock.calibration.workspace import Scratch

def rounds_of(seconds):
    began = time.perf_counter()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 10_000)
    return int(10_000 * seconds / (time.perf_counter() - began))

def command(**_):
    with Scratch(pathlib.Path(sys.argv[1])):
        rounds = rounds_of(0.25)
        print("begins", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", rounds)  # no signal ends it, and none is heard in it
        time.sleep(60)

penstock.cli.app.main_command = lambda: command
sys.exit(cli.main(["x"]))
"""


def test_an_impatient_users_signals_wait_for_a_call_that_is_under_way(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IN_A_CALL, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        for _ in range(4):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "penstock: interrupted")
    assert list(tmp_path.iterdir()) == [], "it cleaned up"


STRUCK = """
import importlib, os, sys
from penstock import cli

def strike(): os.kill(os.getpid(), {sent})
calls = 0

def struck(call, *given, **options):
    global calls
    calls += 1
    if calls == {turn} and {before}: strike()
    found = call(*given, **options)
    if calls == {turn} and not {before}: strike()
    return found

home, _, name = "{place}".partition(":")
holder = importlib.import_module(home)
*parts, last = name.split(".")
for part in parts: holder = getattr(holder, part)
original = getattr(holder, last)
setattr(holder, last, lambda *given, **options: struck(original, *given, **options))
sys.exit(cli.main())
"""
MOMENTS = {  # where the signal comes: a function, which of its calls, and whether before or after it
    "the command listens": ("penstock.cli:_open_streams", 1, True),
    "the file is made": ("penstock._api:Context.create", 1, False),
    "the first window begins": ("penstock._files.windows:_start", 1, True),
    "two windows move": ("penstock._files.windows:_finish", 1, True),
    "the third window moves": ("penstock._files.windows:_start", 3, False),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 130)])
@pytest.mark.parametrize("moment", MOMENTS)
def test_signals_at_any_moment(tmp_path: Path, sent: signal.Signals, code: int, moment: str) -> None:
    """From the moment that the command listens: one word, its exit code, nothing left."""
    place, turn, before = MOMENTS[moment]
    script = STRUCK.format(sent=int(sent), place=place, turn=turn, before=before)
    command = [PENSTOCK[0], "-c", script, "write", "big.bin", "--from", "host", "--bytes", "256MiB"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("penstock: terminated" if code == 143 else "penstock: interrupted")
    assert list(tmp_path.iterdir()) == []


# Where an exception that a signal's handler raises is lost, and the command would go on.
LOSING = {
    "a callback of a weak reference": "import weakref; t = Thing(); kept = weakref.ref(t, lambda _: send()); del t",
    "a finaliser": "class Last:\n    def __del__(self): send()\nLast()",
    "code that takes all exceptions": "try: send()\nexcept BaseException: pass",
    "an error made of it": "try: send()\nexcept BaseException: raise penstock.Error(operation='read', cause='it')",
    "the import of a module": "sys.meta_path.insert(0, Finder()); import colorsys",
}


@pytest.mark.sampled
@pytest.mark.parametrize("place", LOSING)
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_is_lost_where_it_is_raised(tmp_path: Path, sent: signal.Signals, code: int, place: str) -> None:
    script = (
        "import os, signal, sys, penstock; from penstock import cli; from penstock._files import windows\n"
        "run = windows.run\n"
        "class Thing: pass\n"
        "class Finder:\n    def find_spec(self, *_): send()\n"
        f"def send(): os.kill(os.getpid(), {int(sent)}); sum(range(100))\n"
        f"def lost(job):\n    exec({LOSING[place]!r}, globals())\n    return run(job)\n"
        "windows.run = lost; sys.exit(cli.main())"
    )
    command = [PENSTOCK[0], "-c", script, "write", "big.bin", "--bytes", "1GiB"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    word = "interrupted" if code == 130 else "terminated"
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"penstock: {word}\n")
    assert list(tmp_path.iterdir()) == []


LOADING = """
import importlib.abc, os, signal, sys

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.{sent})

module, sys.argv[1] = sys.argv[1], "--version"
sys.meta_path.insert(0, Interrupted())
sys.modules.pop(module, None)
from penstock.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["contextlib", "penstock._error", "penstock.cli.app", "penstock._core", "typer"])
@pytest.mark.parametrize(("sent", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_modules_load(module: str, sent: str, code: int) -> None:
    """Before main() listens nothing is said, after that one line."""
    early = module in ("contextlib", "penstock._error")
    command = [PENSTOCK[0], "-c", LOADING.format(sent=sent), module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    word = "interrupted" if sent == "SIGINT" else "terminated"
    assert done.stderr == ("" if early else f"penstock: {word}\n")
    assert done.returncode == (-signal.SIGTERM if early and sent == "SIGTERM" else code)
    assert done.stdout == ""


def test_nohup_is_respected(tmp_path: Path) -> None:
    command = ["bash", "-c", 'trap "" HUP; exec "$@"', "bash", *PENSTOCK]
    process = subprocess.Popen([*command, "write", "file", "--bytes", "1GiB"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    "row", ['{"kind":"trial"}', '{"kind":["a"]}', '{"kind":"core"}', '{"kind":"missing"}', "[" * 99999]
)
def test_results_that_are_none(penstock: Run, tmp_path: Path, row: str) -> None:
    for text in (row + "\n", '{"kind":"machine","machine":{}}\n' + row + "\n"):
        (tmp_path / "rows.jsonl").write_text(text)
        ran = penstock("report", tmp_path / "rows.jsonl", "--out", tmp_path / "page.html")
        assert_one_line_error(ran, "read results", "rows.jsonl", "line 1 is not a result", "penstock bench")
        assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("row", ["{", "x", '{"kind": core}', "[" * 99999, '{"a": 1} {}'])
def test_a_line_that_is_no_json_is_called_so_in_words_of_ours(penstock: Run, tmp_path: Path, row: str) -> None:
    (tmp_path / "rows.jsonl").write_text(row + "\n")
    ran = penstock("report", tmp_path / "rows.jsonl", "--out", tmp_path / "page.html")
    assert_one_line_error(ran, "line 1 is not a result: it is no JSON object; name a file")


def test_a_run_that_was_killed_is_reported(penstock: Run, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    options = ("--quick", "--file-bytes", "1MiB", "--repeats", "1", "--seconds", "5", "--dir", tmp_path, "--out", rows)
    assert penstock("bench", "report", *options).code == 0
    text = rows.read_text()
    rows.write_text(text[: len(text) - len(text.splitlines()[-1]) // 2])
    ran = penstock("report", rows, "--out", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    assert "cut short" in ran.out
    page = (tmp_path / "page.html").read_text()
    assert "cut short" in page
    assert page.index("By itself Penstock reads") < page.index("<svg"), "the answer comes first"
    assert_one_line_error(penstock("report", rows, "--out", tmp_path / "no" / "page.html"), "page.html", "--out")
    rows.write_text(json.dumps({"kind": "unheard of"}) + "\n")
    assert_one_line_error(penstock("report", rows), "no results in it")
    rows.write_bytes(b"\x89HDF\r\n")
    assert_one_line_error(penstock("report", rows), "it is no text, so no JSON lines", "`penstock bench`")


def test_results_that_cannot_be_written(penstock: Run, tmp_path: Path) -> None:
    ran = penstock(
        "bench", "report", "--quick", "--dir", tmp_path, "--file-bytes", "1MiB", "--out", tmp_path / "no" / "r"
    )
    assert_one_line_error(ran, "write results", "No such file", "--out")
    ran = penstock("bench", "report", "--quick", "--dir", tmp_path, "--file-bytes", "1MiB", "--out", "/dev/full")
    assert_one_line_error(ran, "write results", "/dev/full", "No space left", "--out")
    assert list(tmp_path.iterdir()) == []
