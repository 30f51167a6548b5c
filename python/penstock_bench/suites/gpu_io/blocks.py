"""Cells of the suite `gpu-io` by how the device's threads are divided: threads a block, and places to look for a slot.

What must stay the same: the number of threads, and one request under way for each warp. Only blocks, or rings, differ.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from penstock_bench.suites.gpu_io.storms import Setup, Shape, StormCell

MOST_BLOCKS = 4096  # that are at work at once: more would wait for their turn
RINGS_THREADS = 128  # of a block, where the number of rings is what changes
BLOCKS, RINGS, BESIDES = "blocks", "rings", "blocks besides"  # subjects; the last: of other requests


def of(settings: dict[str, Any], service: Setup, stream: Setup, name_of: Any) -> list[StormCell]:
    """`service`: of 4 KiB requests of the file in memory; `stream`: of 128 KiB."""
    whole, blocks = int(settings["threads"]), settings["block_threads"]

    def shape(threads: int, rings: int = 0) -> Shape:
        return Shape(max(1, min(whole // threads, MOST_BLOCKS)), threads, 1, rings)

    cells = []
    for threads, rings in itertools.product(blocks, (0, 1)):
        name = f"blocks of {threads}, {'one ring' if rings else 'a ring for each warp'}"
        cells.append(StormCell(name, service, shape(threads, rings), BLOCKS))
    cells += [StormCell(f"rings: {rings}", service, shape(RINGS_THREADS, rings), RINGS) for rings in settings["rings"]]
    # Writes are of the stamps that the file has, so that a page that went elsewhere is found by who reads it next.
    writes, large = replace(service, writable=True), stream.slot_bytes
    for threads in blocks:
        streamed = replace(shape(threads), request_bytes=large, sequential=True)
        named = f"blocks of {threads}, "
        cells.append(StormCell(named + name_of("reads", (large, True)), stream, streamed, BESIDES))
        small = name_of("writes", (service.slot_bytes, False))
        cells.append(StormCell(named + small, writes, shape(threads), BESIDES, {"writes": True}))
    return cells
