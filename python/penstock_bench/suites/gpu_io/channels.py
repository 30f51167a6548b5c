"""Cells of the suite `gpu-io` that put both channels beside each other: the mailbox and NVMe's own entries.

What must stay the same in a pair: the clients, their warps and requests under way, and the service with its threads.
Only the words that device and host exchange differ. A warp keeps one request under way and goes through the interface
that all channels have; storms of `memory` use what the mailbox alone can.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock_bench.suites.gpu_io.storms import Setup, Shape, threads_text

ENTRIES = 1024  # of all queues, and slots of the mailbox, for each service thread: the most that one queue has
SHAPE = Shape(960, 32, 1)  # fewer warps than slots, whatever the queues, so no warp waits for one
MANY_QUEUES = 16  # for each service thread: fewer warps share one
THREADS = (1, 4)  # of the service, as far as there are cores
MAILBOX = "mailbox, the same clients"
LONE = "nvme entries random 4 KiB, one queue a thread"
MANY = f"nvme entries random 4 KiB, {MANY_QUEUES} queues a thread"


def cells(file: Path, cores: int) -> list[tuple[str, Setup]]:
    found = []
    for threads in sorted({min(count, cores) for count in THREADS}):
        mailbox = Setup(file, "mailbox", threads, ENTRIES * threads, warm=True)
        lone = replace(mailbox, source="nvme", queues=threads)
        many = replace(lone, queues=MANY_QUEUES * threads)
        found += [
            (f"{name}, {threads_text(threads)}", setup)
            for name, setup in ((MAILBOX, mailbox), (LONE, lone), (MANY, many))
        ]
    return found
