"""What memory gives: the ceilings of products in memory, for the suite `hmatrix`. Bytes moved, and the time it took."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.calibration.workspace import NotPossible
from penstock_bench.engine.results import Stopwatch

COPY_BYTES = 256 << 20
COPIES = 16


def copies(emulated: bool) -> tuple[int, Stopwatch]:
    """Within the memory that products run in; what is read and what is written counted together."""
    copied, watch = _host_copies() if emulated else _device_copies()
    return 2 * copied, watch


def _device_copies() -> tuple[int, Stopwatch]:
    try:
        import torch
    except ImportError:
        raise NotPossible("PyTorch, which copies within GPU memory, is not installed") from None
    source = torch.ones(COPY_BYTES * 4, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    torch.cuda.synchronize()
    with Stopwatch() as watch:
        for _ in range(COPIES):
            target.copy_(source)
        torch.cuda.synchronize()
    return COPIES * source.numel(), watch


def _host_copies() -> tuple[int, Stopwatch]:
    import numpy as np

    return _on_each_core(lambda number: partial(np.copyto, np.ones(number), np.ones(number)))


def sums(_emulated: bool) -> tuple[int, Stopwatch]:
    """What the cores read together, as a product in memory does, and hardly compute with."""
    import numpy as np

    return _on_each_core(lambda number: np.ones(number).sum)


def _on_each_core(work_on: Callable[[int], Callable[[], Any]]) -> tuple[int, Stopwatch]:
    """By one thread a core, each with memory of its own; `work_on` is told how many numbers. Bytes that they hold."""
    count = len(os.sched_getaffinity(0))
    works = [work_on(COPY_BYTES // count // 8) for _ in range(count)]

    def again(work: Callable[[], Any]) -> None:
        for _ in range(COPIES):
            work()

    threads = [threading.Thread(target=again, args=(work,)) for work in works]
    with Stopwatch() as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return COPIES * count * (COPY_BYTES // count // 8 * 8), watch
