"""`penstock run`: streams, words and end are the program's own; what the library cannot reach is refused in words."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from c_abi import preload_rig as rig
from command import PENSTOCK, assert_one_line_error, start_penstock

from penstock import Error
from penstock.cli import programs

HELLO = "int main(void) { return 0; }"


def test_words_streams_and_the_exit_code_are_the_programs(tmp_path: Path) -> None:
    script = "import sys; print(sys.argv[1:], sys.stdin.read()); sys.exit(7)"
    done = rig.under(sys.executable, "-c", script, "--report", "-x", "", input="text", cwd=tmp_path)
    assert (done.code, done.out) == (7, "['--report', '-x', ''] text\n")


def test_signals_answer_as_they_would_without(tmp_path: Path) -> None:
    names = "SIGPIPE SIGXFSZ SIGINT SIGTERM SIGHUP"
    show = "import signal; print([signal.getsignal(getattr(signal, n)) for n in '" + names + "'.split()])"
    c = rig.compiled(
        ".c",
        "#include <signal.h>\n#include <stdio.h>\nint main(void) { for (int n = 1; n < 32; ++n) {"
        ' struct sigaction a; if (!sigaction(n, 0, &a) && a.sa_handler != SIG_DFL) printf("%d ", n); } return 0; }',
    )
    assert rig.under(c).out == rig.plain(c).out
    assert rig.under(sys.executable, "-c", show).out == rig.plain(sys.executable, "-c", show).out
    killed = rig.under(sys.executable, "-c", "import os; os.kill(os.getpid(), 15)")
    assert killed.code == -signal.SIGTERM


def test_a_static_program_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text(HELLO)
    built = subprocess.run(
        [rig.compiler("gcc"), "-static", "-nostartfiles", "-nodefaultlibs", "-Wl,-emain", "hello.c", "-o", "hello"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
    )
    assert built.returncode == 0, built.stderr
    rig.need_library()
    assert_one_line_error(start_penstock("run", "--", str(tmp_path / "hello")), "static", "run it without")


def test_programs_with_other_rights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "true"
    shutil.copy(shutil.which("true") or "/bin/true", program)
    programs.check(str(program))
    program.chmod(0o4755)
    programs.check(str(program))  # one's own
    monkeypatch.setattr(os, "getuid", lambda: program.stat().st_uid + 1)
    with pytest.raises(Error, match="setuid"):
        programs.check(str(program))


@pytest.mark.parametrize("right", ["setgid", "capabilities"])
def test_programs_with_rights_of_a_group_or_of_their_own_are_refused(
    right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "true"
    shutil.copy(shutil.which("true") or "/bin/true", program)
    program.chmod(0o2755 if right == "setgid" else 0o755)
    programs.check(str(program))  # of one's own group, without capabilities
    if right == "setgid":
        monkeypatch.setattr(os, "getgid", lambda: program.stat().st_gid + 1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: program.stat().st_uid + 1)
        monkeypatch.setattr(os, "getxattr", lambda name, key: b"one" if key == "security.capability" else b"")
    with pytest.raises(Error, match=right) as told:
        programs.check(str(program))
    assert programs.WITHOUT in str(told.value)


WRITES = """
import os, sys
for name in sys.argv[1:]:
    open(name, "wb", 0).write(bytes(1 << 20))
