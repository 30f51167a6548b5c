"""What breaks libraries that hold bytes back: programs see the same bytes, sizes, offsets and errors with ours.

tests/preload/hazards.c has a function for each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from c_abi import preload_rig as rig

HAZARDS = re.findall(r'\{"(\w+)", \w+\}', (rig.SOURCES / "hazards.c").read_text())
READ_BY_OTHERS = ("changed",)


@pytest.mark.parametrize("hazard", HAZARDS)
def test_a_program_cannot_tell_the_library_from_the_kernel(hazard: str, tmp_path: Path) -> None:
    program = rig.built("hazards", "-pthread")
    without = rig.plain(program, hazard, tmp_path / "file")
    assert (without.code, without.err) == (0, "")
    report = tmp_path / "report.json"
    more = rig.preloaded(PENSTOCK_RUN_REPORT=str(report), PENSTOCK_RUN_LEAST_BYTES="4194304")
    early = 0
    for _ in range(3):  # the threads that ask need a core beside the program: one run of three had one
        done = rig.plain(program, hazard, tmp_path / "file", env=more)
        assert (done.code, done.err) == (0, "")
        if hazard == "killed":  # in a child that leaves no report
            return
        (row,) = [row for row in json.loads(report.read_text())["files"] if row["name"].endswith("/file")]
        early = max(early, row["written"]["early_writeback_bytes"])
        if row["written"]["why"] == rig.IN_MEMORY or early >= 4 << 20:  # the library was at work meanwhile
            return
    pytest.fail(f"{early} bytes were asked for early: {row}")


def test_there_are_twelve_hazards_and_more() -> None:
    assert len(HAZARDS) >= 12


FORKS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static char piece[100000];
static void* opens(void* name) {
    for (;;) {
        int to = open(name, O_RDWR | O_CREAT, 0644);
        if (read(to, piece, sizeof piece) < 0 || close(to) != 0) exit(2);
    }
}
int main(int count, char** words) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, opens, words[1]);
    for (int i = 0; i < 400; ++i) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            int to = open(words[1], O_RDWR | O_CREAT, 0644);
            if (read(to, piece, sizeof piece) < 0) _exit(1);
            _exit(close(to));
        }
        int status;
        if (waitpid(child, &status, 0) < 0 || status != 0) _exit(3);
    }
    _exit(count != 2);
}
"""


def test_children_of_a_program_whose_threads_open_files_end(tmp_path: Path) -> None:
    """The linker's lock that a thread of the parent has at a fork is held in the child for ever."""
    (tmp_path / "file").write_bytes(bytes(100000))
    program = rig.compiled(".c", FORKS)
    for environment in (None, rig.preloaded(PENSTOCK_RUN_LEAST_BYTES="65536")):
        assert rig.plain(program, tmp_path / "file", env=environment).code == 0
