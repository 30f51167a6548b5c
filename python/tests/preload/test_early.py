"""What is asked of the kernel early, and what is not: by the page cache, on a file system with a small window."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_abi import preload_rig as rig
from command import PENSTOCK
from faulty_fs import faulty_fs

# Reads half of 64 MiB in records as gfortran does, back and forth, then waits until a page further on is in the page
# cache, for at most so many ms. It is the last of a piece: asked for once, the kernel reads the first part.
READS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int count, char** words) {
    static char record[1 << 19];
    int fd = open(words[1], O_RDONLY);
    for (int i = 0; i < 64; ++i) {
        if (read(fd, record, 1 << 17) != 1 << 17 || read(fd, record, 3 << 17) != 3 << 17) return 1;
        if (lseek(fd, -1000, SEEK_CUR) < 0 || read(fd, record, 1000) != 1000) return 1;
    }
    char* ahead = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, (46 << 20) - 4096);
    struct timespec moment = {0, 1000000};
    for (int waited = atoi(words[2]);; --waited) {
        unsigned char here = 0;
        if (mincore(ahead, 4096, &here) != 0) return 2;
        if (here & 1 || waited <= 0) {
            puts(here & 1 ? "ahead" : "not ahead");
            return count != 3 || close(fd);
        }
        nanosleep(&moment, 0);
    }
}
"""


def row(report: Path) -> dict:
    (one,) = json.loads(report.read_text())["files"]
    return one


def test_cold_reads_in_order_are_asked_for_ahead(tmp_path: Path) -> None:
    program = rig.compiled(".c", READS)
    with faulty_fs(tmp_path) as fs:
        (fs.backing / "file").write_bytes(bytes(64 << 20))
        assert rig.plain(program, fs.path / "file", 0).out == "not ahead\n"
    with faulty_fs(tmp_path) as fs:
        (fs.backing / "file").write_bytes(bytes(64 << 20))
        report = tmp_path / "report.json"
        more = rig.preloaded(PENSTOCK_RUN_REPORT=str(report))
        assert rig.plain(program, fs.path / "file", 60_000, env=more).out == "ahead\n"
        assert row(report)["read"]["read_ahead_bytes"] > 4 << 20 and row(report)["read"]["why"] == "asked for"


TWICE = r"""
#include <fcntl.h>
#include <unistd.h>
int main(int count, char** words) {
    static char piece[1 << 19];
    int fd = open(words[1], O_RDONLY);
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 128; ++i) {
            if (read(fd, piece, sizeof piece) != sizeof piece) return 1;
        }
        if (lseek(fd, 0, SEEK_SET)) return 2;
    }
    return count != 2 || close(fd);
}
"""


def test_what_is_cached_is_not_asked_for(tmp_path: Path) -> None:
    program = rig.compiled(".c", TWICE)
    with faulty_fs(tmp_path) as fs:
        (fs.backing / "file").write_bytes(bytes(64 << 20))
        report = tmp_path / "report.json"
        done = rig.plain(program, fs.path / "file", env=rig.preloaded(PENSTOCK_RUN_REPORT=str(report)))
        assert done.code == 0
        read = row(report)["read"]
        assert read["bytes"] == 128 << 20 and read["read_ahead_bytes"] <= 64 << 20


@pytest.mark.parametrize("least", [65536, 200_000_000])
def test_files_below_the_limit_start_no_thread(least: int, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    more = rig.preloaded(PENSTOCK_RUN_REPORT=str(report), PENSTOCK_RUN_LEAST_BYTES=str(least))
    rig.plain("dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=1M", "count=24", env=more)
    found = json.loads(report.read_text())
    in_memory = any(one["written"]["why"] == rig.IN_MEMORY for one in found["files"])
    threads = 2 if least == 65536 and not in_memory else 0
    assert (found["threads"], len(found["files"])) == (threads, 1 if least == 65536 else 0)
    assert found["small_files"]["bytes"] == (0 if least == 65536 else 24 << 20)


def test_files_in_memory_are_left_alone(tmp_path: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    report, file = tmp_path / "report.json", Path(f"/dev/shm/preload-{os.getpid()}")
    try:
        more = rig.preloaded(PENSTOCK_RUN_REPORT=str(report))
        rig.plain("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=24", env=more)
    finally:
        file.unlink(missing_ok=True)
    assert row(report)["written"] == {"bytes": 24 << 20, "early_writeback_bytes": 0, "why": rig.IN_MEMORY}
    assert json.loads(report.read_text())["threads"] == 0


def test_names_of_any_bytes_are_told_in_a_report_that_is_json(tmp_path: Path) -> None:
    names = [b"\xff", "\u00fc \u20ac \U0001f600".encode(), b"\xc3", b"\xed\xa0\x80", b"\xe0\x80\x80", b'"\\\n']
    text = "import os, sys\nfor name in sys.argv[2:]: open(name, 'wb', 0).write(bytes(1 << 20))"
    paths = [os.fsdecode(bytes(tmp_path) + b"/" + name) for name in names]
    report = tmp_path / "report"
    words = [*PENSTOCK, "run", "--report", report, "--least", "1MiB", "--", sys.executable, "-c", text, "", *paths]
    subprocess.run(words, check=True, timeout=rig.LIMIT_S)
    assert [row["name"] for row in json.loads(report.read_bytes())["files"]] == paths


def test_processes_have_reports_of_their_own(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    copy = f"dd if=/dev/zero of='{tmp_path}/%s' bs=1M count=24 2>/dev/null"
    words = f"{copy % 'a'}; {copy % 'b'}; echo $$"
    more = rig.preloaded(PENSTOCK_RUN_REPORT=str(report), PENSTOCK_RUN_PROCESS="1")
    rig.plain("sh", "-c", words, env=more)
    names = [json.loads(one.read_text())["files"] for one in tmp_path.glob("report.json.*")]
    assert sorted(Path(files[0]["name"]).name for files in names if files) == ["a", "b"]