print(os.environ.get("GFORTRAN_UNFORMATTED_BUFFER_SIZE"))
"""


def test_options_reach_the_library_and_the_runtime_of_fortran(tmp_path: Path) -> None:
    words, least = (sys.executable, "-c", WRITES, "a.nc", "b.nc", "c.bin"), ("--least", "1MiB")
    done = rig.under(*words, options=least, cwd=tmp_path)
    assert done.report is not None
    assert ([row["name"] for row in done.report["files"]], done.out) == (["a.nc", "b.nc", "c.bin"], "None\n")
    some = rig.under(*words, options=(*least, "--match", "a*", "--match", "*.bin", "--whole-records"), cwd=tmp_path)
    assert some.report is not None
    assert ([row["name"] for row in some.report["files"]], some.out) == (["a.nc", "c.bin"], "1\n")


def test_a_program_that_takes_the_place_of_another_has_the_report(tmp_path: Path) -> None:
    copy = "dd if=/dev/zero of=%s bs=1M count=1 status=none"
    done = rig.under("sh", "-c", f"{copy % 'first'}; exec {copy % 'second'}", options=("--least", "1MiB"), cwd=tmp_path)
    assert done.report is not None
    assert done.report["program"].endswith("/dd") and [row["name"] for row in done.report["files"]] == ["second"]


def elf(*segments: tuple[int, bytes], machine: bytes | None = None) -> bytes:
    """A program that has only what is looked at."""
    head = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    struct.pack_into("=Q", head, 32, 64)
    struct.pack_into("=HH", head, 54, 56, len(segments))
    if machine is not None:
        head[18:20] = machine
    at = 64 + 56 * len(segments)
    table, data = b"", b""
    for kind, content in segments:
        table += struct.pack("=IIQQQQQQ", kind, 4, at + len(data), 0, 0, len(content), len(content), 1)
        data += content
    return bytes(head) + table + data


GLIBC = (3, b"/lib64/ld-linux-x86-64.so.2\0")
GO = (4, struct.pack("=III", 4, 4, 4) + b"Go\0\0" + b"id\0\0")
OTHER_NOTE = (4, struct.pack("=III", 4, 4, 3) + b"GNU\0" + b"id\0\0")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (elf(GLIBC, OTHER_NOTE), None),
        (elf(OTHER_NOTE), "statically"),
        (elf((3, b"/lib/ld-musl-x86_64.so.1\0")), "musl"),
        (elf(GLIBC, OTHER_NOTE, GO), "program of Go"),
        (elf(GLIBC, machine=b"\x28\x00"), "another kind of machine"),
        (b"echo no first line\n", "neither a program"),
        (b"#!/nowhere/interpreter\n", "interpreter"),
        (b"#!" + sys.executable.encode() + b"\n", None),
        (b"#!/usr/bin/env python3\n", None),
    ],
)
def test_what_the_file_tells_of_a_program_is_heeded(content: bytes, says: str | None, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(content)
    program.chmod(0o755)
    if says is None:
        assert programs.check(str(program)) == str(program)
    else:
        with pytest.raises(Error, match=says) as told:
            programs.check(str(program))
        assert programs.WITHOUT in str(told.value)


def test_wrong_words_are_told(tmp_path: Path) -> None:
    rig.need_library()
    assert_one_line_error(start_penstock("run", "--", "no-such-program"), "no such program")
    assert_one_line_error(start_penstock("run", "--", str(tmp_path)), "this is a folder")
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    assert_one_line_error(start_penstock("run", "--", str(plain)), "you may not execute this file")
    assert start_penstock("run", "--least", "much", "--", "true").code == 2
    assert start_penstock("run").code == 2


@pytest.mark.parametrize(
    ("report", "cause"),
    [
        ("/nowhere/x", "report cannot be written: No such file"),
        ("folder", "report cannot be written: it is the name of a folder"),
        ("new/", "report cannot be written: it is the name of a folder"),
        ("/sys/x", "report cannot be written: "),
        ("", "--report: the name is empty"),
    ],
)
def test_a_report_that_could_not_be_written_is_refused_before_the_program_runs(
    report: str, cause: str, tmp_path: Path
) -> None:
    rig.need_library()
    (tmp_path / "folder").mkdir()
    assert_one_line_error(start_penstock("run", "--report", report, "--", "touch", "ran", cwd=tmp_path), cause)
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_a_program_that_is_preloaded_already_keeps_that(tmp_path: Path) -> None:
    rig.need_library()
    show = "import os; print(os.environ['LD_PRELOAD'])"
    other = str(rig.LIBRARY.resolve())
    done = rig.under(sys.executable, "-c", show, env=os.environ | {"LD_PRELOAD": other})
    assert done.out.split() == [str(rig.LIBRARY.resolve()), other]


@pytest.mark.parametrize(
    ("surroundings", "name"),
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, "r.json.rank3"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "r.json.rank0"),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, "r.json"),
    ],
)
def test_each_rank_has_a_report_of_its_own(surroundings: dict[str, str], name: str, tmp_path: Path) -> None:
    words = [*PENSTOCK, "run", "--report", "r.json", "--", "true"]
    subprocess.run(words, check=True, cwd=tmp_path, env=os.environ | surroundings, timeout=60)
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_program_may_be_run_without_streams(tmp_path: Path) -> None:
    script = 'exec "$@" >&- 2>&- <&-'
    words = ["sh", "-c", script, "sh", *PENSTOCK, "run", "--", "touch", str(tmp_path / "made")]
    assert subprocess.run(words, check=False, timeout=60).returncode == 0
    assert (tmp_path / "made").exists()
