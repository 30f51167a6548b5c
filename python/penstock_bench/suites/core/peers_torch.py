"""PyTorch as a peer: the loop that people write by hand with pinned tensors, and safetensors' own loader.

Both move the bytes of the same stamped file into GPU memory; what arrives is checked as of every other way. Imports and
memory come before the clock.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from penstock import Array
from penstock.calibration.poison import POISON, poison
from penstock.calibration.workspace import FILE_SEED, make_hot
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Absent, need
from penstock_bench.engine.stamped import check

if TYPE_CHECKING:
    from penstock_bench.suites.core.bench import CoreBench

CHUNK_BYTES = 16 << 20
SLOTS = 2


def pinned_copies(bench: CoreBench) -> dict[str, Any]:
    """One thread: pread into one of two pinned tensors while the other is copied to the device."""
    if bench.emulated:
        raise Absent("a loop over pinned tensors needs a GPU")
    need("torch")
    import torch

    make_hot(bench.source, bench.bytes)
    poison(bench.context, bench.device)
    device = torch.device(bench.context.device["name"])
    target = torch.as_tensor(bench.device, device=device)
    pinned = [torch.empty(CHUNK_BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(SLOTS)]
    descriptor = os.open(bench.source.name, os.O_RDONLY)
    try:
        _loop(descriptor, target, pinned)  # not timed, as of our own
        for slot in pinned:
            slot.fill_(POISON)
        poison(bench.context, bench.device)
        with Stopwatch() as watch:
            _loop(descriptor, target, pinned)
    finally:
        os.close(descriptor)
    return _sample(bench.bytes, watch) | {"verify_s": check(bench.context, bench.source.name, bench.device, FILE_SEED)}


def _loop(descriptor: int, target: Any, pinned: list[Any]) -> None:
    import torch

    stream = torch.cuda.Stream(target.device)
    events = [torch.cuda.Event() for _ in pinned]
    total, offset, turn = target.numel(), 0, 0
    with torch.cuda.stream(stream):
        while offset < total:
            slot = turn % len(pinned)
            events[slot].synchronize()  # of an event never recorded: at once
            wanted = min(CHUNK_BYTES, total - offset)
            got = os.preadv(descriptor, [memoryview(pinned[slot].numpy())[:wanted]], offset)
            if got == 0:
                raise Absent("the file is shorter than it was")
            target[offset : offset + got].copy_(pinned[slot][:got], non_blocking=True)
            events[slot].record(stream)
            offset, turn = offset + got, turn + 1
    stream.synchronize()


def load_file(bench: CoreBench) -> dict[str, Any]:
    """safetensors.torch.load_file of one tensor of the same bytes, from the page cache."""
    need("torch", "safetensors")
    import safetensors.torch

    path = _file(bench)
    with bench.context.open(path) as file:
        make_hot(file, file.size_bytes)
    device = "cpu" if bench.emulated else bench.context.device["name"]
    # Not timed, as of our own. PyTorch gives the next load the same memory.
    safetensors.torch.load_file(path, device=device)["data"].fill_(POISON)
    _wait(bench)
    with Stopwatch() as watch:
        found = safetensors.torch.load_file(path, device=device)["data"]
        _wait(bench)
    if bench.emulated:
        bench.context.copy_to_device(bench.device, found.numpy())
        found = bench.device
    return _sample(bench.bytes, watch) | {"verify_s": check(bench.context, path, found, FILE_SEED)}


def _wait(bench: CoreBench) -> None:
    if not bench.emulated:
        import torch

        torch.cuda.synchronize()


def _file(bench: CoreBench) -> Path:
    """Made when it is first needed: the stamped bytes as one tensor."""
    path = bench.workspace.directory / "source.safetensors"
    if not path.exists():
        bench.context.stamp(bench.device, 0, FILE_SEED)
        with penstock.create(path, context=bench.context, durable=True) as file:
            file["data"] = Array(bench.device, "uint8", (bench.bytes,))
    return path


def _sample(bytes: int, watch: Stopwatch) -> dict[str, Any]:
    return {
        "bytes": bytes,
        "seconds": watch.seconds,
        **watch.cpu(),
    }
