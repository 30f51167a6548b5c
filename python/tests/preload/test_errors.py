"""Errors of storage come to a program where they came without the library, and `--durable` makes close tell them.

The file system fails on command: support/faulty_fs.py."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from c_abi import preload_rig as rig
from faulty_fs import faulty_fs

WRITES = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void say(const char* what, long result) {
    printf("%s %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}
int main(int count, char** words) {
    static char piece[1 << 20];
    int fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0644), syncs = count > 2;
    for (int i = 0; i < 24; ++i) {
        long wrote = write(fd, piece, sizeof piece);
        if (wrote != sizeof piece) { say("write", wrote); break; }
    }
    if (syncs) { say("fsync", fsync(fd)); say("fsync", fsync(fd)); }
    say("close", close(fd));
    return 0;
}
"""
STREAM = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
int main(int count, char** words) {
    static char piece[1 << 20];
    FILE* file = fopen(words[count - 1], "w");
    for (int i = 0; i < 12; ++i) fwrite(piece, 1, sizeof piece, file);
    fputs("what the stream still holds", file);
    int result = fclose(file);
    printf("%d %s\n", result, result ? strerror(errno) : "");
    return 0;
}
"""

# Ways to write that no function of the library sees, or sees in part.
UNSEEN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>
static char piece[100000];
static void text(FILE* file) { for (int i = 0; i < 3000; ++i) fprintf(file, "%d\n", i); }
int main(int count, char** words) {
    const char *way = words[1], *name = words[2];
    if (!strcmp(way, "fprintf")) { FILE* file = fopen(name, "w"); text(file); return fclose(file); }
    if (!strcmp(way, "no fclose")) { FILE* file = fopen(name, "w"); fwrite(piece, 1, sizeof piece, file); text(file); }
    if (!strcmp(way, "stdout")) { fwrite(piece, 1, sizeof piece, stdout); text(stdout); }
    if (!strcmp(way, "sendfile")) {
        int from = memfd_create("from", 0), to = open(name, O_WRONLY | O_CREAT, 0644);
        if (write(from, piece, sizeof piece) < 0 || lseek(from, 0, SEEK_SET) != 0) return 1;
        return sendfile(to, from, NULL, sizeof piece) < 0 || close(to);
    }
    if (!strcmp(way, "mmap")) {
        int to = open(name, O_RDWR | O_CREAT, 0644);
        if (ftruncate(to, sizeof piece) != 0) return 1;
        memset(mmap(NULL, sizeof piece, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0), 'm', sizeof piece);
        return close(to);
    }
    if (!strcmp(way, "mkstemp")) {
        char made[4096];
        snprintf(made, sizeof made, "%s.XXXXXX", name);
        FILE* file = fdopen(mkstemp(made), "w");
        text(file);
        return fclose(file) || rename(made, name);
    }
    if (!strcmp(way, "stdout closed")) { text(stdout); return fclose(stdout); }
    if (!strcmp(way, "failed dup2")) {
        int to = open(name, O_WRONLY | O_CREAT, 0644);
        if (dup2(9999, to) >= 0) return 1;
        return write(to, piece, sizeof piece) < 0 || close(to);
    }
    if (!strcmp(way, "freopen")) {
        FILE* file = freopen(NULL, "a", fopen(name, "w"));
        text(file);
        return fclose(file);
    }
    if (!strcmp(way, "quick_exit")) {
        int to = open(name, O_WRONLY | O_CREAT, 0644);
        if (write(to, piece, sizeof piece) < 0) return 1;
        quick_exit(0);
    }
    if (!strcmp(way, "given")) return write(atoi(words[4]), piece, sizeof piece) < 0;
    if (!strcmp(way, "child")) {
        int to = open(name, O_WRONLY | O_CREAT, 0644);
        if (fork() != 0) return wait(NULL) < 0;
        return write(to, piece, sizeof piece) < 0;
    }
    if (!strcmp(way, "many files")) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < 520; ++i) if (open(words[3], O_RDWR | O_CREAT, 0644) < 0) return 1;
        int to = open(name, O_WRONLY | O_CREAT, 0644);
        return write(to, piece, sizeof piece) < 0 || close(to);
    }
    return 0;
}
"""


