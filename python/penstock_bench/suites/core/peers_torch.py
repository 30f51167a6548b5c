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
from penstock_bench.suites.core.files import source

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

CHUNK_BYTES = 16 << 20
SLOTS = 2


def pinned_copies(run: Run) -> dict[str, Any]:
    """One thread: pread into one of two pinned tensors while the other is copied to the device."""
    if run.emulated:
        raise Absent("a loop over pinned tensors needs a GPU")
    need("torch")
    import torch

    make_hot(source(run), run.bytes)
    poison(run.context, run.device)
    device = torch.device(run.context.device["name"])
    target = torch.as_tensor(run.device, device=device)
    pinned = [torch.empty(CHUNK_BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(SLOTS)]
    descriptor = os.open(source(run).name, os.O_RDONLY)
    try:
        _loop(descriptor, target, pinned)  # not timed, as of our own
        for slot in pinned:
            slot.fill_(POISON)
        poison(run.context, run.device)
        with Stopwatch() as watch:
            _loop(descriptor, target, pinned)
    finally:
        os.close(descriptor)
    return _sample(run.bytes, watch) | {"verify_s": check(run.context, source(run).name, run.device, FILE_SEED)}


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


def load_file(run: Run) -> dict[str, Any]:
    """safetensors.torch.load_file of one tensor of the same bytes, from the page cache."""
    need("torch", "safetensors")
    import safetensors.torch

    path = _file(run)
    with run.context.open(path) as file:
        make_hot(file, file.size_bytes)
    device = "cpu" if run.emulated else run.context.device["name"]
    # Not timed, as of our own. PyTorch gives the next load the same memory.
    safetensors.torch.load_file(path, device=device)["data"].fill_(POISON)
    _wait(run)
    with Stopwatch() as watch:
        found = safetensors.torch.load_file(path, device=device)["data"]
        _wait(run)
    if run.emulated:
        run.context.copy_to_device(run.device, found.numpy())
        found = run.device
    return _sample(run.bytes, watch) | {"verify_s": check(run.context, path, found, FILE_SEED)}


def _wait(run: Run) -> None:
    if not run.emulated:
        import torch

        torch.cuda.synchronize()


def _file(run: Run) -> Path:
    """Made when it is first needed: the stamped bytes as one tensor."""
    path = run.workspace.directory / "source.safetensors"
    if not path.exists():
        run.context.stamp(run.device, 0, FILE_SEED)
        with penstock.create(path, context=run.context, durable=True) as file:
            file["data"] = Array(run.device, "uint8", (run.bytes,))
    return path


def _sample(bytes: int, watch: Stopwatch) -> dict[str, Any]:
    return {
        "bytes": bytes,
        "seconds": watch.seconds,
        **watch.cpu(),
    }
