"""A call that the library only passes on costs little: the least of many short rounds, in which nothing else ran."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from c_abi import preload_rig as rig

MOST_NS = 60
READS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int count, char** words) {
    static char page[4096];
    int fd = open(words[1], O_RDWR | O_CREAT, 0600), threads = -2;
    if (pwrite(fd, page, sizeof page, 0) != sizeof page) return 1;
    double least = 1e9;
    for (int round = 0; round < 1000; ++round) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        for (int i = 0; i < 500; ++i) {
            if (pread(fd, page, sizeof page, 0) != sizeof page) return 2;
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / 500;
        if (ns < least) least = ns;
    }
    DIR* tasks = opendir("/proc/self/task");
    while (readdir(tasks)) ++threads;
    printf("%f %d\n", least, threads);
    return count != 2;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("match", ["", "*.nothing"], ids=["looked-at", "left-alone"])
def test_a_call_costs_little_and_starts_no_thread(match: str, tmp_path: Path) -> None:
    program = rig.compiled(".c", READS)
    folder = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    file = folder / f"cost-{os.getpid()}"
    costs = []
    try:
        for _ in range(5):  # a busy machine: the least of several is what the call takes
            pair = [rig.plain(program, file, env=env) for env in (None, rig.preloaded(PENSTOCK_RUN_MATCH=match))]
            assert [run.out.split()[1] for run in pair] == ["1", "1"]
            costs.append([float(run.out.split()[0]) for run in pair])
    finally:
        file.unlink(missing_ok=True)
    plain, ours = (min(one[at] for one in costs) for at in (0, 1))
    assert ours - plain <= MOST_NS, costs