@pytest.mark.parametrize("operation", ["write", "fsync"])
@pytest.mark.parametrize("cause", [errno.EIO, errno.ENOSPC])
def test_late_errors_come_where_they_came(operation: str, cause: int, tmp_path: Path) -> None:
    program = rig.compiled(".c", WRITES)
    said = []
    for environment in (None, rig.preloaded()):
        with faulty_fs(tmp_path, writeback=True) as fs:
            fault = fs.fail(operation, cause, name="file", after_bytes=(10 << 20) if operation == "write" else 0)
            done = rig.plain(program, fs.path / "file", "sync", env=environment)
            assert done.code == 0 and fault.fired
            said.append(done.out)
    assert said[0] == said[1]
    assert os.strerror(cause) in said[0]


@pytest.mark.parametrize("text", [WRITES, STREAM], ids=["close", "fclose"])
def test_durable_makes_close_wait_and_tell(text: str, tmp_path: Path) -> None:
    program = rig.compiled(".c", text)
    with faulty_fs(tmp_path) as fs:
        fault = fs.fail("fsync", errno.EIO, name="file")
        assert "error" not in rig.plain(program, fs.path / "file", env=rig.preloaded()).out and not fault.fired
        done = rig.plain(program, fs.path / "file", env=rig.preloaded(PENSTOCK_RUN_DURABLE="1"))
        assert done.out.endswith("-1 Input/output error\n") and fault.fired == 1
        fault.remove()
        assert "error" not in rig.plain(program, fs.path / "file", env=rig.preloaded(PENSTOCK_RUN_DURABLE="1")).out
        assert fs.counts()["fsync"] == 2


def test_durable_holds_for_a_program_that_ends_without_closing(tmp_path: Path) -> None:
    ends = WRITES.replace('say("close", close(fd));', "_exit(0);")
    for text in (ends, ends.replace("_exit(0)", "exit(0)")):
        program = rig.compiled(".c", text)
        with faulty_fs(tmp_path) as fs:
            rig.plain(program, fs.path / "file", env=rig.preloaded(PENSTOCK_RUN_DURABLE="1"))
            assert fs.counts()["fsync"] == 1


WAYS = ["fprintf", "no fclose", "stdout", "sendfile", "mmap", "mkstemp", "many files"]
WAYS += ["stdout closed", "failed dup2", "freopen", "quick_exit", "given", "child"]


def test_durable_holds_for_bytes_that_were_written_unseen(tmp_path: Path) -> None:
    program = rig.compiled(".c", UNSEEN)
    environment = rig.preloaded(PENSTOCK_RUN_DURABLE="1")
    with faulty_fs(tmp_path) as fs:
        for way in WAYS:
            with fs.logged() as steps, (fs.path / f"{way} out").open("wb") as out:
                words = [program, way, fs.path / way, tmp_path / "other", str(out.fileno())]
                given = {"pass_fds": [out.fileno()]} if way == "given" else {"stdout": out}
                subprocess.run(words, env=environment, check=True, timeout=60, **given)
            done: dict[str, list[str]] = {}
            for step in steps:
                if Path(step.name).name.startswith(way) and step.operation in ("write", "fsync"):
                    done.setdefault(step.name, []).append(step.operation)
            written = [one for one in done.values() if "write" in one]
            assert written, way
            assert all(one[-1] == "fsync" for one in written), (way, done)


def test_what_a_child_leaves_in_a_stream_is_not_written_at_its_exit(tmp_path: Path) -> None:
    text = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    fputs("once ", stdout);
    if (fork() == 0) _exit(0);
    wait(NULL);
    return 0;
}
"""
    done = rig.plain(rig.compiled(".c", text), env=rig.preloaded(PENSTOCK_RUN_DURABLE="1"))
    assert done.out == "once "


def test_other_files_than_those_that_match_are_left_alone(tmp_path: Path) -> None:
    program = rig.compiled(".c", WRITES)
    with faulty_fs(tmp_path) as fs:
        environment = rig.preloaded(PENSTOCK_RUN_DURABLE="1", PENSTOCK_RUN_MATCH="*.nc\nother")
        rig.plain(program, fs.path / "file", env=environment)
        assert fs.counts().get("fsync", 0) == 0
        rig.plain(program, fs.path / "x.nc", env=environment)
        assert fs.counts()["fsync"] == 1
